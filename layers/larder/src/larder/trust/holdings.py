"""What a person still holds and knows, for the operator."""

from dataclasses import dataclass
from datetime import datetime

from larder.accounts.linking import list_accounts
from larder.accounts.models import ProviderAccount, Session, User
from larder.accounts.sessions import list_sessions
from larder.api_keys.keys import list_keys
from larder.api_keys.models import ApiKey
from larder.teams.members import list_memberships
from larder.teams.models import TeamMembership
from larder.trust.makers import Traces, traces_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a user holds and knows. `keys` are their own, `accounts` those at identity providers."""

    user: User
    memberships: tuple[TeamMembership, ...]
    traces: tuple[Traces, ...]
    sessions: tuple[Session, ...]
    keys: tuple[ApiKey, ...]
    accounts: tuple[ProviderAccount, ...]


def holdings_of(user: User, *, now: datetime) -> Holdings:
    """Read what the user holds and knows, in the teams of which they are a member."""
    memberships: list[TeamMembership] = []
    after: str | None = ""
    while after is not None:
        page, after = list_memberships(user.id, bound_to=None, after=after or None, limit=100)
        memberships += page
    return Holdings(
        user=user,
        memberships=tuple(memberships),
        traces=tuple(traces_in(membership.team.id, user, now=now) for membership in memberships),
        sessions=tuple(list_sessions(user, now=now)),
        keys=tuple(list_keys(user.id)),
        accounts=tuple(list_accounts(user.id)[1]),
    )
