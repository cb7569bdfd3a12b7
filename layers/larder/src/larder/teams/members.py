"""The members of teams: find and list them, add and remove them, change their roles.

`by` is the member who makes a change, with the role that the request read, or None for the operator. Each write is
conditional on that role (`teams.py`).
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from larder import clock
from larder.actor import DELETION, Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import (
    InvalidValue,
    LastOwner,
    MemberNotFound,
    MembershipManaged,
    MissingRole,
    TeamNotFound,
    TryAgain,
)
from larder.teams import repository
from larder.teams.models import Member, Membership, Places, Role, TeamMembership
from larder.teams.slugs import named_team
from larder.teams.teams import acting_in

if TYPE_CHECKING:
    from larder.tables import Write

_USER_ID = re.compile(r"[A-Za-z0-9]{1,64}")
"""The format of a user id. Checked because DynamoDB refuses keys that are too long."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(9999, 1, 1, tzinfo=UTC)
_OWNERS_ONLY = "Only an owner of the team can add, change and remove owners."


def role_of(team_id: str, user_id: str) -> Role | None:
    """The user's role in the team. None if they are not a member, or the team was deleted."""
    membership = repository.read_membership(team_id, user_id)
    return None if membership.team is None else membership.role


def still_have_roles(team_id: str, *found: Member) -> "list[Write]":
    """Checks that fail a transaction unless the members still have the roles that were read."""
    return [check for member in found for check in repository.role_checks(team_id, member)]


def find_membership(id_or_slug: str, user_id: str, *, bound_to: str | None) -> TeamMembership:
    """The team and the user's membership in it. `bound_to` is the team that the caller's key is bound to, if any.

    Raises TeamNotFound if the team does not exist, the user is not a member, or the key is bound to another team.
    """
    team_id = named_team(id_or_slug)
    if team_id is None or bound_to not in (None, team_id):
        raise TeamNotFound
    found = _memberships([repository.read_membership(team_id, user_id)])
    if not found:
        raise TeamNotFound
    return found[0]


def list_memberships(
    user_id: str, *, bound_to: str | None, after: str | None, limit: int
) -> tuple[list[TeamMembership], str | None]:
    """A page of the user's teams, by slug, and `after` for the next page, None on the last one.

    A team that the user has just joined can be missing for milliseconds. A team that they have left is never included.
    """
    if bound_to is not None:
        team_ids, following = [bound_to] if after is None else [], None
    else:
        found = repository.page_of_teams(user_id, after=after, limit=limit + 1)
        team_ids = found[:limit]
        following = team_ids[-1] if len(found) > limit else None
    memberships = _memberships(repository.read_memberships(team_ids, user_id))
    return sorted(memberships, key=lambda membership: membership.team.slug), following


def roles_in(team_id: str, user_ids: Iterable[str]) -> Mapping[str, Role]:
    """The roles of those of the users who are members of the team."""
    return repository.read_places(team_id, *user_ids).roles


def departures(team_id: str, user_ids: Iterable[str]) -> Mapping[str, datetime]:
    """When those of the users left the team who were members, and are no longer."""
    return repository.departures(team_id, sorted({*user_ids}))


def note_access_changed(user_id: str) -> None:
    """Note that the user has lost all access or got it back, so that the sweep settles the keys that they made."""
    repository.note_change(user_id, *repository.teams_of(user_id))


def changes_to_settle() -> list[tuple[str, list[str], int]]:
    """Ids of users, the teams that they have left or in which they got another role, and the version of the note."""
    return list(repository.noted_changes())


def finish_settling(user_id: str, version: int) -> None:
    """Remove such a note, once the keys are settled."""
    repository.forget_change(user_id, version)


def rules_made_by(team_id: str, user_id: str) -> list[str]:
    """The ids of the rules that a user has added to the team, also if they are no longer a member."""
    return repository.rules_made_by(team_id, user_id)


def teams_of(user_id: str) -> list[str]:
    """The ids of the user's teams."""
    return repository.teams_of(user_id)


def list_members(team_id: str) -> list[Member]:
    """All members of the team, oldest first. The cost grows with their number."""
    return sorted(
        repository.list_members(team_id), key=lambda member: (member.joined_at, member.user_id)
    )


def page_of_members(
    team_id: str, *, since: datetime | None, until: datetime | None, limit: int
) -> tuple[list[Member], datetime | None]:
    """A page of members, newest first, and `until` for the next page, None on the last one.

    Each member is on exactly one page. A member who has just joined can be missing for milliseconds.
    """
    return repository.page_of_members(
        team_id, since=since or _BEGINNING, until=until or _END, limit=limit
    )


def owned_alone(user_id: str) -> list[str]:
    """The slugs of the teams that the user is the only owner of, in order."""
    slugs = []
    for team_id in repository.teams_of(user_id):
        owners = {
            member.user_id
            for member in repository.list_members(team_id)
            if member.role is Role.OWNER
        }
        team = repository.get_team(team_id)
        if owners == {user_id} and team is not None:
            slugs.append(team.slug)
    return sorted(slugs)


def add_member(team_id: str, user_id: str, role: Role, *, now: datetime) -> None:
    """Add a member, or change the role of an existing one, which keeps the time of joining. For the operator.

    Raises InvalidValue for a team that does not exist, LastOwner, MembershipManaged, TryAgain.
    """
    for _ in attempts():
        places = repository.read_places(team_id, user_id)
        if places.team is None:
            raise InvalidValue("team", "does not exist")
        current_role = places.roles.get(user_id)
        if current_role is role:
            return
        _check_not_managed(user_id, places)
        if current_role is None:
            entry = audited(team_id, Action.MEMBER_ADDED, user_id, None, role=role.value)
            done = repository.add_member(team_id, user_id, role, entry, now=now)
        else:
            _check_not_last(current_role, places)
            entry = audited(team_id, Action.ROLE_CHANGED, user_id, None, role=role.value)
            changed = repository.noting_change(user_id, team_id)
            done = repository.change_role(team_id, user_id, current_role, role, changed, entry)
        if done:
            return
    raise TryAgain


def change_role(
    team_id: str, user_id: str, role: Role, *, by: Member, actor: Actor | None = None
) -> None:
    """Change a member's role. Only owners can give or take the role of an owner.

    Raises MemberNotFound, MissingRole, MembershipManaged, LastOwner, TeamNotFound, TryAgain.
    """
    entry = audited(team_id, Action.ROLE_CHANGED, user_id, actor, role=role.value)
    for _ in attempts():
        acting, current_role, places = _acting_on(team_id, user_id, by)
        if acting is not None:
            check_manages(acting.role, current_role, role)
        if current_role is role:
            return
        _check_not_managed(user_id, places)
        _check_not_last(current_role, places)
        changed = repository.noting_change(user_id, team_id)
        if repository.change_role(team_id, user_id, current_role, role, changed, entry, by=acting):
            return
    raise TryAgain


def remove_member(
    team_id: str, user_id: str, *, by: Member | None, actor: Actor | None = None
) -> None:
    """Remove a member from the team, or leave it. Takes effect at their next request.

    Raises MemberNotFound, MissingRole, MembershipManaged, LastOwner, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        acting, current_role, places = _acting_on(team_id, user_id, by)
        if acting is not None and user_id != acting.user_id:
            check_manages(acting.role, current_role)
        _check_not_managed(user_id, places)
        _check_not_last(current_role, places)
        entry = _removal(team_id, user_id, current_role, actor)
        noted = _noting_departure(team_id, user_id)
        if repository.remove_member(team_id, user_id, current_role, *noted, entry, by=acting):
            return
    raise TryAgain


def leave_teams(user_id: str) -> bool:
    """Remove a deleted user from all teams. Does not raise: returns False if memberships may be left.

    This also removes a last owner. The operator can then name another.
    """
    left = True
    try:
        repository.delete_made(user_id)
        for team_id in repository.teams_of(user_id):
            try:
                _leave(team_id, user_id)
            except TryAgain:
                left = False
    except TryAgain:
        return False
    return left


def check_manages(role: Role, *others: Role) -> None:
    """Check that this role can add, change and remove members with the other roles. Raises MissingRole."""
    if not all(role.manages(other) for other in others):
        raise MissingRole(_OWNERS_ONLY if role.manages_members else None)


def _acting_on(team_id: str, user_id: str, by: Member | None) -> tuple[Member | None, Role, Places]:
    """The actor with their current role, the current role of the member `user_id`, and both their places."""
    if not _USER_ID.fullmatch(user_id):
        raise MemberNotFound
    _, acting, places = acting_in(team_id, by, user_id)
    current_role = places.roles.get(user_id)
    if current_role is None:
        raise MemberNotFound
    return acting, current_role, places


def _check_not_managed(user_id: str, places: Places) -> None:
    """Raises MembershipManaged for a membership that an identity provider gave, and would give again.

    It gives none to a user who has no account there any more.
    """
    provider_id = places.managed.get(user_id)
    if provider_id is not None and repository.is_linked(user_id, provider_id):
        raise MembershipManaged


def _check_not_last(role: Role, places: Places) -> None:
    """Raises LastOwner for the role of the only owner of a team."""
    if role is Role.OWNER and places.owners <= 1:
        raise LastOwner


def _leave(team_id: str, user_id: str) -> None:
    """Remove a member even if they are the last owner, or the team is deleted. Raises TryAgain."""
    for _ in attempts():
        places = repository.read_places(team_id, user_id)
        role = places.roles.get(user_id)
        if role is None:
            return
        if places.team is None:
            repository.delete_member(team_id, user_id)
            return
        entry = _removal(team_id, user_id, role, Actor(DELETION, user_id))
        noted = _noting_departure(team_id, user_id)
        if repository.remove_member(team_id, user_id, role, *noted, entry, keeps_an_owner=False):
            return
    raise TryAgain


def _noting_departure(team_id: str, user_id: str) -> "list[Write]":
    left = repository.note_departure(team_id, user_id, now=clock.now())
    return [left, repository.noting_change(user_id, team_id)]


def _removal(team_id: str, user_id: str, role: Role, actor: Actor | None) -> "Write":
    return audited(team_id, Action.MEMBER_REMOVED, user_id, actor, role=role.value)


def _memberships(found: Iterable[Membership]) -> list[TeamMembership]:
    return [
        TeamMembership(team=membership.team, member=membership.member, user=membership.user)
        for membership in found
        if membership.team is not None and membership.member is not None
    ]
