"""What became of each hash of the tasks of reported runs, from the hashes that the runs keep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from larder.why.figures import Reader, never_cached, task_id
from larder.why.models import Outcome, Repeats, Run
from larder.why.reasons import Reason
from larder.why.records import CauseJson, ComparisonJson

MAX_HASHES = 100
"""The most hashes of a history: the newest."""

MAX_NAMES = 10
"""The most branches, commits and CIs of a hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedHashes:
    """All hashes of a task, or with `task` None these hashes of any task."""

    package: str = ""
    task: str | None = None
    hashes: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class HashHistory:
    """What became of one hash of a task. `built` has the failed builds, too.

    The branches, commits and CIs are those of its newest runs. A CI of None is a computer. `cause` is the first cause
    that names the task in the newest run that was compared, and `reason` is why it was built although its hash was
    known. `built_in` and `hit_in` are the newest runs that built it and that had it from a cache.
    """

    package: str
    task: str
    hash: str
    first_at: datetime
    last_at: datetime
    built: int = 0
    hits: int = 0
    built_ms: int = 0
    branches: list[str] = field(default_factory=list)
    shas: list[str] = field(default_factory=list)
    cis: list[str | None] = field(default_factory=list)
    cause: CauseJson | None = None
    reason: Reason | None = None
    built_in: Run | None = None
    hit_in: Run | None = None


@dataclass(frozen=True, slots=True)
class History:
    """Hashes, the last seen first. Not `complete` if there are older runs that were not read."""

    hashes: Sequence[HashHistory]
    complete: bool


def history_of(
    runs: Iterable[Run], wanted: WantedHashes, reader: Reader, *, complete: bool
) -> History:
    """`runs` are the newest first. Those that asked the cache for nothing are left out."""
    found: dict[tuple[str, str, str], HashHistory] = {}
    for run in runs:
        if not run.used_cache:
            continue
        known = _Known(reader.explanation_of(run))
        for (package, task, outcome, ms), hash in zip(run.tasks, run.hashes, strict=False):
            if hash is None or not _is_wanted(wanted, package, task, hash):
                continue
            figures = found.get((package, task, hash))
            if figures is None:
                figures = found[package, task, hash] = HashHistory(
                    package=package,
                    task=task,
                    hash=hash,
                    first_at=run.started_at,
                    last_at=run.started_at,
                )
            figures.first_at = run.started_at
            if _is_hit(outcome):
                figures.hits += 1
                figures.hit_in = figures.hit_in or run
            else:
                figures.built += 1
                figures.built_in = figures.built_in or run
                figures.built_ms += ms
            id = task_id(package, task)
            figures.cause = figures.cause or known.causes.get(id)
            figures.reason = figures.reason or known.reasons.get(id)
            for names, name in ((figures.branches, run.branch), (figures.shas, run.sha)):
                if name is not None and name not in names and len(names) < MAX_NAMES:
                    names.append(name)
            if run.ci not in figures.cis and len(figures.cis) < MAX_NAMES:
                figures.cis.append(run.ci)
    return History(list(found.values())[:MAX_HASHES], complete)


class _Known:
    """The first cause and the first reason of each task that an explanation names, by the task's id."""

    def __init__(self, explanation: ComparisonJson | None) -> None:
        self.causes: dict[str, CauseJson] = {}
        self.reasons: dict[str, Reason | None] = {}
        if explanation is not None:
            for cause in explanation["causes"]:
                for id in cause["direct"]:
                    self.causes.setdefault(id, cause)
            for same in explanation["sameHash"]:
                self.reasons.setdefault(same["task"], same["reason"])


def _is_wanted(wanted: WantedHashes, package: str, task: str, hash: str) -> bool:
    if wanted.task is None:
        return hash in wanted.hashes
    return (package, task) == (wanted.package, wanted.task)


@dataclass(frozen=True, slots=True)
class HashFigures:
    """How the hashes of tasks changed.

    `repeats` are by package and task. `unexplained` has the repeated builds in runs without an explanation and their
    time, by the id of the task.
    """

    repeats: Mapping[tuple[str, str], Repeats]
    unexplained: Mapping[str, tuple[int, int]]


def hash_figures(runs: Sequence[Run]) -> HashFigures:
    """`runs` are the newest first. Tasks whose `cache` is false are left out of runs that say so."""
    seen: dict[tuple[str, str], _Seen] = {}
    for run in reversed(runs):
        scope, is_explained = run.scope, run.explanation is not None
        # A computer can have uncommitted changes.
        commit = None if run.sha is None or run.ci is None else f"{run.sha} {run.ci}"
        uncached = never_cached(run.explanation)
        # One step for tens of thousands of tasks, without calls.
        for (package, task, outcome, ms), hash in zip(run.tasks, run.hashes, strict=False):
            if hash is None or (uncached and task_id(package, task) in uncached):
                continue
            of_task = seen.get((package, task))
            if of_task is None:
                of_task = seen[package, task] = _Seen(set(), set(), {}, [0] * 6)
            hashes, cached, at_commit, sums = of_task
            hashes.add(hash)
            if outcome == "b" and (hash in cached or (scope and (hash, scope) in cached)):
                sums[0] += 1
                sums[1] += ms
                if not is_explained:
                    sums[4] += 1
                    sums[5] += ms
            if outcome != "f":
                cached.add(hash if scope is None else (hash, scope))
            if commit is not None:
                first = at_commit.setdefault(commit, hash)
                if first != hash and outcome in "bf":
                    sums[2] += 1
                    sums[3] += ms
    return HashFigures(
        repeats={
            key: Repeats(len(figures.hashes), *figures.sums[:4]) for key, figures in seen.items()
        },
        unexplained={
            task_id(*key): (figures.sums[4], figures.sums[5])
            for key, figures in seen.items()
            if figures.sums[4]
        },
    )


class _Seen(NamedTuple):
    """What the runs up to one had of a task.

    `cached` has the hashes that were stored or restored, and those of an own scope with it. `at_commit` has the first
    hash of each commit and CI. `sums` are the last four figures of Repeats, then the repeated builds without an
    explanation and their time.
    """

    hashes: set[str]
    cached: set[str | tuple[str, str]]
    at_commit: dict[str, str]
    sums: list[int]


def _is_hit(outcome: str) -> bool:
    return outcome in (Outcome.LOCAL_HIT, Outcome.REMOTE_HIT)
