"""Record the runs that clients report, and read them with the figures of their tasks."""

from datetime import UTC, date, datetime, time, timedelta

from larder.rate_limits.models import RUNS_REPORTED
from larder.rate_limits.service import take_if_counted
from larder.runs import repository
from larder.runs.models import Run, RunFigures, RunsPage, add_up
from larder.settings import settings

MAX_FIGURE_RUNS = 1_000
"""The most runs that figures are made of: what a request can read and add up in a second or two."""

_AT_ONCE = 100


def record(owner: str, run: Run, *, now: datetime) -> bool:
    """Store a run. False if it is stored already. Raises TooManyRequests."""
    take_if_counted(f"runs#{owner}", RUNS_REPORTED, now=now)
    kept = timedelta(days=settings().run_retention_days)
    return repository.add(owner, run, expires_at=now + kept)


def read_runs(
    owner: str, first: date, last: date, *, before: str | None, limit: int, now: datetime
) -> RunsPage:
    """A page of the runs that started on these days of UTC, newest first."""
    return repository.read_page(owner, *_moments(first, last), before=before, limit=limit, now=now)


def read_first_runs(
    owner: str, first: date, last: date, *, limit: int, now: datetime
) -> tuple[RunsPage, RunFigures]:
    """The first page, and the figures of the newest MAX_FIGURE_RUNS runs of these days."""
    runs: list[Run] = []
    before = None
    while len(runs) < MAX_FIGURE_RUNS:
        most = min(_AT_ONCE, MAX_FIGURE_RUNS - len(runs))
        page = read_runs(owner, first, last, before=before, limit=most, now=now)
        runs += page.runs
        before = page.before
        if before is None:
            break
    has_more = len(runs) > limit or before is not None
    figures = RunFigures(
        runs=len(runs),
        since=runs[-1].started_at if runs else None,
        complete=before is None,
        tasks=add_up(runs),
    )
    shown = runs[:limit]
    return RunsPage(runs=shown, before=shown[-1].place if has_more else None), figures


def _moments(first: date, last: date) -> tuple[datetime, datetime]:
    return _midnight(first), _midnight(last + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
