"""Query parameters of the endpoint that lists runs."""

import re
from dataclasses import dataclass
from typing import Annotated

from larder.usage.models import Period
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Depends, Request
from larder.web.queries.usage import parse_period

MAX_RUNS = 100
DEFAULT_RUNS = 20

_NUMBER = re.compile(r"[0-9]{1,3}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RUN_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_MOMENT = re.compile(r"[0-9]{1,14}")
_PLACE = re.compile(r"[0-9a-f]{12}#[A-Za-z0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class RunsQuery:
    """The runs of a period. `before` is where the page begins, None for the first one. `place` is that of one run."""

    period: Period
    limit: int
    before: str | None
    place: str | None


def runs_query(_token: BearerToken, request: Request) -> RunsQuery:
    """`from`, `to`, `limit` and `before`, or `id` and `startedAt` of a run. Raises InvalidRequest."""
    check_parameters(request, "from", "to", "limit", "before", "id", "startedAt")
    query = request.query_parameters or {}
    limit = query.get("limit", str(DEFAULT_RUNS))
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_RUNS:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_RUNS}")
    before = query.get("before")
    if before is not None and not _PLACE.fullmatch(before):
        raise InvalidRequest("before", "must be the `next` of the previous page")
    period = parse_period(query.get("from"), query.get("to"))
    place = _place(query.get("id"), query.get("startedAt")) if "id" in query else None
    return RunsQuery(period=period, limit=int(limit), before=before, place=place)


def _place(id: str | None, started_at: str | None) -> str:
    if id is None or not _RUN_ID.fullmatch(id):
        raise InvalidRequest("id", "must be the id of a run")
    if started_at is None or not _MOMENT.fullmatch(started_at):
        raise InvalidRequest("startedAt", "must be the startedAt of the run")
    return f"{int(started_at):012x}#{id}"


@dataclass(frozen=True, slots=True)
class RunsToDeleteQuery:
    """The run at a place, or runs of a reporter."""

    place: str | None
    reporter: str | None


def runs_to_delete(_token: BearerToken, request: Request) -> RunsToDeleteQuery:
    """`id` and `startedAt` of a run, or `reporter`. Raises InvalidRequest."""
    check_parameters(request, "id", "startedAt", "reporter")
    query = request.query_parameters or {}
    id, started_at, reporter = (query.get(name) for name in ("id", "startedAt", "reporter"))
    if (reporter is None) == (id is None):
        raise InvalidRequest("id", "or reporter must be there, and not both")
    if reporter is not None:
        if not _ID.fullmatch(reporter):
            raise InvalidRequest("reporter", "must be the id of a key, session, user or rule")
        return RunsToDeleteQuery(None, reporter)
    return RunsToDeleteQuery(_place(id, started_at), None)


RunsToDelete = Annotated[RunsToDeleteQuery, Depends(runs_to_delete)]

RunsAsked = Annotated[RunsQuery, Depends(runs_query)]
