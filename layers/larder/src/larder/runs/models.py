"""Reported runs of `turbo run`, and the figures of their tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from larder.actor import Actor
from larder.clock import to_ms


class Outcome(StrEnum):
    """What became of a task. The values are stored."""

    LOCAL_HIT = "l"
    REMOTE_HIT = "r"
    BUILT = "b"
    FAILED = "f"


@dataclass(frozen=True, slots=True)
class RunTask:
    """A task of a run. `ms` is the time that a hit saved, or that the build took.

    `package` is empty in a repository without packages.
    """

    package: str
    task: str
    hash: str
    outcome: Outcome
    ms: int

    @property
    def is_hit(self) -> bool:
        return self.outcome in (Outcome.LOCAL_HIT, Outcome.REMOTE_HIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, without what turbo's file says beyond that: no command, variables, inputs or user.

    `id` is turbo's. `ci` and the names of the branch and the commit are None if the client does not say them.
    """

    id: str
    started_at: datetime
    duration: timedelta
    exit_code: int | None
    turbo_version: str | None
    branch: str | None
    sha: str | None
    ci: str | None
    reporter: Actor
    tasks: Sequence[RunTask]

    @property
    def place(self) -> str:
        """Sorts by the time of the start."""
        return f"{to_ms(self.started_at):012x}#{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """What became of one task of one package in several runs.

    `built` has the failed ones, too. `longest_ms` is the longest build, 0 if there was none.
    """

    package: str
    task: str
    runs: int = 0
    local_hits: int = 0
    remote_hits: int = 0
    built: int = 0
    failed: int = 0
    built_ms: int = 0
    longest_ms: int = 0
    saved_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """Runs, newest first. `before` is the place to continue at, None on the last page."""

    runs: Sequence[Run]
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The figures of the tasks of `runs` runs, with the most build time first.

    Not `complete` if the period has more runs; then they are those from `since` on.
    """

    runs: int
    since: datetime | None
    complete: bool
    tasks: Sequence[TaskFigures]


def add_up(runs: Iterable[Run]) -> list[TaskFigures]:
    """The figures of each task of each package, those with the most build time first."""
    counts: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        for task in run.tasks:
            sums = counts.setdefault((task.package, task.task), [0] * 7)
            if task.is_hit:
                sums[0 if task.outcome is Outcome.LOCAL_HIT else 1] += 1
                sums[6] += task.ms
                continue
            sums[2] += 1
            sums[3] += task.outcome is Outcome.FAILED
            sums[4] += task.ms
            sums[5] = max(sums[5], task.ms)
    figures = [
        TaskFigures(
            package=package,
            task=task,
            runs=local + remote + built,
            local_hits=local,
            remote_hits=remote,
            built=built,
            failed=failed,
            built_ms=built_ms,
            longest_ms=longest_ms,
            saved_ms=saved_ms,
        )
        for (package, task), (
            local,
            remote,
            built,
            failed,
            built_ms,
            longest_ms,
            saved_ms,
        ) in counts.items()
    ]
    return sorted(figures, key=lambda one: (-one.built_ms, one.package, one.task))
