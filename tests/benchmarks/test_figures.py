"""The figures that `make bench` calculates from its measurements."""

from dataclasses import replace

import pytest

from tools.benchmarks.figures import Life, SameRole, compared
from tools.benchmarks.load import Outcome
from tools.benchmarks.memory import Memory


def outcome(*took_ms: float, seconds: float = 1.0, **failures: int) -> Outcome:
    return Outcome(seconds, took_ms, failures)


def test_rates_are_compared_within_each_round_and_the_median_is_reported() -> None:
    rounds = [
        (outcome(1, 1, 1, 1), outcome(1, 1)),
        (outcome(1, 1, 1), outcome(1, 1, 1)),
        (outcome(1), outcome(1, 1, 1, 1, seconds=0.5)),
    ]
    row = compared("HEAD", "peer", rounds)
    assert (row.rate, row.rate_least, row.rate_most) == (1.0, 0.125, 2.0)


def test_times_of_replies_are_medians_over_all_rounds() -> None:
    rounds = [(outcome(2), outcome(4, 4)), (outcome(2, 8), outcome(4, 32, 4))]
    row = compared("GET", "peer", rounds)
    assert (row.larder_ms, row.peer_ms) == (2, 4)


def test_cpu_is_given_per_reply() -> None:
    ours = [replace(outcome(1, 1, 1), cpu_ms=30), replace(outcome(1), cpu_ms=2)]
    theirs = [replace(outcome(1, 1), cpu_ms=2), replace(outcome(1, 1), cpu_ms=4)]
    row = compared("HEAD", "peer", list(zip(ours, theirs, strict=True)))
    assert (row.larder_cpu_ms, row.peer_cpu_ms) == (8, 1.5)


def test_failures_are_reported_per_server() -> None:
    rounds = [(outcome(1, refused=1), outcome(1, late=2)), (outcome(1, refused=2), outcome(1))]
    row = compared("HEAD", "peer", rounds)
    assert row.failures == "Larder: 3 x refused, peer: 2 x late"


def test_memory_growth_compares_the_second_half_with_the_first() -> None:
    memory = Memory(((0, 100), (400, 180), (500, 170), (900, 200), (1000, 150)))
    assert (memory.start_mb, memory.peak_mb, memory.passed_mb) == (100, 200, 1000)
    assert memory.growth_mb == pytest.approx(20)


def test_functions_are_compared_within_each_round_and_the_median_is_reported() -> None:
    def life(warm_cpu_ms: float) -> Life:
        return Life(300.0, 200.0, 40.0, 30.0, 4.0, warm_cpu_ms, 50.0, 200)

    pairs = ((life(1.0), life(2.0)), (life(3.0), life(2.0)), (life(8.0), life(8.0)))
    role = SameRole("HEAD", pairs)

    def figure(one: Life) -> float:
        return one.warm_cpu_ms

    assert role.ratio(figure) == 1.0
    assert role.spread(figure) == (0.5, 1.5)
    assert role.medians(figure) == (3.0, 2.0)
