"""How many teams a request asks for, and after which."""

import re
from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder.errors import InvalidRequest
from larder.teams.service import names_a_team
from larder.web.parameters import BearerToken

MAX_TEAMS = 100
DEFAULT_TEAMS = 20

_NUMBER = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class TeamsQuery:
    """At most `limit` teams; `until` is the `next` of the page before, None for the first one."""

    limit: int
    until: str | None


def teams_query(_token: BearerToken, request: Request) -> TeamsQuery:
    """Raises InvalidRequest naming the parameter."""
    query = request.query_parameters or {}
    limit = query.get("limit", str(DEFAULT_TEAMS))
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_TEAMS:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_TEAMS}")
    until = query.get("until")
    if until is not None and not names_a_team(until):
        raise InvalidRequest("until", "must be the `next` of the page before")
    return TeamsQuery(limit=int(limit), until=until)


TeamsAsked = Annotated[TeamsQuery, Depends(teams_query)]
