"""Figures from the measurements. A ratio is Larder's figure divided by the peer's in the same round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.load import Outcome


@dataclass(frozen=True, slots=True)
class Compared:
    """A case with a number of clients: the median of the rounds' ratios, and the lowest and highest ratio of the rates.

    `rate` compares replies per second: higher is better. `p99` compares the times of a reply: lower is better.
    The CPU time is that of all processes of a server for one reply.
    """

    case: str
    clients: int
    peer: str
    rate: float
    rate_least: float
    rate_most: float
    p99: float
    larder_ms: float
    peer_ms: float
    larder_cpu_ms: float
    peer_cpu_ms: float
    failures: str = ""


@dataclass(frozen=True, slots=True)
class Alone:
    """A case that the peer does not have."""

    case: str
    clients: int
    peer: str
    larder_ms: float
    larder_cpu_ms: float
    failures: str = ""


def compared(
    case: str, clients: int, peer: str, rounds: Sequence[tuple[Outcome, Outcome]]
) -> Compared:
    """From rounds in which Larder and the peer took turns."""
    rates = [ours.rate / theirs.rate for ours, theirs in rounds]
    return Compared(
        case=case,
        clients=clients,
        peer=peer,
        rate=statistics.median(rates),
        rate_least=min(rates),
        rate_most=max(rates),
        p99=_ratio(rounds, 99),
        larder_ms=_together([ours for ours, _ in rounds], 50),
        peer_ms=_together([theirs for _, theirs in rounds], 50),
        larder_cpu_ms=_cpu_ms([ours for ours, _ in rounds]),
        peer_cpu_ms=_cpu_ms([theirs for _, theirs in rounds]),
        failures=_failures(rounds),
    )


def alone(case: str, clients: int, peer: str, rounds: Sequence[Outcome]) -> Alone:
    failed = _failures_of("Larder", rounds)
    return Alone(case, clients, peer, _together(rounds, 50), _cpu_ms(rounds), failed)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that this percentage of the values does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0.0


def _ratio(rounds: Sequence[tuple[Outcome, Outcome]], percent: int) -> float:
    """Over all rounds together, because one round has too few replies for a 99th percentile."""
    ours = _together([ours for ours, _ in rounds], percent)
    return ours / _together([theirs for _, theirs in rounds], percent)


def _together(outcomes: Sequence[Outcome], percent: int) -> float:
    return percentile([took for outcome in outcomes for took in outcome.took_ms], percent)


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


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the local server during uploads and downloads: pairs of MB passed and MB resident, in order."""

    samples: tuple[tuple[float, float], ...]

    @property
    def passed_mb(self) -> float:
        return self.samples[-1][0]

    @property
    def growth_mb(self) -> float:
        """The peak of the second half minus the peak of the first half."""
        middle = self.passed_mb / 2
        first = [mb for passed, mb in self.samples if passed <= middle]
        second = [mb for passed, mb in self.samples if passed > middle]
        return max(second) - max(first)

    @property
    def peak_mb(self) -> float:
        return max(mb for _, mb in self.samples)

    @property
    def start_mb(self) -> float:
        return self.samples[0][1]


def peaks_by_role(
    peaks: Mapping[str, Sequence[tuple[str, float]]],
) -> list[tuple[str, str, int, float]]:
    """Server, role of its processes, their number, and the peak memory of the largest one, in MB."""
    rows = []
    for server, processes in peaks.items():
        roles: dict[str, list[float]] = {}
        for role, mb in processes:
            roles.setdefault(role, []).append(mb)
        rows += [(server, role, len(found), max(found)) for role, found in roles.items()]
    return rows
