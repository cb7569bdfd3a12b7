"""Figures from the measurements. A ratio is Larder's figure divided by the peer's in the same round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.benchmarks.load import Outcome


@dataclass(frozen=True, slots=True)
class Compared:
    """A case: the median of the rounds' ratios, and the lowest and highest ratio of the rates.

    `rate` compares replies per second: higher is better. The times of a reply are medians over all rounds.
    The CPU time is that of all processes of a server for one reply.
    """

    case: str
    peer: str
    rate: float
    rate_least: float
    rate_most: float
    larder_ms: float
    peer_ms: float
    larder_cpu_ms: float
    peer_cpu_ms: float
    failures: str = ""


def compared(case: str, peer: str, rounds: Sequence[tuple[Outcome, Outcome]]) -> Compared:
    """From rounds in which Larder and the peer took turns."""
    rates = [ours.rate / theirs.rate for ours, theirs in rounds]
    return Compared(
        case=case,
        peer=peer,
        rate=statistics.median(rates),
        rate_least=min(rates),
        rate_most=max(rates),
        larder_ms=_median_ms([ours for ours, _ in rounds]),
        peer_ms=_median_ms([theirs for _, theirs in rounds]),
        larder_cpu_ms=_cpu_ms([ours for ours, _ in rounds]),
        peer_cpu_ms=_cpu_ms([theirs for _, theirs in rounds]),
        failures=_failures(rounds),
    )


def _median_ms(outcomes: Sequence[Outcome]) -> float:
    """Of all replies; 0 without replies."""
    took = [took for outcome in outcomes for took in outcome.took_ms]
    return statistics.median(took) if took else 0.0


def _cpu_ms(outcomes: Sequence[Outcome]) -> float:
    """CPU time of one reply."""
    answers = sum(len(outcome.took_ms) for outcome in outcomes)
    return sum(outcome.cpu_ms for outcome in outcomes) / answers if answers else 0.0


def _failures(rounds: Sequence[tuple[Outcome, Outcome]]) -> str:
    ours, theirs = zip(*rounds, strict=True)
    return ", ".join(filter(None, [_failures_of("Larder", ours), _failures_of("peer", theirs)]))


def _failures_of(server: str, outcomes: Sequence[Outcome]) -> str:
    counts: dict[str, int] = {}
    for outcome in outcomes:
        for what, times in outcome.failures.items():
            counts[what] = counts.get(what, 0) + times
    return ", ".join(f"{server}: {times} x {what}" for what, times in counts.items())


@dataclass(frozen=True, slots=True)
class Life:
    """One function of one side, from its start to its last reply. The times of a warm call are medians or means."""

    init_ms: float
    init_cpu_ms: float
    first_ms: float
    first_cpu_ms: float
    warm_ms: float
    warm_cpu_ms: float
    peak_mb: float
    status: int


@dataclass(frozen=True, slots=True)
class SameRole:
    """A request: the lives of both sides, in pairs that ran one after the other."""

    name: str
    rounds: tuple[tuple[Life, Life], ...]

    def ratio(self, figure: Callable[[Life], float]) -> float:
        """The median of the rounds of Larder's figure divided by the peer's."""
        return statistics.median(figure(ours) / figure(peer) for ours, peer in self.rounds)

    def spread(self, figure: Callable[[Life], float]) -> tuple[float, float]:
        """The lowest and the highest ratio of a round."""
        ratios = [figure(ours) / figure(peer) for ours, peer in self.rounds]
        return min(ratios), max(ratios)

    def medians(self, figure: Callable[[Life], float]) -> tuple[float, float]:
        """Larder's figure and the peer's."""
        ours, peer = zip(*self.rounds, strict=True)
        return statistics.median(map(figure, ours)), statistics.median(map(figure, peer))
