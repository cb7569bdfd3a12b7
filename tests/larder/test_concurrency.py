"""Retries after conflicts with other writers."""

import time

import pytest

from larder.concurrency import attempts


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses in seconds, recorded instead of waited for."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def test_pauses_are_only_between_attempts(pauses: list[float]) -> None:
    assert [(attempt, len(pauses)) for attempt in attempts()] == [(n, n) for n in range(8)]
    assert len(pauses) == 7


def test_pauses_are_random_and_at_most_double(pauses: list[float]) -> None:
    for _ in range(50):
        list(attempts(most=3))
    first, second = pauses[::2], pauses[1::2]
    assert len(set(first)) == 50
    assert 0.005 < max(first) <= 0.01
    assert 0.01 < max(second) <= 0.02


def test_the_first_attempts_can_be_without_pauses(pauses: list[float]) -> None:
    assert [len(pauses) for _ in attempts(most=5, pausing_after=3)] == [0, 0, 0, 1, 2]
    assert pauses[0] <= 0.04
