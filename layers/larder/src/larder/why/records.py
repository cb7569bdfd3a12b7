"""The JSON of a comparison: `larder why --json`, and the replies that explain a run. docs/why.md#json describes it."""

from typing import Literal, TypedDict

from larder.why.causes import Cause, Class, Kind
from larder.why.comparison import Comparison, NoteKind
from larder.why.hints import Hint
from larder.why.reasons import Evidence, Reason
from larder.why.summaries import Summary

MAX_CAUSES = 20
"""The most causes: those that cost most."""

MAX_NAMES = 10
"""The most names of tasks or values of a cause."""

MAX_LISTED = 100
"""The most tasks of each list other than the causes, and the most notes."""

Chosen = Literal["ancestor", "hashes", "newest", "asked"]
"""Why the run is the baseline: nearest ancestor, most equal hashes, newest run, or named by the caller."""


class ComparedRunJson(TypedDict):
    """One of the two runs. `startedAt` is null for a dry run, and `id` can be empty."""

    id: str
    startedAt: int | None
    sha: str | None
    branch: str | None
    turboVersion: str


class BaselineJson(ComparedRunJson):
    """The run that is compared with. `chosen` is null if two files are compared."""

    chosen: Chosen | None


class HintJson(TypedDict):
    """What is known about a cause, with at most ten values."""

    hint: Hint
    values: list[str]


CauseJson = TypedDict(
    "CauseJson",
    {
        "kind": Kind,
        "subject": str,
        "task": str | None,
        "how": str,
        "more": int,
        "values": list[str],
        "hints": list[HintJson],
        "commit": str | None,
        "class": Class | None,
        "direct": list[str],
        "directCount": int,
        "below": int,
        "alone": int,
        "buildMs": int,
        "advice": str,
    },
)
"""One reason for other hashes. `more` counts subjects that changed in the same way.

`direct` has ten of the `directCount` tasks whose own record differs, and `below` counts those that depend on them.
`alone` counts the tasks of both with no other cause. `class` is `code` if a tracked file differs between the commits,
`setup` if not, and null if that is not known.
"""


class SameHashJson(TypedDict):
    """A task that was built although a run before had its hash. `reason` is null if nobody looked for it.

    If the reason is not `certain`, it follows from the evidence only if nothing unusual happened. `at` is when it
    happened, in milliseconds.
    """

    task: str
    hash: str
    reason: Reason | None
    certain: bool
    at: int | None
    evidence: list[Evidence]


class NoteJson(TypedDict):
    """A difference that turbo does not hash, or a fact about `count` tasks. `tasks` has at most 100 of them."""

    note: NoteKind
    subject: str | None
    count: int
    tasks: list[str]


class ComparisonJson(TypedDict):
    """Why a run has other hashes than its baseline. Lists have at most 100 entries, and `causes` 20.

    `tasks` counts those of the run, `changed` those with another hash, and `restored` those of them that were restored
    nevertheless. `complete` is false if there are more causes.
    """

    baseline: BaselineJson
    run: ComparedRunJson
    tasks: int
    changed: int
    restored: int
    complete: bool
    causes: list[CauseJson]
    sameHash: list[SameHashJson]
    sameHashCount: int
    new: list[str]
    newCount: int
    gone: list[str]
    goneCount: int
    notes: list[NoteJson]


def record(comparison: Comparison, *, chosen: Chosen | None = None) -> ComparisonJson:
    """The JSON of a comparison, without the reasons of tasks with the same hash."""
    return {
        "baseline": {**_run(comparison.base), "chosen": chosen},
        "run": _run(comparison.run),
        "tasks": len(comparison.run.tasks),
        "changed": len(comparison.changed),
        "restored": len(comparison.restored),
        "complete": len(comparison.causes) <= MAX_CAUSES,
        "causes": [_cause(cause) for cause in comparison.causes[:MAX_CAUSES]],
        "sameHash": [
            {
                "task": id,
                "hash": comparison.run.tasks[id].hash,
                "reason": None,
                "certain": False,
                "at": None,
                "evidence": [],
            }
            for id in comparison.same_hash[:MAX_LISTED]
        ],
        "sameHashCount": len(comparison.same_hash),
        "new": list(comparison.new[:MAX_LISTED]),
        "newCount": len(comparison.new),
        "gone": list(comparison.gone[:MAX_LISTED]),
        "goneCount": len(comparison.gone),
        "notes": [
            {
                "note": note.note,
                "subject": note.subject or None,
                "count": len(note.tasks),
                "tasks": list(note.tasks[:MAX_LISTED]),
            }
            for note in comparison.notes[:MAX_LISTED]
        ],
    }


def _run(run: Summary) -> ComparedRunJson:
    return {
        "id": run.id,
        "startedAt": run.started_at,
        "sha": run.sha,
        "branch": run.branch,
        "turboVersion": run.turbo,
    }


def _cause(cause: Cause) -> CauseJson:
    return {
        "kind": cause.kind,
        "subject": cause.subject,
        "task": cause.task or None,
        "how": cause.how,
        "more": len(cause.more),
        "values": list(cause.values[:MAX_NAMES]),
        "hints": [
            {"hint": hint, "values": list(values[:MAX_NAMES])} for hint, values in cause.hints
        ],
        "commit": cause.commit,
        "class": cause.class_,
        "direct": list(cause.direct[:MAX_NAMES]),
        "directCount": cause.own.bit_count(),
        "below": cause.tasks - cause.own.bit_count(),
        "alone": cause.alone,
        "buildMs": cause.build_ms,
        "advice": cause.advice,
    }
