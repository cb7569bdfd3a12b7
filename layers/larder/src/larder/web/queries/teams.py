"""Query parameters of the endpoints that list teams and members."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from larder.artifacts.models import is_own_scope
from larder.clock import from_ms
from larder.teams.models import MAX_LISTED
from larder.teams.slugs import names_a_team
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Depends, Request

DEFAULT_LIMIT = 20
MAX_OFFSET = 99_999

_NUMBER = re.compile(r"[0-9]{1,3}")
_OFFSET = re.compile(r"[0-9]{1,5}")
_MILLISECONDS = re.compile(r"[0-9]{1,14}")


@dataclass(frozen=True, slots=True)
class TeamsQuery:
    """At most `limit` teams. `until` is the `next` of the previous page, None for the first page."""

    limit: int
    until: str | None


def teams_query(_token: BearerToken, request: Request) -> TeamsQuery:
    """Raises InvalidRequest naming the parameter."""
    until = (request.query_parameters or {}).get("until")
    limit = _limit(request)
    if until is not None and not names_a_team(until):
        raise InvalidRequest("until", "must be the `next` of the previous page")
    return TeamsQuery(limit=limit, until=until)


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
    return MembersQuery(
        limit=_limit(request), since=_moment(request, "since"), until=_moment(request, "until")
    )


@dataclass(frozen=True, slots=True)
class TeamKeysQuery:
    """At most `limit` keys, after the first `offset` ones. `offset` is the `next` of the previous page."""

    limit: int
    offset: int


def team_keys_query(_token: BearerToken, request: Request) -> TeamKeysQuery:
    """Raises InvalidRequest naming the parameter."""
    offset = (request.query_parameters or {}).get("offset", "0")
    if not _OFFSET.fullmatch(offset):
        raise InvalidRequest("offset", f"must be a whole number from 0 to {MAX_OFFSET}")
    return TeamKeysQuery(limit=_limit(request), offset=int(offset))


@dataclass(frozen=True, slots=True)
class ScopesQuery:
    """At most `limit` scopes. `after` is the `next` of the previous page, None for the first page."""

    limit: int
    after: str | None


def scopes_query(_token: BearerToken, request: Request) -> ScopesQuery:
    """Raises InvalidRequest naming the parameter."""
    cursor = (request.query_parameters or {}).get("cursor")
    if cursor is not None and not is_own_scope(cursor):
        raise InvalidRequest("cursor", "must be the `next` of the previous page")
    return ScopesQuery(limit=_limit(request), after=cursor)


def _limit(request: Request) -> int:
    text = (request.query_parameters or {}).get("limit", str(DEFAULT_LIMIT))
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= MAX_LISTED:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_LISTED}")
    return int(text)


def _moment(request: Request, name: str) -> datetime | None:
    text = (request.query_parameters or {}).get(name)
    if text is None:
        return None
    if not _MILLISECONDS.fullmatch(text):
        raise InvalidRequest(name, "must be milliseconds since 1970")
    return from_ms(int(text))


TeamsAsked = Annotated[TeamsQuery, Depends(teams_query)]
TeamKeysAsked = Annotated[TeamKeysQuery, Depends(team_keys_query)]
ScopesAsked = Annotated[ScopesQuery, Depends(scopes_query)]
MembersAsked = Annotated[MembersQuery, Depends(members_query)]
