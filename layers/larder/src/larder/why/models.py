"""Reported runs of `turbo run`, the figures of their tasks, and explanations of their misses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import nlargest
from typing import Any, NamedTuple, Protocol

from larder.actor import Actor
from larder.artifacts.models import View
from larder.clock import to_ms
from larder.rate_limits.reports import Sender
from larder.teams.models import Team
from larder.why.causes import Class, Kind
from larder.why.hints import Hint
from larder.why.reasons import Reason
from larder.why.records import CauseJson, ComparisonJson

MAX_TASKS = 5_000
"""The most tasks of a report."""

MAX_UNPACKED = 32_000_000
"""The most bytes of a report with inputs. No stored inputs are larger."""

MAX_KEPT_TASKS = 500
"""The most tasks of a run that are kept for the figures: those with the most time."""

MAX_KEPT_NAMES = 20
"""The most names of tasks that are kept for the list of runs."""

MAX_NAME = 100
"""The most characters of a package's or a task's name. Longer ones are cut."""


MAX_TITLE = 100
"""The most characters of the subject of a commit that are kept."""

TURBO = "turbo"
"""The client of a run that names none."""


class Outcome(StrEnum):
    """What became of a task. The values are stored."""

    LOCAL_HIT = "l"
    REMOTE_HIT = "r"
    BUILT = "b"
    FAILED = "f"


class RunTask(NamedTuple):
    """A task of a run. `ms` is the time that a hit saved, or that the build took.

    `package` is empty in a repository without packages.
    """

    package: str
    task: str
    outcome: str
    ms: int


TaskRow = tuple[str, str, str, int]
"""A RunTask that was read: making a hundred thousand tuples takes a third of the time."""


class Totals(NamedTuple):
    """What became of the tasks of runs. `built` has the failed ones, too. Stored in this order."""

    tasks: int = 0
    local_hits: int = 0
    remote_hits: int = 0
    built: int = 0
    failed: int = 0
    built_ms: int = 0
    saved_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, without what turbo's file says beyond that: no command, variables, inputs or user.

    `id` is that of the `client`, the build tool that ran the tasks. `ci` and what git and the CI say of the commit are
    None if the client does not say them: `title` is its subject, `pull` the number of its pull request. `used_cache` is
    false if its tool asked this cache for nothing: what it built are no misses. `names` are those of its tasks, such as
    `build`, and `totals` their figures. `tasks` are some of them (`kept`), and `hashes` those of their artifacts, in
    the same order. It can have fewer, or none.

    `scope` is the scope of its reporter as for artifacts, None for the shared one. It is `trusted` if its reporter is,
    and in a team without protection if a CI reported it. `inputs` is the end of the name of its object, None without
    one; only a run with inputs can be a baseline. A run that `only_reads` could not store what it built. `explanation`
    is why it missed, None if nothing was compared.
    """

    id: str
    started_at: datetime
    duration: timedelta
    exit_code: int | None
    turbo_version: str | None
    client: str = TURBO
    branch: str | None
    sha: str | None
    title: str | None = None
    author: str | None = None
    pull: int | None = None
    ci: str | None
    used_cache: bool = True
    reporter: Actor
    names: Sequence[str]
    totals: Totals
    tasks: Sequence[TaskRow]
    hashes: Sequence[str | None] = ()
    scope: str | None = None
    trusted: bool = False
    inputs: str | None = None
    only_reads: bool = False
    explanation: ComparisonJson | None = None

    @property
    def has_inputs(self) -> bool:
        return self.inputs is not None

    @property
    def duration_ms(self) -> int:
        return round(self.duration / timedelta(milliseconds=1))

    @property
    def ended_at(self) -> datetime:
        return self.started_at + self.duration

    @property
    def place(self) -> str:
        """Sorts by the time of the start."""
        return f"{to_ms(self.started_at):012x}#{self.id}"


PointCause = tuple[Kind, str, str | None, int]
"""Kind, subject and task of a cause, and the build time in milliseconds that it cost."""


class Point(NamedTuple):
    """A run as a point of a chart: what trends of thousands of runs are made of.

    `causes` are those that no commit made, the three with the most build time. It is None if the run was not compared.
    """

    id: str
    started_at: datetime
    duration_ms: int
    branch: str | None
    sha: str | None
    pull: int | None
    used_cache: bool
    totals: Totals
    scope: str | None
    causes: Sequence[PointCause] | None


class WithInputs(Protocol):
    """What the name of a run's object follows from."""

    @property
    def place(self) -> str: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def inputs(self) -> str | None: ...


class StoredRun(NamedTuple):
    """A run as far as its deletion goes. `reporter` is who reported it."""

    place: str
    reporter: Actor
    scope: str | None
    inputs: str | None


class DeletedRuns(NamedTuple):
    """How many runs were deleted, and whether the reporter may have more."""

    runs: int
    has_more: bool = False


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


class Repeats(NamedTuple):
    """How the hash of one task changed in several runs.

    `hashes` counts the different ones. `repeated` counts builds of a hash that an earlier run had built, or had from a
    cache. `drift` counts builds with another hash than the first run of the same commit on the same CI: computers are
    left out, because they can have uncommitted changes. The times are those of these builds.
    """

    hashes: int
    repeated: int = 0
    repeated_ms: int = 0
    drift: int = 0
    drift_ms: int = 0


@dataclass(slots=True)
class CauseFigures:
    """A cause of other hashes in several runs. It is the same one if kind, subject and task are.

    `tasks` and `build_ms` are those that it reached in all `runs` together. `at_same_commit` counts the runs whose
    baseline had the same commit, and `outside_ci` those on a computer. The rest is as the newest run with a hint has
    it, or the newest run.
    """

    kind: Kind
    subject: str
    task: str | None
    how: str = ""
    more: int = 0
    class_: Class | None = None
    hint: Hint | None = None
    advice: str = ""
    runs: int = 0
    tasks: int = 0
    build_ms: int = 0
    at_same_commit: int = 0
    outside_ci: int = 0

    def describe(self, cause: CauseJson) -> None:
        self.how, self.more = cause["how"], cause["more"]
        self.class_, self.advice = cause["class"], cause["advice"]
        self.hint = cause["hints"][0]["hint"] if cause["hints"] else None


@dataclass(slots=True, kw_only=True)
class BuiltAgain:
    """Builds of a hash that an earlier run had, for one reason. It is None where nothing was compared.

    `tasks` are the ids of their tasks.
    """

    reason: Reason | None
    builds: int = 0
    build_ms: int = 0
    tasks: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """Runs, newest first. `before` is the place to continue at, None on the last page."""

    runs: Sequence[Run]
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The figures of the tasks of `runs` runs, with the most build time first. `totals` are of all of their tasks.

    `unused` further runs asked the cache for nothing, and built for `unused_ms`. Nothing else counts them.

    `repeats` are by package and task, of those whose hashes are kept. `causes` and `again` have the most build time
    first. Not `complete` if the period has more runs; then they are those from `since` on.
    """

    runs: int
    since: datetime | None
    complete: bool
    unused: int
    unused_ms: int
    totals: Totals
    tasks: Sequence[TaskFigures]
    repeats: Mapping[tuple[str, str], Repeats]
    causes: Sequence[CauseFigures]
    again: Sequence[BuiltAgain]


def kept(tasks: Sequence[RunTask]) -> list[RunTask]:
    """The tasks that are kept for the figures, with the most time first."""
    return nlargest(MAX_KEPT_TASKS, tasks, key=lambda task: task.ms)


def kept_with_hashes(tasks: Iterable[tuple[RunTask, str]]) -> list[tuple[RunTask, str]]:
    """The same as `kept`, with the hashes of their artifacts."""
    return nlargest(MAX_KEPT_TASKS, tasks, key=lambda item: item[0].ms)


def names_of(tasks: Iterable[RunTask]) -> list[str]:
    """The names that are kept for the list of runs, in their order."""
    return list(dict.fromkeys(task.task for task in tasks))[:MAX_KEPT_NAMES]


def totals_of(tasks: Iterable[RunTask]) -> Totals:
    return sum_of(
        Totals(
            figures.runs,
            figures.local_hits,
            figures.remote_hits,
            figures.built,
            figures.failed,
            figures.built_ms,
            figures.saved_ms,
        )
        for figures in add_up([tasks])
    )


def sum_of(totals: Iterable[Totals]) -> Totals:
    return Totals(*map(sum, zip(*totals, strict=True)))


def add_up(runs: Iterable[Iterable[TaskRow]]) -> list[TaskFigures]:
    """The figures of each task of each package, those with the most build time first."""
    counts: dict[tuple[str, str], list[int]] = {}
    for tasks in runs:
        for package, task, outcome, ms in tasks:
            sums = counts.get((package, task))
            if sums is None:
                sums = counts[package, task] = [0] * 7
            if outcome == "r":
                sums[1] += 1
                sums[6] += ms
            elif outcome == "l":
                sums[0] += 1
                sums[6] += ms
            else:
                sums[2] += 1
                sums[3] += outcome == "f"
                sums[4] += ms
                if ms > sums[5]:
                    sums[5] = ms
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
    return sorted(figures, key=lambda task: (-task.built_ms, task.package, task.task))


class NoCauses(StrEnum):
    """Why a run is not explained."""

    INPUTS_OFF = "inputs_off"
    """The team keeps no inputs of runs."""
    NO_INPUTS = "no_inputs"
    """The report has none."""
    CACHE_UNUSED = "cache_unused"
    """The run asked the cache for nothing."""
    NO_BASELINE = "no_baseline"
    """There is no run to compare with."""
    NO_TIME = "no_time"
    TOO_MANY = "too_many"
    """The caller, the team or the deployment has stored too many inputs today."""
    FAILED = "failed"


class Explained(NamedTuple):
    """The explanation, or why there is none."""

    explanation: ComparisonJson | None = None
    missing: NoCauses | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who reports or asks, and what they see of the artifacts. `team` is None for a user's own cache.

    `own_scope` is the scope that the caller writes in a protected team, None for the shared one. What others are
    compared with comes from callers who are `trusted`. A caller that `only_reads` never is. What the caller stores is
    counted for `sender`, and comparisons for `compares_as`.
    """

    sender: Sender
    compares_as: str
    team: Team | None
    view: View
    trusted: bool
    only_reads: bool
    actor: Actor

    @property
    def owner(self) -> str:
        return self.sender.owner

    @property
    def own_scope(self) -> str | None:
        return self.view.scope


Report = Mapping[str, Any]
"""The JSON of `larder.why.inputs`, of the right shape."""
