"""The own scopes of a team, with the names of those who write them."""

from dataclasses import dataclass, replace

from larder.accounts.models import User
from larder.accounts.service import find_users
from larder.artifacts.repository import scopes
from larder.artifacts.repository.totals import read_totals, scoped_share
from larder.artifacts.scopes import OwnScope
from larder.teams.models import OwnerState


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
    found, following = scopes.read_page(team_id, after=after, limit=limit)
    users = find_users([scope.user_of for scope in found if scope.user_of is not None])
    quota_bytes = state.quota_bytes
    return ScopePage(
        scopes=tuple(_named(scope, users.get(scope.user_of or "")) for scope in found),
        following=following,
        scoped_bytes=read_totals(team_id).scoped_bytes,
        most_scoped_bytes=None if quota_bytes is None else scoped_share(quota_bytes),
    )


def _named(scope: OwnScope, user: User | None) -> OwnScope:
    return scope if user is None else replace(scope, name=user.email)
