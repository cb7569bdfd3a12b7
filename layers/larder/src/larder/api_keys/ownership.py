"""Make keys of users their team's own, for the operator: replace a key, or adopt it with its secret."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder.api_keys import audited, repository
from larder.api_keys.ended import ended_with_membership, ended_with_user
from larder.api_keys.grants import actions_of
from larder.api_keys.models import ApiKey, role_cap_of
from larder.api_keys.rules import check_team_permissions
from larder.api_keys.service import MILLISECOND, rotate_key, scope_for_team
from larder.concurrency import attempts
from larder.errors import InvalidValue, TryAgain
from larder.teams import members
from larder.teams.state import membership_of

if TYPE_CHECKING:
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
        if repository.adopt(old, new, *checks, *audited.adopted(old, None), now=now):
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
    if more := [one for one in key.permissions.get("artifacts", ()) if one not in held]:
        raise InvalidValue("key", f"has artifacts: {', '.join(more)}, which its user does not have")
    return key.team_id, [
        *members.still_have_roles(key.team_id, found.member),
        repository.keys_not_ended(key.user_id, found.user.keys_from),
    ]
