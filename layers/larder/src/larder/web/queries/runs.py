"""Query parameters of the endpoints of runs."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from larder.usage.models import Period
from larder.web.declared import NEXT, limit, matching, text
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Request
from larder.web.queries.usage import FROM, TO, parse_period
from larder.why.history import WantedHashes
from larder.why.models import MAX_NAME

MAX_RUNS = 100
DEFAULT_RUNS = 20
MAX_BRANCH = 255

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RUN_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_MOMENT = re.compile(r"[0-9]{1,14}")
_PLACE = re.compile(r"[0-9a-f]{12}#[A-Za-z0-9]{1,64}")

LIMIT = limit(MAX_RUNS, DEFAULT_RUNS, "runs")
BEFORE = text("before", "`next` of the previous page.")
BRANCH = text(
    "branch",
    "Only runs of this branch. The figures are then of these runs.",
    {"type": "string", "maxLength": MAX_BRANCH},
)
BY = text(
    "by",
    "In place of runs: what each day of the period had of them (`trend`).",
    {"type": "string", "enum": ["day"]},
)
SHOWN = text("id", "The id of one run to get with its tasks. Needs `startedAt`.")
AGAINST = matching(
    "against",
    re.compile(r"[A-Za-z0-9]{1,64}"),
    "must be main, last, ci or the id of a run",
    "The run to compare with: `main`, `last` (your last one), `ci`, or the id of a run. Without it, Larder chooses one "
    "for a report, and shows the stored causes of a run.",
)
ID = text("id", "The id of the run to delete. Needs `startedAt`.")
STARTED_AT = text("startedAt", "`startedAt` of the run.")
REPORTER = text(
    "reporter",
    "In place of `id`: the id of a key, session, user or rule. Its newest 200 runs are deleted.",
)


@dataclass(frozen=True, slots=True)
class RunsQuery:
    """The runs of a period, of all branches if `branch` is None.

    `before` is where the page begins, None for the first one. `place` is that of one run. With `by_day`, the trend of
    the days is asked for.
    """

    period: Period
    branch: str | None
    limit: int
    before: str | None
    place: str | None
    by_day: bool


def runs_query(_token: BearerToken, request: Request) -> RunsQuery:
    """`from`, `to`, `branch` and `by`, or `limit` and `before`, or `id` and `startedAt`. Raises InvalidRequest."""
    check_parameters(request, FROM, TO, BRANCH, BY, LIMIT, BEFORE, SHOWN, STARTED_AT)
    by = BY(request)
    if by not in (None, "day"):
        raise InvalidRequest("by", "must be day, or not be there")
    limit, before, id = LIMIT(request), BEFORE(request), SHOWN(request)
    if before is not None and not _PLACE.fullmatch(before):
        raise InvalidRequest("before", NEXT)
    period = parse_period(FROM(request), TO(request))
    place = None if id is None else _place(id, STARTED_AT(request))
    branch = BRANCH(request)
    if branch is not None and not 0 < len(branch) <= MAX_BRANCH:
        raise InvalidRequest("branch", f"must have 1 to {MAX_BRANCH} characters")
    return RunsQuery(
        period=period,
        branch=branch,
        limit=limit,
        before=before,
        place=place,
        by_day=by is not None,
    )


def asked_baseline(_token: BearerToken, request: Request) -> str | None:
    """`?against=`. Raises InvalidRequest."""
    check_parameters(request, AGAINST)
    return AGAINST(request)


class RunQuery(NamedTuple):
    """The run at a place, and the one to compare it with. Without one, the stored explanation is asked for."""

    place: str
    against: str | None


def run_query(_token: BearerToken, request: Request) -> RunQuery:
    """The run that the path names, which started at `startedAt`, and `against`. Raises InvalidRequest."""
    check_parameters(request, STARTED_AT, AGAINST)
    place = _place(request.path_parameters["run_id"], STARTED_AT(request))
    return RunQuery(place, AGAINST(request))


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
    check_parameters(request, ID, STARTED_AT, REPORTER)
    id, started_at, reporter = ID(request), STARTED_AT(request), REPORTER(request)
    if (reporter is None) == (id is None):
        raise InvalidRequest("id", "or reporter must be there, and not both")
    if reporter is not None:
        if not _ID.fullmatch(reporter):
            raise InvalidRequest("reporter", "must be the id of a key, session, user or rule")
        return RunsToDeleteQuery(None, reporter)
    return RunsToDeleteQuery(_place(id, started_at), None)


MAX_WANTED = 100
"""The most hashes of a request."""

_HASH = re.compile(r"[0-9a-f]{16}")
PACKAGE = text("package", "The package. Empty, or not there, in a repository without packages.")
TASK = text("task", "The task of the package, such as `build`.")
HASHES = text(
    "hashes",
    f"In place of `task`: up to {MAX_WANTED} hashes of turbo, separated by commas, to find out which task they are of.",
    {"type": "string", "pattern": "[0-9a-f]{16}(?:,[0-9a-f]{16})*"},
)


def history_query(_token: BearerToken, request: Request) -> WantedHashes:
    """`package` and `task`, or `hashes`. Raises InvalidRequest."""
    check_parameters(request, PACKAGE, TASK, HASHES)
    package, task, hashes = PACKAGE(request) or "", TASK(request), HASHES(request)
    if (task is None) == (hashes is None):
        raise InvalidRequest("task", "or hashes must be there, and not both")
    if hashes is None:
        for name, value in (("package", package), ("task", task or "")):
            if len(value) > MAX_NAME:
                raise InvalidRequest(name, f"must have at most {MAX_NAME} characters")
        return WantedHashes(package=package, task=task)
    wanted = frozenset(hashes.split(","))
    if len(wanted) > MAX_WANTED or not all(map(_HASH.fullmatch, wanted)):
        raise InvalidRequest(
            "hashes", f"must be at most {MAX_WANTED} hashes of turbo, separated by commas"
        )
    return WantedHashes(hashes=wanted)
