"""Read reported runs with the figures of their tasks, and delete them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

from larder.actor import Actor
from larder.concurrency import map_concurrently
from larder.errors import MissingRole, RunNotFound
from larder.settings import settings
from larder.why import repository, storage
from larder.why.days import Trend, trend_of
from larder.why.figures import Reader, built_again, causes_of
from larder.why.history import History, WantedHashes, hash_figures, history_of
from larder.why.models import DeletedRuns, Run, RunFigures, RunsPage, StoredRun, add_up, sum_of

MAX_FIGURE_RUNS = 1_000
"""The most runs that figures are made of."""

MAX_FIGURE_TASKS = 60_000
"""The most kept tasks that figures are made of: what a request can add up in a tenth of a second."""

MAX_FIGURE_PAGES = 10
"""The most pages that figures are made of. DynamoDB ends a page at 1 MB."""

MAX_POINT_PAGES = 5
"""The most pages of points that a trend is made of."""

MAX_DELETED = 200
"""The most runs that one request deletes."""

_AT_ONCE = 100

_ENOUGH_SHARED = 20
"""Runs of the shared scope among the newest ones, so that no older ones are looked for."""


def recent_runs(
    owner: str, first: datetime, end: datetime, *, limit: int, now: datetime
) -> list[Run]:
    """The newest runs that started from `first` on, but before `end`, the newest first.

    If they are many, and few are of the shared scope, older ones of that scope follow: pull requests can report any
    number of runs, and what main is compared with must still be found.
    """
    newest = list(_newest(owner, first, end, most=limit, most_tasks=None, now=now).runs)
    if len(newest) < limit or sum(run.scope is None for run in newest) >= _ENOUGH_SHARED:
        return newest
    # Those of the same millisecond can come again.
    places = {run.place for run in newest}
    older = repository.read_shared(
        owner,
        first,
        newest[-1].started_at + timedelta(milliseconds=1),
        most=_ENOUGH_SHARED,
        pages=MAX_FIGURE_PAGES,
        now=now,
    )
    return [*newest, *(run for run in older if run.place not in places)]


def read_runs(
    owner: str,
    first: date,
    last: date,
    *,
    branch: str | None = None,
    before: str | None,
    limit: int,
    now: datetime,
) -> RunsPage:
    """A page of the runs that started on these days of UTC, newest first. Only those of `branch`, if it is not None."""
    moments = _moments(first, last)
    page = repository.read_page(owner, *moments, before=before, limit=limit, now=now)
    return replace(page, runs=[run for run in page.runs if branch in (None, run.branch)])


def read_run(owner: str, place: str, *, now: datetime) -> Run | None:
    """The run at a place."""
    return repository.find(owner, place, now=now)


def find_run(owner: str, place: str, *, now: datetime) -> Run:
    """The same. Raises RunNotFound."""
    run = read_run(owner, place, now=now)
    if run is None:
        raise RunNotFound
    return run


def read_first_runs(
    owner: str,
    first: date,
    last: date,
    *,
    branch: str | None = None,
    reader: Reader,
    limit: int,
    now: datetime,
) -> tuple[RunsPage, RunFigures]:
    """The first page, and the figures of the newest runs of these days, as many as the limits above allow."""
    newest = _read_newest(owner, first, last, branch=branch, now=now)
    runs = newest.runs
    # What did not ask the cache has not missed it.
    used = [run for run in runs if run.used_cache]
    hashes = hash_figures(used)
    explained = [(run, found) for run in used if (found := reader.explanation_of(run))]
    has_more = len(runs) > limit or newest.before is not None
    figures = RunFigures(
        runs=len(used),
        since=runs[-1].started_at if runs else None,
        complete=newest.before is None,
        unused=len(runs) - len(used),
        unused_ms=sum(run.totals.built_ms for run in runs if not run.used_cache),
        totals=sum_of(run.totals for run in used),
        tasks=add_up(run.tasks for run in used),
        repeats=hashes.repeats,
        causes=causes_of(explained),
        again=built_again(explained, hashes.unexplained),
    )
    shown = runs[:limit]
    before = shown[-1].place if shown else newest.before
    return RunsPage(runs=shown, before=before if has_more else None), figures


def read_trend(
    owner: str,
    first: date,
    last: date,
    *,
    branch: str | None = None,
    reader: Reader,
    now: datetime,
) -> Trend:
    """What each of these days of UTC had of runs, for up to MAX_POINT_PAGES pages of 4,000 runs."""
    points, complete = repository.read_points(
        owner, *_moments(first, last), pages=MAX_POINT_PAGES, now=now
    )
    return trend_of(points, first, last, branch=branch, reader=reader, complete=complete)


def read_history(owner: str, wanted: WantedHashes, *, reader: Reader, now: datetime) -> History:
    """What became of the hashes of a task, or of hashes, in the newest runs that are kept."""
    today = now.date()
    kept = today - timedelta(days=settings().run_retention_days)
    newest = _read_newest(owner, kept, today, branch=None, now=now)
    return history_of(newest.runs, wanted, reader, complete=newest.before is None)


def _read_newest(
    owner: str, first: date, last: date, *, branch: str | None, now: datetime
) -> RunsPage:
    """The newest runs of these days, as many as the limits above allow. `before` is None if these are all."""
    newest = _newest(
        owner,
        *_moments(first, last),
        most=MAX_FIGURE_RUNS,
        most_tasks=MAX_FIGURE_TASKS,
        now=now,
    )
    return replace(newest, runs=[run for run in newest.runs if branch in (None, run.branch)])


def _newest(
    owner: str,
    start: datetime,
    end: datetime,
    *,
    most: int,
    most_tasks: int | None,
    now: datetime,
) -> RunsPage:
    """The newest runs of a time. `before` is None if these are all. Ends early after `most_tasks` tasks."""
    runs: list[Run] = []
    tasks, before = 0, None
    for _ in range(MAX_FIGURE_PAGES):
        page = repository.read_page(
            owner, start, end, before=before, limit=min(_AT_ONCE, most - len(runs)), now=now
        )
        runs += page.runs
        tasks += sum(len(run.tasks) for run in page.runs)
        before = page.before
        is_enough = len(runs) >= most or (most_tasks is not None and tasks >= most_tasks)
        if before is None or is_enough:
            break
    return RunsPage(runs=runs, before=before)


def delete_runs(
    owner: str, *, place: str | None, reporter: str | None, of: Actor | None
) -> DeletedRuns:
    """Delete the run at a place, or the newest ones of a reporter.

    `of` is the reporter whose runs the caller may delete, None for all. Its user counts only for a session: keys of one
    user, and jobs of one rule, cannot delete each other's. Raises MissingRole.
    """
    if place is not None:
        run = repository.find_stored(owner, place)
        if run is None:
            return DeletedRuns(0)
        by = run.reporter
        if of is not None and by.credential_id != of.credential_id and not _is_user(of, by.user_id):
            raise MissingRole
        return DeletedRuns(int(_delete(owner, run)))
    reporter = reporter or ""
    if of is not None and reporter != of.credential_id and not _is_user(of, reporter):
        raise MissingRole
    found, has_more = repository.runs_of(owner, reporter, most=MAX_DELETED, pages=MAX_FIGURE_PAGES)
    deleted = map_concurrently(partial(_delete, owner), found)
    return DeletedRuns(sum(deleted), has_more=has_more)


def delete_inputs(owner: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete the inputs of all runs of a deleted team. False if time ran out."""
    return storage.delete_all(owner, has_time)


def _delete(owner: str, run: StoredRun) -> bool:
    # First, so that a request that is sent again deletes what is left.
    if run.inputs is not None:
        storage.delete(owner, run)
    return repository.delete(owner, run.place)


def _is_user(of: Actor, user_id: str | None) -> bool:
    return user_id is not None and of.user_id == user_id


def _moments(first: date, last: date) -> tuple[datetime, datetime]:
    return _midnight(first), _midnight(last + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
