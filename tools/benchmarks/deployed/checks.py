"""The model against a real server, the size of the functions, and many laptops at once."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tools.benchmarks import servers
from tools.benchmarks.deployed.restorer import DIRECT, OWN, PEER_CONTAINER, PEER_FUNCTION, Restorer
from tools.benchmarks.deployed.restores import STARTS, WARM, Say
from tools.benchmarks.paths import CI, FAR, LAPTOP, relayed

SANDBOX_MS, INIT_MS, FIRST_CPU_MS, WARM_MS = 150, 188, 12, 6
"""Of FetchArtifact (docs/benchmarks-cold.md). A warm one mostly waits."""

WHOLE_CORE_MB = 1_769
SIZES_MB = (256, 512, 1_024, WHOLE_CORE_MB)
LAPTOPS = 20


@dataclass(frozen=True)
class Compared:
    """Median seconds over the model and over a real server."""

    path: str
    model: float
    real: float


def real(restorer: Restorer, root: Path, folder: Path, *, rounds: int, say: Say) -> list[Compared]:
    """Restore from the real local server, behind a relay that delays. Its own processor time is on top."""
    found = []
    with servers.larder(root, folder) as server:
        port = int(server.url.rpartition(":")[2])
        restorer.build(DIRECT, server.url, server.token, server.team)
        for path in (LAPTOP, FAR):
            modelled: list[float] = []
            measured: list[float] = []
            with relayed(port, path) as url:
                for number in range(rounds):
                    restorer.model.set(path, WARM, seed=number)
                    modelled.append(restorer.restore(DIRECT).seconds)
                    one = restorer.restore(DIRECT, url, server.token, server.team)
                    measured.append(one.seconds)
            found.append(
                Compared(path.name, statistics.median(modelled), statistics.median(measured))
            )
            say(f"{path.name}: model {found[-1].model:.2f}, real {found[-1].real:.2f}")
    return found


@dataclass(frozen=True)
class Size:
    """A function with so much memory: ms until its first answer, and the first restore after idle in seconds."""

    memory_mb: int
    start_ms: float
    restore: float


def sizes(restorer: Restorer, *, rounds: int, say: Say) -> list[Size]:
    """Lambda gives an instance a whole processor for its init, and a share by its memory from the first call on."""
    seconds: dict[int, list[float]] = {memory: [] for memory in SIZES_MB}
    starts = {
        memory: SANDBOX_MS + INIT_MS + FIRST_CPU_MS * WHOLE_CORE_MB / memory for memory in SIZES_MB
    }
    for number in range(rounds):
        for memory in SIZES_MB:
            restorer.model.set(CI, replace(WARM, start=starts[memory]), seed=number)
            seconds[memory].append(restorer.restore(DIRECT).seconds)
    found = [
        Size(memory, starts[memory], statistics.median(seconds[memory])) for memory in SIZES_MB
    ]
    say(", ".join(f"{one.memory_mb} MB {one.restore:.2f}" for one in found))
    return found


@dataclass(frozen=True)
class Morning:
    """Restores that begin together, in seconds, and the instances that started for them."""

    way: str
    median: float
    slowest: float
    starts: int


def morning(restorers: list[Restorer], *, say: Say) -> list[Morning]:
    """One restore of each at once, after idle. Each laptop has its own line."""
    path = replace(LAPTOP, bits_a_second=LAPTOP.bits_a_second * len(restorers))
    model, found = restorers[0].model, []
    for way in (OWN, DIRECT, PEER_FUNCTION, PEER_CONTAINER):
        if way == OWN:
            restorers[0].model.set(path, WARM)
            for one in restorers:
                one.restore(DIRECT)
        model.set(path, STARTS)
        with ThreadPoolExecutor(len(restorers)) as threads:
            restored = [threads.submit(restorer.restore, way) for restorer in restorers]
            seconds = [one.result().seconds for one in restored]
        starts = model.requests().get("starts", 0)
        found.append(Morning(way, statistics.median(seconds), max(seconds), starts))
        say(f"{len(restorers)} at once, {way}: {found[-1].median:.2f}, {found[-1].slowest:.2f}")
    return found
