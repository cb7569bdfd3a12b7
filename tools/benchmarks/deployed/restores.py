"""Complete restores, with each way in turn, over each path."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tools.benchmarks.deployed.restorer import (
    DIRECT,
    EDGE,
    OWN,
    PEER_CONTAINER,
    PEER_FUNCTION,
    PREFLIGHT,
    SIDECAR,
    Restorer,
)
from tools.benchmarks.paths import CI, FAR, LAPTOP, Latencies
from tools.benchmarks.paths import Path as Route

_PEERS = (PEER_FUNCTION, PEER_CONTAINER)
SMALL = (OWN, DIRECT, PREFLIGHT, SIDECAR, *_PEERS)
MIXED = (OWN, DIRECT, PREFLIGHT, EDGE, SIDECAR, *_PEERS)
AFTER_IDLE = (DIRECT, PREFLIGHT, SIDECAR, *_PEERS)
PATHS = (CI, LAPTOP, FAR)
WARM = Latencies()

STARTS = Latencies(start=380, peer_start=1_150)
"""Larder: 150 ms for the sandbox, 188 for its init at full speed, and 12 ms of CPU in the first call, at the share of
512 MB (docs/benchmarks-cold.md). The peer: with 1,024 MB."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Restores:
    """Seconds of each round by way, and the fewest packages that one of them restored."""

    packages: int
    mix: str
    path: str
    after_idle: bool
    seconds: Mapping[str, Sequence[float]]
    restored: Mapping[str, int]

    @property
    def ways(self) -> tuple[str, ...]:
        if self.after_idle:
            return AFTER_IDLE
        return SMALL if self.mix == "small" else MIXED

    def median(self, way: str) -> float:
        return statistics.median(self.seconds[way])

    def ratio(self, way: str, other: str) -> float:
        """The median of the ratios of the rounds in which both ran."""
        both = zip(self.seconds[way], self.seconds[other], strict=False)
        return statistics.median(ours / theirs for ours, theirs in both)

    @property
    def spread(self) -> float:
        """Half of the range of `direct`, divided by its median."""
        found = self.seconds[DIRECT]
        return (max(found) - min(found)) / 2 / self.median(DIRECT)


def measure(restorer: Restorer, *, rounds: int, say: Say) -> list[Restores]:
    """Restores of one repository: warm over each path and, of small artifacts, after idle over the first two."""
    is_small = restorer.mix == "small"
    cases = [(path, False) for path in PATHS] + [(path, True) for path in PATHS[:2] if is_small]
    return [_case(restorer, path, is_idle, rounds, say) for path, is_idle in cases]


def _case(restorer: Restorer, path: Route, after_idle: bool, rounds: int, say: Say) -> Restores:
    seconds: dict[str, list[float]] = defaultdict(list)
    restored: dict[str, int] = {}
    latencies = STARTS if after_idle else WARM
    case = Restores(restorer.packages, restorer.mix, path.name, after_idle, seconds, restored)
    for number in range(rounds):
        for way in case.ways:
            if way == PEER_FUNCTION and restorer.mix == "mixed" and number > 0:
                # It restores less, and takes long for that.
                continue
            if way == OWN:
                restorer.fill()
            restorer.model.set(path, latencies, seed=number)
            took = restorer.restore(way)
            seconds[way].append(took.seconds)
            restored[way] = min(took.packages, restored.get(way, took.packages))
    say(
        f"{restorer.packages} {restorer.mix}, {path.name}{', after idle' * after_idle}: "
        + ", ".join(f"{way} {case.median(way):.2f}" for way in case.ways)
    )
    return case
