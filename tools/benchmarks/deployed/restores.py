"""Complete restores, with each way in turn, over each path."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from tools.benchmarks.deployed.restorer import (
    DIRECT,
    EDGE,
    OWN,
    PEER_CONTAINER,
    PEER_FUNCTION,
    PREFLIGHT,
    SIDECAR,
    Restorer,
    half_a_processor,
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

KEPT = replace(STARTS, warm=10, reconnect=15)
"""With ten WarmInstances. To connect to a table takes two round trips and 2 to 3 ms of CPU, at the share of 512 MB."""


@dataclass(frozen=True)
class Kind:
    """What the restores of a row have in common. Without `ways`, they are those of the mix."""

    name: str = ""
    latencies: Latencies = WARM
    ways: tuple[str, ...] = ()


BUSY = Kind()
IDLE = Kind("after idle", STARTS, AFTER_IDLE)
IDLE_KEPT = Kind("after idle, `WarmInstances=10`", KEPT, AFTER_IDLE)
HALF = Kind("half a processor", WARM, (DIRECT, SIDECAR, PEER_CONTAINER))

Say = Callable[[str], None]


@dataclass(frozen=True)
class Restores:
    """Seconds of each round by way, and the fewest packages that one of them restored."""

    packages: int
    mix: str
    path: str
    kind: Kind
    seconds: Mapping[str, Sequence[float]]
    restored: Mapping[str, int]

    @property
    def ways(self) -> tuple[str, ...]:
        return self.kind.ways or (SMALL if self.mix == "small" else MIXED)

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
    """Restores of one repository: warm over each path and, of small artifacts, after idle and with half a processor."""
    cases = [(path, BUSY) for path in PATHS]
    if restorer.mix == "small":
        cases += [(path, kind) for kind in (IDLE, IDLE_KEPT) for path in (CI, LAPTOP)]
        cases.append((CI, HALF))
    return [_case(restorer, *case, rounds, say) for case in cases]


def _case(restorer: Restorer, path: Route, kind: Kind, rounds: int, say: Say) -> Restores:
    seconds: dict[str, list[float]] = defaultdict(list)
    restored: dict[str, int] = {}
    case = Restores(restorer.packages, restorer.mix, path.name, kind, seconds, restored)
    for number in range(rounds):
        for way in case.ways:
            if way == PEER_FUNCTION and restorer.mix == "mixed" and number > 0:
                # It restores less, and takes long for that.
                continue
            if way == OWN:
                restorer.fill()
            restorer.model.set(path, kind.latencies, seed=number)
            with half_a_processor() if kind is HALF else nullcontext():
                took = restorer.restore(way)
            seconds[way].append(took.seconds)
            restored[way] = min(took.packages, restored.get(way, took.packages))
    say(
        f"{restorer.packages} {restorer.mix}, {path.name}, {kind.name or 'warm'}: "
        + ", ".join(f"{way} {case.median(way):.2f}" for way in case.ways)
    )
    return case
