"""How the hashes of tasks change from run to run."""

from typing import Any

from larder.why.history import hash_figures
from larder.why.models import Outcome, Repeats, Run
from tests.functions.usage.test_list_runs import run

ONE, TWO = "08e4547d5347b63f", "a7627fd1d8a96c9a"
KEY = ("web", "build")


def built(number: int, hash: str | None, outcome: Outcome = Outcome.BUILT, **changed: Any) -> Run:
    return run(number, (*KEY, outcome, 1_000), hashes=[hash], **changed)


def repeats(*oldest_first: Run) -> Repeats:
    return hash_figures(oldest_first[::-1]).repeats[KEY]


def test_a_hash_that_was_built_or_restored_before_is_repeated() -> None:
    assert repeats(built(3, ONE), built(2, ONE), built(1, TWO)) == Repeats(2, 1, 1_000)
    assert repeats(built(2, ONE, Outcome.REMOTE_HIT), built(1, ONE)) == Repeats(1, 1, 1_000)


def test_hits_and_failed_builds_are_not_repeated_and_a_failed_build_stores_nothing() -> None:
    hit, failed = Outcome.LOCAL_HIT, Outcome.FAILED
    assert repeats(built(2, ONE), built(1, ONE, hit)) == Repeats(1)
    assert repeats(built(2, ONE, failed), built(1, ONE)) == Repeats(1)
    assert repeats(built(2, ONE), built(1, ONE, failed)) == Repeats(1)


def test_another_hash_at_the_same_commit_on_the_same_ci_drifts() -> None:
    at: Any = {"sha": "1f0b", "ci": "GITHUB_ACTIONS"}
    assert repeats(built(2, ONE, **at), built(1, TWO, **at)) == Repeats(2, drift=1, drift_ms=1_000)
    others: Any = [
        {"sha": "77aa", "ci": "GITHUB_ACTIONS"},
        {"sha": "1f0b", "ci": "GITLAB"},
        {"sha": "1f0b", "ci": None},
        {"sha": None, "ci": "GITHUB_ACTIONS"},
    ]
    for other in others:
        assert repeats(built(2, ONE, **at), built(1, TWO, **other)) == Repeats(2)


def test_tasks_without_a_hash_are_left_out() -> None:
    assert hash_figures([built(1, None)]).repeats == {}
