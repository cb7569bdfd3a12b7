"""Reported runs in replies: times in milliseconds, days in UTC."""

from collections.abc import Container, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Literal, NotRequired, TypedDict

from larder.clock import Milliseconds, to_iso_date, to_ms
from larder.records import shaped
from larder.usage.models import Period
from larder.web.replies.artifacts import WriterJson
from larder.web.replies.usage import PeriodJson
from larder.why.causes import Class, Kind
from larder.why.days import Trend
from larder.why.figures import Reader
from larder.why.hints import Hint
from larder.why.history import History
from larder.why.models import (
    BuiltAgain,
    CauseFigures,
    DeletedRuns,
    Explained,
    NoCauses,
    Outcome,
    Point,
    Repeats,
    Run,
    RunFigures,
    RunsPage,
    TaskFigures,
    Totals,
)
from larder.why.reasons import Reason
from larder.why.records import CauseJson, ComparisonJson

_Outcome = Literal["localHit", "remoteHit", "built", "failed"]
_OUTCOMES: Mapping[str, _Outcome] = {
    Outcome.LOCAL_HIT: "localHit",
    Outcome.REMOTE_HIT: "remoteHit",
    Outcome.BUILT: "built",
    Outcome.FAILED: "failed",
}

_MAX_NAMES = 3
_NO_REPEATS = Repeats(hashes=0)

MAX_TASK_FIGURES = 500
"""The most tasks of a reply: those with the most build time."""


class CausesJson(TypedDict):
    """Why a run missed. If `causes` is null, `missing` says why, such as that there is no run to compare with."""

    causes: ComparisonJson | None
    missing: NoCauses | None


class RecordedRunJson(CausesJson):
    """The run as it is counted. `recorded` is false if it was stored before."""

    id: str
    recorded: bool
    tasks: int


class DeletedRunsJson(TypedDict):
    """How many runs are deleted. If `hasMore`, the reporter may have more: send the request again."""

    deleted: int
    hasMore: bool


class RanTaskJson(TypedDict):
    """A task of a run. `ms` is how long it was built, or the time that its hit saved.

    `hash` is that of its artifact, and null if it was not stored.
    """

    package: str
    task: str
    outcome: _Outcome
    ms: int
    hash: str | None


class RunCauseJson(TypedDict):
    """A cause of other hashes, and how many tasks it reached."""

    kind: Kind
    subject: str
    task: str | None
    tasks: int


class RunJson(TypedDict):
    """A run. `title` is the subject of its commit, and `pull` the number of its pull request.

    `tasks` is the number of its tasks that ran, and `names` are their names, such as `build`, 20 at most. `built` has
    the failed ones, too. `timeSavedMs` is what turbo reports for its hits. `ran` is there if the request names the run:
    the tasks that are stored of it, those with the most time first. `topCauses` has the first three causes of its
    misses, and `sameHash` counts tasks that were built although their hash was known. Both are empty if the run was not
    compared, or the caller may not see it. A run that asked the cache for nothing has `usedCache` false, and is in no
    figures.
    """

    id: str
    startedAt: Milliseconds
    durationMs: int
    exitCode: int | None
    names: list[str]
    tasks: int
    localHits: int
    remoteHits: int
    built: int
    failed: int
    timeSavedMs: int
    branch: str | None
    sha: str | None
    title: str | None
    author: str | None
    pull: int | None
    ci: str | None
    client: str
    turboVersion: str | None
    usedCache: bool
    reporter: WriterJson
    topCauses: list[RunCauseJson]
    sameHash: int
    ran: NotRequired[list[RanTaskJson]]


class ShownRunJson(RunJson, CausesJson):
    """A run with its tasks, and why it missed."""


class TaskJson(TypedDict):
    """What became of one task of one package. `built` has the failed ones, too, and `builtMs` their time.

    `hashes` counts its different hashes. `repeated` counts builds of a hash that an earlier of the runs had built or
    restored, and `drift` builds with another hash than the first run of the same commit on the same CI.
    """

    package: str
    task: str
    runs: int
    localHits: int
    remoteHits: int
    built: int
    failed: int
    builtMs: int
    longestMs: int
    timeSavedMs: int
    hashes: int
    repeated: int
    repeatedMs: int
    drift: int
    driftMs: int


class RunTotalsJson(TypedDict):
    """What became of all tasks of the runs. `built` has the failed ones, too, and `builtMs` their time."""

    tasks: int
    localHits: int
    remoteHits: int
    built: int
    failed: int
    builtMs: int
    timeSavedMs: int


CauseFiguresJson = TypedDict(
    "CauseFiguresJson",
    {
        "kind": Kind,
        "subject": str,
        "task": str | None,
        "how": str,
        "more": int,
        "class": Class | None,
        "hint": Hint | None,
        "advice": str,
        "runs": int,
        "tasks": int,
        "buildMs": int,
        "atSameCommit": int,
        "outsideCi": int,
    },
)
"""A cause of other hashes, added up. `tasks` and `buildMs` are of all `runs` that had it.

`atSameCommit` counts the runs that were compared with a run of the same commit, and `outsideCi` those without a CI. The
rest is as the newest of the runs has it.
"""


class BuiltAgainJson(TypedDict):
    """Builds of a hash that an earlier run had, for one reason. It is null where no run was compared.

    `tasks` names three of the `taskCount` tasks.
    """

    reason: Reason | None
    builds: int
    buildMs: int
    tasks: list[str]
    taskCount: int


class UnusedJson(TypedDict):
    """The runs that asked the cache for nothing, and how long they built. No other figure counts them."""

    runs: int
    builtMs: int


class TaskFiguresJson(TypedDict):
    """The figures of the tasks, those with the most build time first, at most 500 of `count`.

    They are of `runs` runs. If the period has more, `complete` is false, and they are those since `since`. Of a run
    with more than 500 tasks, `tasks` has those with the most time, and `totals` all. `causes` has the 20 with the most
    build time, of the runs whose causes the caller sees.
    """

    runs: int
    since: Milliseconds | None
    complete: bool
    unused: UnusedJson
    totals: RunTotalsJson
    count: int
    tasks: list[TaskJson]
    causes: list[CauseFiguresJson]
    again: list[BuiltAgainJson]


class NextRunsJson(TypedDict):
    """Send `next` as `before` to get the next page. It is null on the last page, and pages can be short."""

    count: int
    next: str | None


class RunPlaceJson(TypedDict):
    """What names a run in requests, with its duration and its commit."""

    id: str
    startedAt: Milliseconds
    durationMs: int
    branch: str | None
    sha: str | None


class RunDayJson(RunTotalsJson):
    """The runs that started on a day of UTC, with the durations of whole runs: null without runs.

    `slowest` took the longest. `unused` counts further runs that asked the cache for nothing.
    """

    day: str
    runs: int
    unused: int
    medianMs: int | None
    p95Ms: int | None
    slowest: RunPlaceJson | None


class BranchJson(RunTotalsJson):
    """The runs of a branch, null if they name none. `pull` is the number of its newest pull request."""

    branch: str | None
    pull: int | None
    runs: int
    last: RunPlaceJson


class BegunJson(TypedDict):
    """A cause that no commit made, and that earlier runs of the period did not have. `first` had it first."""

    kind: Kind
    subject: str
    task: str | None
    runs: int
    buildMs: int
    first: RunPlaceJson


class TrendJson(TypedDict):
    """Each day of the period, of one branch if the request names it.

    `branches` has the 20 with the most build time, and `begun` five causes, of the runs whose causes the caller sees.
    If not `complete`, the oldest days have more runs than were counted.
    """

    complete: bool
    days: list[RunDayJson]
    branches: list[BranchJson]
    begun: list[BegunJson]


class RunsJson(PeriodJson, TypedDict):
    """The runs that started in the period, newest first. Only the first page has `figures`.

    With `by=day`, there is `trend`, and `runs` is empty.
    """

    runs: list[RunJson]
    pagination: NextRunsJson
    figures: NotRequired[TaskFiguresJson]
    trend: NotRequired[TrendJson]


class TaskHashJson(TypedDict):
    """What became of a hash of a task in the reported runs.

    `built` has the failed builds, too, and `builtMs` their time. The branches, commits and CIs are those of its newest
    runs, ten at most. A CI of null is a computer. `stored` is whether the caller can restore it now. `cause` is why the
    task got this hash, and `reason` why it was built although the hash was known. Both are null if no run says it.
    """

    package: str
    task: str
    hash: str
    firstAt: Milliseconds
    lastAt: Milliseconds
    built: int
    hits: int
    builtMs: int
    branches: list[str]
    shas: list[str]
    ci: list[str | None]
    stored: bool
    cause: CauseJson | None
    reason: Reason | None


class TaskHistoryJson(TypedDict):
    """Hashes, the last seen first, 100 at most. If not `complete`, there are older runs that were not read."""

    complete: bool
    hashes: list[TaskHashJson]


def history_json(history: History, stored: Container[str]) -> TaskHistoryJson:
    """`stored` has the hashes that the caller can restore now."""
    return {
        "complete": history.complete,
        "hashes": [
            shaped(TaskHashJson, one, ci=one.cis, stored=one.hash in stored)
            for one in history.hashes
        ],
    }


def recorded_run_json(run: Run, explained: Explained, *, recorded: bool) -> RecordedRunJson:
    return {
        "id": run.id,
        "recorded": recorded,
        "tasks": run.totals.tasks,
        **causes_json(explained),
    }


def causes_json(explained: Explained) -> CausesJson:
    return {"causes": explained.explanation, "missing": explained.missing}


def deleted_runs_json(deleted: DeletedRuns) -> DeletedRunsJson:
    return {"deleted": deleted.runs, "hasMore": deleted.has_more}


def run_json(period: Period, run: Run | None, reader: Reader) -> RunsJson:
    """A list of one run with its tasks, or of none."""
    body = runs_json(period, RunsPage(runs=[run] if run else [], before=None), None, reader)
    if run is not None:
        body["runs"][0]["ran"] = _ran_json(run)
    return body


def shown_run_json(run: Run, explained: Explained, reader: Reader) -> ShownRunJson:
    return {**_run_json(run, reader), "ran": _ran_json(run), **causes_json(explained)}


def _ran_json(run: Run) -> list[RanTaskJson]:
    return [
        {
            "package": package,
            "task": task,
            "outcome": _OUTCOMES[outcome],
            "ms": ms,
            "hash": hash,
        }
        for (package, task, outcome, ms), hash in zip_longest(
            run.tasks, run.hashes[: len(run.tasks)]
        )
    ]


def runs_json(
    period: Period, page: RunsPage, figures: RunFigures | None, reader: Reader
) -> RunsJson:
    body: RunsJson = {
        "from": to_iso_date(period.first),
        "to": to_iso_date(period.last),
        "runs": [_run_json(run, reader) for run in page.runs],
        "pagination": {"count": len(page.runs), "next": page.before},
    }
    if figures is not None:
        body["figures"] = {
            "runs": figures.runs,
            "since": _ms(figures.since),
            "complete": figures.complete,
            "unused": {"runs": figures.unused, "builtMs": figures.unused_ms},
            "totals": _totals_json(figures.totals),
            "count": len(figures.tasks),
            "tasks": [
                _task_json(task, figures.repeats.get((task.package, task.task), _NO_REPEATS))
                for task in figures.tasks[:MAX_TASK_FIGURES]
            ],
            "causes": [_cause_json(cause) for cause in figures.causes],
            "again": [_again_json(again) for again in figures.again],
        }
    return body


def trend_json(period: Period, trend: Trend) -> RunsJson:
    return {
        "from": to_iso_date(period.first),
        "to": to_iso_date(period.last),
        "runs": [],
        "pagination": {"count": 0, "next": None},
        "trend": {
            "complete": trend.complete,
            "days": [
                {
                    "day": to_iso_date(day.day),
                    "runs": day.runs,
                    "unused": day.unused,
                    "medianMs": day.median_ms,
                    "p95Ms": day.p95_ms,
                    "slowest": None if day.slowest is None else _place_json(day.slowest),
                    **_totals_json(day.totals),
                }
                for day in trend.days
            ],
            "branches": [
                {
                    "branch": one.branch,
                    "pull": one.pull,
                    "runs": one.runs,
                    "last": _place_json(one.last),
                    **_totals_json(one.totals),
                }
                for one in trend.branches
            ],
            "begun": [
                {
                    "kind": one.kind,
                    "subject": one.subject,
                    "task": one.task,
                    "runs": one.runs,
                    "buildMs": one.build_ms,
                    "first": _place_json(one.first),
                }
                for one in trend.begun
            ],
        },
    }


def _place_json(point: Point) -> RunPlaceJson:
    return shaped(RunPlaceJson, point)


def _run_json(run: Run, reader: Reader) -> RunJson:
    totals, explanation = run.totals, reader.explanation_of(run)
    return {
        "id": run.id,
        "startedAt": to_ms(run.started_at),
        "durationMs": run.duration_ms,
        "exitCode": run.exit_code,
        "names": list(run.names),
        "tasks": totals.tasks,
        "localHits": totals.local_hits,
        "remoteHits": totals.remote_hits,
        "built": totals.built,
        "failed": totals.failed,
        "timeSavedMs": totals.saved_ms,
        "branch": run.branch,
        "sha": run.sha,
        "title": run.title,
        "author": run.author,
        "pull": run.pull,
        "ci": run.ci,
        "client": run.client,
        "turboVersion": run.turbo_version,
        "usedCache": run.used_cache,
        "reporter": {"id": run.reporter.credential_id, "userId": run.reporter.holder_id},
        "topCauses": [
            {
                "kind": cause["kind"],
                "subject": cause["subject"],
                "task": cause["task"],
                "tasks": cause["directCount"] + cause["below"],
            }
            for cause in (explanation["causes"][:_MAX_NAMES] if explanation else [])
        ],
        "sameHash": explanation["sameHashCount"] if explanation else 0,
    }


def _cause_json(one: CauseFigures) -> CauseFiguresJson:
    return shaped(CauseFiguresJson, one, **{"class": one.class_})


def _again_json(again: BuiltAgain) -> BuiltAgainJson:
    return {
        "reason": again.reason,
        "builds": again.builds,
        "buildMs": again.build_ms,
        "tasks": list(again.tasks)[:_MAX_NAMES],
        "taskCount": len(again.tasks),
    }


def _totals_json(totals: Totals) -> RunTotalsJson:
    return shaped(RunTotalsJson, totals, timeSavedMs=totals.saved_ms)


def _task_json(one: TaskFigures, repeats: Repeats) -> TaskJson:
    return shaped(
        TaskJson,
        one,
        timeSavedMs=one.saved_ms,
        hashes=repeats.hashes,
        repeated=repeats.repeated,
        repeatedMs=repeats.repeated_ms,
        drift=repeats.drift,
        driftMs=repeats.drift_ms,
    )


def _ms(moment: datetime | None) -> Milliseconds | None:
    return None if moment is None else to_ms(moment)
