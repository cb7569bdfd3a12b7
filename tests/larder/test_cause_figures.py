"""What the explanations of several runs say together."""

from typing import Any

from larder.why.figures import Reader, built_again, causes_of, never_cached
from larder.why.history import hash_figures
from larder.why.models import Outcome, Run
from larder.why.records import ComparisonJson, SameHashJson
from tests.functions.usage.test_get_run import explanation
from tests.functions.usage.test_list_runs import HASH, run

BUILD, TEST = ("web", "build", Outcome.BUILT, 4_000), ("web", "test", Outcome.BUILT, 1_000)


def explained(*runs: Run) -> list[tuple[Run, ComparisonJson]]:
    return [(one, one.explanation) for one in runs if one.explanation]


def same(task: str, reason: str | None) -> SameHashJson:
    found: Any = {"task": task, "hash": HASH, "reason": reason, "certain": True, "at": None}
    found["evidence"] = []
    checked: SameHashJson = found
    return checked


def test_a_cause_is_added_up_over_runs() -> None:
    (cause,) = causes_of(
        explained(
            run(0, BUILD, explanation=explanation(), sha="1f0b", ci="GITHUB_ACTIONS"),
            run(1, BUILD, explanation=explanation(), sha="77aa"),
            run(2, BUILD),
        )
    )
    assert (cause.subject, cause.runs, cause.tasks, cause.build_ms) == ("NEXT_PUBLIC_SHA", 2, 6, 8_000)
    assert (cause.at_same_commit, cause.outside_ci, cause.hint) == (1, 1, "volatile_name")


def test_causes_of_other_subjects_and_kinds_are_others_the_expensive_first() -> None:
    (usual,) = explanation()["causes"]
    causes: Any = [{**usual, "subject": f"V{number}", "buildMs": number} for number in range(30)]
    found = causes_of(explained(run(0, BUILD, explanation=explanation(causes=causes))))
    assert [one.subject for one in found] == [f"V{number}" for number in range(29, 9, -1)]


def test_a_cause_keeps_its_advice_when_it_ends() -> None:
    (usual,) = explanation()["causes"]
    ended: Any = {**usual, "how": "removed", "hints": [], "advice": "variable"}
    newest = run(0, BUILD, explanation=explanation(causes=[ended]))
    (cause,) = causes_of(explained(newest, run(1, BUILD, explanation=explanation())))
    assert (cause.how, cause.hint, cause.advice) == ("changed", "volatile_name", "volatile-variable")
    assert cause.runs == 2


def test_builds_of_a_known_hash_by_reason() -> None:
    evicted = explanation(sameHash=[same("web#build", "evicted"), same("web#test", "not_cached")])
    unknown = explanation(sameHash=[same("web#test", None), same("web#lint", "evicted")])
    runs = [
        run(0, BUILD, TEST, explanation=evicted),
        run(1, BUILD, explanation=evicted),
        run(2, TEST, explanation=unknown),
    ]
    again = built_again(explained(*runs), {"ui#build": (2, 700)})
    assert [(one.reason, one.builds, one.build_ms, list(one.tasks)) for one in again] == [
        ("evicted", 2, 8_000, ["web#build"]),
        (None, 3, 1_700, ["web#test", "ui#build"]),
    ]


def test_repeated_builds_of_explained_runs_are_not_counted_twice() -> None:
    hashes = [HASH, HASH]
    runs = [
        run(0, BUILD, hashes=hashes),
        run(1, BUILD, hashes=hashes, explanation=explanation()),
        run(2, BUILD, hashes=hashes),
    ]
    figures = hash_figures(runs)
    assert figures.repeats["web", "build"].repeated == 2
    assert figures.unexplained == {"web#build": (1, 4_000)}


def test_tasks_that_are_never_cached_are_no_repeated_builds() -> None:
    notes: Any = [{"note": "not_cached", "subject": None, "count": 1, "tasks": ["web#build"]}]
    found = explanation(notes=notes, sameHash=[same("web#test", "not_cached")])
    assert {task for task in ("web#build", "web#test", "ui#build") if task in never_cached(found)} == {
        "web#build",
        "web#test",
    }
    runs = [run(number, BUILD, hashes=[HASH], explanation=found) for number in range(2)]
    assert hash_figures(runs).repeats == {}


def test_another_scope_does_not_have_what_a_run_reads() -> None:
    def of(number: int, scope: str | None) -> Run:
        return run(number, BUILD, hashes=[HASH], scope=scope)

    def repeated(*oldest_first: Run) -> int:
        return hash_figures(oldest_first[::-1]).repeats["web", "build"].repeated

    assert repeated(of(1, "ua"), of(0, "ua")) == repeated(of(1, None), of(0, "ua")) == 1
    assert repeated(of(1, "ua"), of(0, "ub")) == repeated(of(1, "ua"), of(0, None)) == 0


def test_the_explanation_of_another_scope_is_only_for_those_who_manage() -> None:
    of_job = run(0, BUILD, explanation=explanation(), scope="ca")
    assert Reader(sees_all=True).explanation_of(of_job)
    assert Reader(sees_all=False, scope="ca").explanation_of(of_job)
    assert Reader(sees_all=False, scope="cb").explanation_of(of_job) is None
