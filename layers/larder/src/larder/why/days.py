"""Runs over time: what each day of runs took, which branches cost it, and since when causes cost build time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta
from math import ceil

from larder.why.causes import Kind
from larder.why.figures import Reader
from larder.why.models import Point, Totals, sum_of

MAX_BRANCHES = 20
"""The most branches: those with the most build time."""

MAX_BEGUN = 5
"""The most causes that began: those with the most build time."""

_LEAST_RUNS = 2
"""A cause of one run is no trend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures:
    """The runs that started on a day of UTC. The durations are those of whole runs, None without runs.

    `slowest` is the run that took the longest. `unused` further runs asked the cache for nothing; nothing else counts
    them.
    """

    day: date
    runs: int
    unused: int
    median_ms: int | None
    p95_ms: int | None
    totals: Totals
    slowest: Point | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFigures:
    """The runs of a branch. `pull` is the number of its newest pull request, `last` its newest run."""

    branch: str | None
    pull: int | None
    runs: int
    totals: Totals
    last: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A cause that no commit made, with the first run that had it. `build_ms` is that of all `runs` since."""

    kind: Kind
    subject: str
    task: str | None
    runs: int
    build_ms: int
    first: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Not `complete` if there are more runs than were read: then the oldest days are too low."""

    complete: bool
    days: Sequence[DayFigures]
    branches: Sequence[BranchFigures]
    begun: Sequence[Begun]


def trend_of(
    points: Sequence[Point],
    first: date,
    last: date,
    *,
    branch: str | None,
    reader: Reader,
    complete: bool,
) -> Trend:
    """The trend of the days. `points` are the newest first. With `branch`, all but `branches` is of this one."""
    chosen = [point for point in points if branch in (None, point.branch)]
    by_day: dict[date, list[Point]] = defaultdict(list)
    for point in chosen:
        by_day[point.started_at.astimezone(UTC).date()].append(point)
    return Trend(
        complete=complete,
        days=[_day(day, by_day.get(day, ())) for day in _days(first, last)],
        branches=_branches(points),
        begun=_begun(chosen, reader),
    )


def _days(first: date, last: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def _day(day: date, points: Sequence[Point]) -> DayFigures:
    used = [point for point in points if point.used_cache]
    durations = sorted(point.duration_ms for point in used)
    return DayFigures(
        day=day,
        runs=len(used),
        unused=len(points) - len(used),
        median_ms=_percentile(durations, 50),
        p95_ms=_percentile(durations, 95),
        totals=sum_of(point.totals for point in used) if used else Totals(),
        slowest=max(used, key=lambda point: point.duration_ms, default=None),
    )


def _percentile(ordered: Sequence[int], percent: int) -> int | None:
    """The smallest value that at least `percent` of all do not exceed."""
    return ordered[ceil(len(ordered) * percent / 100) - 1] if ordered else None


def _branches(points: Iterable[Point]) -> list[BranchFigures]:
    found: dict[str | None, list[Point]] = defaultdict(list)
    for point in points:
        if point.used_cache:
            found[point.branch].append(point)
    figures = [
        BranchFigures(
            branch=branch,
            pull=next((point.pull for point in of_branch if point.pull is not None), None),
            runs=len(of_branch),
            totals=sum_of(point.totals for point in of_branch),
            last=of_branch[0],
        )
        for branch, of_branch in found.items()
    ]
    return sorted(figures, key=lambda one: -one.totals.built_ms)[:MAX_BRANCHES]


def _begun(points: Iterable[Point], reader: Reader) -> list[Begun]:
    """Causes that at least one compared run before did not have: the others began before these days."""
    compared = [
        (point, point.causes)
        for point in points
        if point.used_cache and point.causes is not None and reader.sees_scope(point.scope)
    ]
    found: dict[tuple[Kind, str, str | None], Begun] = {}
    for point, causes in compared:
        for kind, subject, task, build_ms in causes:
            key = kind, subject, task
            before = found.get(key) or Begun(
                kind=kind, subject=subject, task=task, runs=0, build_ms=0, first=point
            )
            found[key] = replace(
                before, runs=before.runs + 1, build_ms=before.build_ms + build_ms, first=point
            )
    oldest = compared[-1][0] if compared else None
    begun = [one for one in found.values() if one.runs >= _LEAST_RUNS and one.first is not oldest]
    return sorted(begun, key=lambda one: -one.build_ms)[:MAX_BEGUN]
