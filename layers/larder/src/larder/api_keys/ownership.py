"""Keys that teams own: how a user's key becomes one, and how one ends whose maker has left.

The operator replaces the key of a user, or adopts it with its secret.

The person who made a key that does more than builds need knows its secret. So when they leave the team, lose the role,
or lose all access, the key ends after a period of grace. An owner or admin takes it over by rotating it, or by giving
it another expiry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.api_keys import repository
from larder.api_keys.keys import MILLISECOND, audit_entries, rotate_key, scope_for_team
from larder.api_keys.models import ApiKey, role_cap_of
from larder.api_keys.properties import check_team_permissions
from larder.api_keys.self_service import actions_of
from larder.api_keys.validity import ended_with_membership, ended_with_user
from larder.audit.models import Action
from larder.concurrency import attempts
from larder.errors import InvalidValue, TryAgain
from larder.teams import members
from larder.teams.state import membership_of

if TYPE_CHECKING:
    from larder.accounts.models import User
    from larder.tables import Write


def rotate_to_team(key_id: str, *, overlap_s: int, now: datetime) -> tuple[ApiKey, str] | None:
    """Replace a key that is bound to a team by one like it that the team owns (`rotate_key`).

    Raises InvalidValue, KeyLimitReached, TryAgain.
    """
    old = repository.find_by_id(key_id)
    if old is None or old.rule_id is not None:
        return None
    _check_adoptable(old, now)
    return rotate_key(key_id, overlap_s=overlap_s, to_team=True, now=now)


def adopt_key(key_id: str, *, now: datetime) -> ApiKey | None:
    """Make a key that is bound to a team the team's own. Its id and its secret stay, so its user may still know it.

    Returns None if no key has this id. Raises InvalidValue, KeyLimitReached, TryAgain.
    """
    for _ in attempts():
        old = repository.find_by_id(key_id)
        if old is None or old.rule_id is not None:
            return None
        team_id, checks = _check_adoptable(old, now)
        new = replace(
            old,
            holder_id=team_id,
            made_by=old.user_id,
            known_to=(old.user_id,),
            role_cap=role_cap_of(old.permissions),
            scope=scope_for_team(old),
            password_version=0,
            updated_at=max(now, old.updated_at + MILLISECOND),
        )
        if repository.adopt(
            old, new, *checks, *audit_entries(Action.KEY_ADOPTED, old, None), now=now
        ):
            return repository.with_metadata(new)
    raise TryAgain


def _check_adoptable(key: ApiKey, now: datetime) -> "tuple[str, list[Write]]":
    """The id of the key's team, and checks for the transaction that its user is still a member as now.

    The key has to work now: no team revives a key that has ended, or gets more than its user still has. Raises
    InvalidValue.
    """
    if key.owned_by_team:
        raise InvalidValue("key", "belongs to its team already")
    if key.team_id is None:
        raise InvalidValue("key", "is not bound to a team")
    found = membership_of(key.team_id, key.user_id)
    if found.member is None or found.user is None:
        raise InvalidValue("key", "has ended, because its user has left the team")
    if ended_with_user(key, found.user, now=now) or ended_with_membership(key, found):
        raise InvalidValue("key", "has ended")
    check_team_permissions(key.permissions)
    held = actions_of(found.member.role)
    if more := [action for action in key.permissions.get("artifacts", ()) if action not in held]:
        raise InvalidValue("key", f"has artifacts: {', '.join(more)}, which its user does not have")
    return key.team_id, [
        *members.still_have_roles(key.team_id, found.member),
        repository.keys_not_ended(key.user_id, found.user.keys_from),
    ]


GRACE = timedelta(days=14)
"""How long such a key still works, so that CI does not stop on the day on which a colleague leaves."""


def known_keys(team_id: str, user_id: str) -> list[ApiKey]:
    """The keys that the team owns and whose secret the user has seen. Does not read their metadata."""
    return [key for key in repository.list_by_holder(team_id) if user_id in key.known_to]


def grace_end(key: ApiKey, *, since: datetime) -> datetime | None:
    """When a key ends that its maker has left behind at that time. None for a key that this does not end."""
    if not key.does_more or key.made_by is None:
        return None
    end = (key.orphaned_at or since) + GRACE
    return end if key.expires_at is None else min(end, key.expires_at)


def settle_orphans(
    team_id: str, keys: Iterable[ApiKey], users: "Mapping[str, User]", *, now: datetime
) -> None:
    """Begin the grace of the keys whose maker can no longer make them, and end it for those whose maker is back.

    `keys` are those of `made_keys`, and `users` the makers who exist, by id. Doing it again changes nothing. Raises
    TryAgain.
    """
    roles = members.roles_in(team_id, users)
    present = {
        user_id
        for user_id, role in roles.items()
        if role.names_trusted and users[user_id].has_access(now)
    }
    for key in keys:
        _settle(key, is_orphaned=key.made_by not in present, now=now)


def made_keys(team_id: str) -> list[ApiKey]:
    """The keys of the team that do more than builds need and that a user has made, and not the operator."""
    keys = repository.list_by_holder(team_id)
    return [key for key in keys if key.does_more and key.made_by is not None]


def _settle(found: ApiKey, *, is_orphaned: bool, now: datetime) -> None:
    key: ApiKey | None = found
    for _ in attempts():
        if key is None or is_orphaned == (key.orphaned_at is not None):
            return
        updated_at = max(now, key.updated_at + MILLISECOND)
        if is_orphaned:
            end = grace_end(key, since=now)
            new = replace(key, orphaned_at=now, ordinary_end=key.expires_at, expires_at=end)
        else:
            new = replace(key, orphaned_at=None, ordinary_end=None, expires_at=key.ordinary_end)
        if repository.change_if_same(key, replace(new, updated_at=updated_at)):
            return
        key = repository.get(key.key_hash)
    raise TryAgain
