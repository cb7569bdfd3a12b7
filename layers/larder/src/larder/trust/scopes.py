"""The scopes of a protected team: who writes its own scopes, and whether the shared one is used."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.artifacts.records import OwnScope
from larder.artifacts.repository import scopes
from larder.artifacts.repository.totals import read_totals, scoped_share
from larder.clock import EPOCH
from larder.teams.models import OwnerState, Protection

if TYPE_CHECKING:
    from larder.accounts.models import User

IDLE_AFTER = timedelta(days=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePage:
    """Some of a team's own scopes, by id. Pass `following` as `after` for the next page; None on the last page.

    `scoped_bytes` is what all own scopes hold together, and `most_scoped_bytes` what they may hold, None for no limit.
    """

    scopes: tuple[OwnScope, ...]
    following: str | None
    scoped_bytes: int
    most_scoped_bytes: int | None


def page_of_scopes(team_id: str, state: OwnerState, *, after: str | None, limit: int) -> ScopePage:
    """The scopes of users are named by their email addresses, as long as the users exist."""
    # Imported here, because only the list of scopes needs it.
    from larder.accounts.service import find_users

    found, following = scopes.read_page(team_id, after=after, limit=limit)
    users = find_users([scope.user_of for scope in found if scope.user_of is not None])
    quota_bytes = state.quota_bytes
    return ScopePage(
        scopes=tuple(_named(scope, users.get(scope.user_of or "")) for scope in found),
        following=following,
        scoped_bytes=read_totals(team_id).scoped_bytes,
        most_scoped_bytes=None if quota_bytes is None else scoped_share(quota_bytes),
    )


def _named(scope: OwnScope, user: "User | None") -> OwnScope:
    return scope if user is None else replace(scope, name=user.email)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """`last_upload_at` is accurate to an hour. `is_idle` says that nothing has been uploaded for `IDLE_AFTER`."""

    last_upload_at: datetime | None = None
    is_idle: bool = False


def use_of_shared(team_id: str, protection: Protection, *, now: datetime) -> SharedUse:
    """How the shared scope of the team is used, if the team is protected. If it is idle, nobody gets new hits."""
    if not protection.on:
        return SharedUse()
    last = scopes.last_shared_upload(team_id)
    # If the team still shows what was stored before, the moment at which it was protected is not known.
    since = max(protection.trusted_from, last or EPOCH)
    return SharedUse(last_upload_at=last, is_idle=EPOCH < since < now - IDLE_AFTER)
