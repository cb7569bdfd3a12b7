"""Keys of a team that do more than builds need, and that no present owner or admin has made.

The person who made such a key knows its secret. So when they leave the team, lose the role, or lose all access, the key
ends after a period of grace. An owner or admin takes it over by rotating it, or by giving it another expiry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.api_keys import repository
from larder.api_keys.models import ApiKey
from larder.api_keys.service import MILLISECOND
from larder.concurrency import attempts
from larder.errors import TryAgain
from larder.teams.members import roles_in

if TYPE_CHECKING:
    from larder.accounts.models import User

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


def settle(
    team_id: str, keys: Iterable[ApiKey], users: "Mapping[str, User]", *, now: datetime
) -> None:
    """Begin the grace of the keys whose maker can no longer make them, and end it for those whose maker is back.

    `keys` are those of `made_keys`, and `users` the makers who exist, by id. Doing it again changes nothing. Raises
    TryAgain.
    """
    roles = roles_in(team_id, users)
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
