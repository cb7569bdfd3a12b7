"""What the explanations of several runs say together: which causes cost the most, and why hashes were built again."""

from collections.abc import Iterable, Mapping, Set
from itertools import chain
from typing import NamedTuple

from larder.why.causes import Kind
from larder.why.models import BuiltAgain, CauseFigures, Outcome, Run
from larder.why.reasons import Reason
from larder.why.records import ComparisonJson

_NONE: Set[str] = frozenset()

MAX_CAUSES = 20
"""The most causes of figures: those with the most build time."""


class Reader(NamedTuple):
    """Whose runs a caller sees the explanations of: those of everyone, or of the shared scope and their own."""

    sees_all: bool
    scope: str | None = None

    def sees(self, run: Run) -> bool:
        return self.sees_scope(run.scope)

    def sees_scope(self, scope: str | None) -> bool:
        return self.sees_all or scope in (None, self.scope)

    def explanation_of(self, run: Run) -> ComparisonJson | None:
        return run.explanation if self.sees(run) else None


def causes_of(explained: Iterable[tuple[Run, ComparisonJson]]) -> list[CauseFigures]:
    """The causes of runs with their explanations, the newest first, added up. Those with the most build time first."""
    found: dict[tuple[Kind, str, str | None], CauseFigures] = {}
    for run, explanation in explained:
        sha = explanation["baseline"]["sha"]
        for cause in explanation["causes"]:
            key = cause["kind"], cause["subject"], cause["task"]
            figures = found.get(key)
            # A run in which the cause ends has no hint, such as that git does not track the file.
            if figures is None:
                figures = found[key] = CauseFigures(*key)
            if figures.runs == 0 or (figures.hint is None and cause["hints"]):
                figures.describe(cause)
            figures.runs += 1
            figures.tasks += cause["directCount"] + cause["below"]
            figures.build_ms += cause["buildMs"]
            figures.at_same_commit += sha is not None and sha == run.sha
            figures.outside_ci += run.ci is None
    most = sorted(
        found.values(), key=lambda figures: (-figures.build_ms, figures.kind, figures.subject)
    )
    return most[:MAX_CAUSES]


def built_again(
    explained: Iterable[tuple[Run, ComparisonJson]], unexplained: Mapping[str, tuple[int, int]]
) -> list[BuiltAgain]:
    """The builds of a hash that an earlier run had, by reason, those with the most build time first.

    `unexplained` has those in runs without an explanation and their time, by the id of the task.
    """
    found: dict[Reason | None, BuiltAgain] = {}

    def add(reason: Reason | None, task: str, builds: int, ms: int) -> None:
        again = found.setdefault(reason, BuiltAgain(reason=reason))
        again.builds += builds
        again.build_ms += ms
        again.tasks[task] = None

    for run, explanation in explained:
        times = {
            task_id(package, task): ms
            for package, task, outcome, ms in run.tasks
            if outcome == Outcome.BUILT
        }
        for same in explanation["sameHash"]:
            if same["reason"] != Reason.NOT_CACHED and same["task"] in times:
                add(same["reason"], same["task"], 1, times[same["task"]])
    for task, (builds, ms) in unexplained.items():
        add(None, task, builds, ms)
    return sorted(found.values(), key=lambda again: -again.build_ms)


def never_cached(explanation: ComparisonJson | None) -> Set[str]:
    """The ids of tasks whose `cache` is false, as far as the explanation has them."""
    if explanation is None:
        return _NONE
    listed = (note["tasks"] for note in explanation["notes"] if note["note"] == "not_cached")
    same = explanation["sameHash"]
    reasons = (task["task"] for task in same if task["reason"] == Reason.NOT_CACHED)
    return frozenset((*chain.from_iterable(listed), *reasons))


def task_id(package: str, task: str) -> str:
    """As in explanations: web#build."""
    return f"{package}#{task}" if package else task
