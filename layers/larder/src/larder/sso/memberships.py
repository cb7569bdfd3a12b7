"""Memberships that an identity provider gives: groups of a provider, mapped to roles in teams.

Each sign-in applies them, in the transaction of the session. Memberships that people made are never changed.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.actor import Actor, by_provider
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import InvalidValue, TryAgain
from larder.sso import repository
from larder.sso.models import GivenRole, IdentityProvider, TeamMapping
from larder.teams import repository as teams
from larder.teams.models import Member, Places, Role

if TYPE_CHECKING:
    from larder.tables import Write

MAX_TEAMS = 20
"""Teams of one provider. A sign-in changes all of them in one transaction, which takes 100 writes."""

MAX_GROUPS = 100
"""Groups of one provider in one team."""

MAX_GROUP_LENGTH = 256


@dataclass(slots=True)
class ManagedChanges:
    """What a sign-in writes. `left` are the teams whose membership ends, and `kept` those whose last owner stays.

    `changed` are those that the user leaves or gets another role in.
    """

    writes: "list[Write]" = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def list_mappings(provider_id: str) -> list[TeamMapping]:
    """The teams of a provider, by id, also those whose last group was unmapped."""
    return repository.list_mappings(provider_id)


def mappings_of_team(team_id: str, provider_ids: Collection[str]) -> list[TeamMapping]:
    """What those of the providers give that give memberships of the team, by provider. No read without providers."""
    found = repository.find_mappings(team_id, provider_ids) if provider_ids else []
    return sorted(
        (mapping for mapping in found if mapping.given), key=lambda mapping: mapping.provider_id
    )


def map_group(provider_id: str, team_id: str, group: str | None, role: Role) -> TeamMapping:
    """Give the people of a group, or everyone at the provider, a role in a team. Raises InvalidValue, TryAgain."""
    if group is not None and not 1 <= len(group) <= MAX_GROUP_LENGTH:
        raise InvalidValue("group", f"must have 1 to {MAX_GROUP_LENGTH} characters")

    def mapped(old: TeamMapping) -> TeamMapping:
        if group is None:
            return replace(old, everyone=role)
        return replace(old, groups={**old.groups, group: role})

    return _change(provider_id, team_id, mapped)


def unmap_group(provider_id: str, team_id: str, group: str | None) -> TeamMapping:
    """Undo `map_group`. The memberships end when their people sign in again. Raises InvalidValue, TryAgain."""

    def unmapped(old: TeamMapping) -> TeamMapping:
        if (old.everyone is None) if group is None else (group not in old.groups):
            raise InvalidValue("group", "is not mapped to a role in this team")
        if group is None:
            return replace(old, everyone=None)
        return replace(
            old, groups={name: role for name, role in old.groups.items() if name != group}
        )

    return _change(provider_id, team_id, unmapped)


def release(provider_id: str) -> bool:
    """Make the memberships of a provider that was removed those of people, so that they can be changed by hand.

    False if it had none. A provider that gets the id later must not find the groups of this one.
    """
    mappings = list_mappings(provider_id)
    for mapping in mappings:
        for member in teams.list_members(mapping.team_id):
            if member.managed_by == provider_id:
                teams.release_member(mapping.team_id, member.user_id, provider_id)
        repository.delete_mapping(mapping)
    return bool(mappings)


def changes_at_sign_in(
    provider: IdentityProvider, groups: Collection[str] | None, user_id: str, *, now: datetime
) -> ManagedChanges:
    """What the groups of a person change. None for groups that are unknown, which change nothing.

    What the provider has given lasts until some days after the last sign-in with it.
    """
    provider_id = provider.id
    changes = ManagedChanges()
    mappings = list_mappings(provider_id)
    places = teams.read_places_of(user_id, [mapping.team_id for mapping in mappings])
    for mapping in mappings:
        place, member = places[mapping.team_id]
        if place.team is None or (groups is None and mapping.groups):
            continue
        if member is not None and member.managed_by != provider_id:
            continue
        _apply(changes, mapping, mapping.role_of(groups or ()), place, member, user_id, now)
    if changes.changed:
        changes.writes.append(teams.noting_change(user_id, *changes.changed))
    if mappings:
        until = now + timedelta(days=provider.keys_days)
        changes.writes.append(teams.giving(provider_id, user_id, until))
    return changes


def ending(provider_id: str, user_id: str, *, now: datetime) -> "Write":
    """The write that lets what the provider has given to the user end now. `end_given` or the sweep then ends it."""
    return teams.giving(provider_id, user_id, now)


def given_memberships() -> list[tuple[str, str, datetime]]:
    """The providers and users with memberships that a provider has given, and until when these last."""
    return list(teams.given())


def end_given(provider_id: str, user_id: str, until: datetime, *, now: datetime) -> list[str]:
    """End the memberships that the provider gave to the user until that time. Returns the ids of the teams.

    It stops if the user has signed in with the provider in the meantime. The last owner of a team stays, and can be
    changed by hand once the link is gone. Raises TryAgain.
    """
    left = []
    unchanged = teams.still_given(provider_id, user_id, until)
    for mapping in list_mappings(provider_id):
        team_id = mapping.team_id
        for _ in attempts():
            place, member = teams.read_places_of(user_id, [team_id])[team_id]
            if place.team is None or member is None or member.managed_by != provider_id:
                break
            changes = ManagedChanges()
            _apply(changes, mapping, None, place, member, user_id, now)
            if changes.kept:
                break
            noted = teams.noting_change(user_id, team_id)
            if teams.end_membership([*changes.writes, noted, unchanged]):
                left.append(team_id)
                break
        else:
            raise TryAgain
    teams.forget_given(provider_id, user_id, until)
    return left


def _apply(
    changes: ManagedChanges,
    mapping: TeamMapping,
    given: GivenRole | None,
    place: Places,
    member: Member | None,
    user_id: str,
    now: datetime,
) -> None:
    team_id, (role, group) = mapping.team_id, given or (None, None)
    shown: Role
    if member is None:
        if role is None:
            return
        action, shown = Action.MEMBER_ADDED, role
        changes.writes += teams.joining(
            team_id, user_id, role, now=now, managed_by=mapping.provider_id, group=group
        )
    elif role is member.role:
        if member.group != group:
            changes.writes.append(teams.changing_group(team_id, user_id, member, group))
        return
    elif member.role is Role.OWNER and place.owners <= 1:
        action, shown = Action.LAST_OWNER_KEPT, Role.OWNER
        changes.writes.append(teams.still_last_owner(team_id, user_id))
        changes.kept.append(team_id)
    elif role is None:
        action, shown = Action.MEMBER_REMOVED, member.role
        changes.writes += teams.leaving(team_id, user_id, member.role)
        changes.writes.append(teams.note_departure(team_id, user_id, now=now))
        changes.left.append(team_id)
        changes.changed.append(team_id)
    else:
        action, shown = Action.ROLE_CHANGED, role
        changes.writes += teams.changing_role(team_id, user_id, member.role, role, group=group)
        changes.changed.append(team_id)
    actor = Actor(by_provider(mapping.provider_id), user_id)
    changes.writes.append(audited(team_id, action, user_id, actor, role=shown.value))


def _change(
    provider_id: str, team_id: str, changed: Callable[[TeamMapping], TeamMapping]
) -> TeamMapping:
    for _ in attempts():
        mappings = list_mappings(provider_id)
        old = _of_team(mappings, team_id)
        new = changed(old or TeamMapping(provider_id=provider_id, team_id=team_id))
        if old is None and len(mappings) >= MAX_TEAMS:
            raise InvalidValue("team", f"a provider can have at most {MAX_TEAMS} teams")
        if len(new.groups) > MAX_GROUPS:
            raise InvalidValue("group", f"a team can have at most {MAX_GROUPS} groups")
        if repository.put_mapping(old, new):
            return new
    raise TryAgain


def _of_team(mappings: Iterable[TeamMapping], team_id: str) -> TeamMapping | None:
    return next((mapping for mapping in mappings if mapping.team_id == team_id), None)
