"""Query parameters of the endpoints that list teams and members."""

from dataclasses import dataclass
from datetime import datetime

from larder.artifacts.models import SCOPE_PATTERN, is_own_scope
from larder.teams.models import MAX_LISTED
from larder.teams.slugs import TEAM_ID, names_a_team
from larder.web.declared import NEXT, limit, moment, text, whole
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Request

DEFAULT_LIMIT = 20
MAX_OFFSET = 99_999

_NEXT = "`next` of the previous page."

TEAMS_LIMIT = limit(MAX_LISTED, DEFAULT_LIMIT, "teams")
TEAMS_UNTIL = text("until", _NEXT, {"type": "string", "pattern": TEAM_ID})
MEMBERS_LIMIT = limit(MAX_LISTED, DEFAULT_LIMIT, "members")
SINCE = moment("since", "Only members who joined after this time, in milliseconds since 1970.")
UNTIL = moment("until", f"Only members who joined before this time: {_NEXT}")
KEYS_LIMIT = limit(MAX_LISTED, DEFAULT_LIMIT, "keys")
OFFSET = whole("offset", 0, MAX_OFFSET, 0, _NEXT)
SCOPES_LIMIT = limit(MAX_LISTED, DEFAULT_LIMIT, "scopes")
CURSOR = text("cursor", _NEXT, {"type": "string", "pattern": SCOPE_PATTERN})


@dataclass(frozen=True, slots=True)
class TeamsQuery:
    """At most `limit` teams. `until` is the `next` of the previous page, None for the first page."""

    limit: int
    until: str | None


def teams_query(_token: BearerToken, request: Request) -> TeamsQuery:
    """Raises InvalidRequest naming the parameter."""
    limit, until = TEAMS_LIMIT(request), TEAMS_UNTIL(request)
    if until is not None and not names_a_team(until):
        raise InvalidRequest("until", NEXT)
    return TeamsQuery(limit, until)


@dataclass(frozen=True, slots=True)
class MembersQuery:
    """At most `limit` members who joined between the two times. None means no bound.

    `until` is the `next` of the previous page.
    """

    limit: int
    since: datetime | None
    until: datetime | None


def members_query(_token: BearerToken, request: Request) -> MembersQuery:
    """Raises InvalidRequest naming the parameter."""
    return MembersQuery(MEMBERS_LIMIT(request), since=SINCE(request), until=UNTIL(request))


@dataclass(frozen=True, slots=True)
class TeamKeysQuery:
    """At most `limit` keys, after the first `offset` ones. `offset` is the `next` of the previous page."""

    limit: int
    offset: int


def team_keys_query(_token: BearerToken, request: Request) -> TeamKeysQuery:
    """Raises InvalidRequest naming the parameter."""
    return TeamKeysQuery(limit=KEYS_LIMIT(request), offset=OFFSET(request))


@dataclass(frozen=True, slots=True)
class ScopesQuery:
    """At most `limit` scopes. `after` is the `next` of the previous page, None for the first page."""

    limit: int
    after: str | None


def scopes_query(_token: BearerToken, request: Request) -> ScopesQuery:
    """Raises InvalidRequest naming the parameter."""
    limit, cursor = SCOPES_LIMIT(request), CURSOR(request)
    if cursor is not None and not is_own_scope(cursor):
        raise InvalidRequest("cursor", NEXT)
    return ScopesQuery(limit, after=cursor)
