"""The memory of the local server while it stores and returns large artifacts."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.benchmarks.cases import download, upload
from tools.benchmarks.load import Request
from tools.benchmarks.servers import Server

ARTIFACT_BYTES = 120_000_000
_EVERY_S = 0.2
_START_PAUSE_S = 2.0
_START_TIMEOUT_S = 60.0
_ROOM_TO_SPARE_BYTES = 2_000_000_000
_MEGABYTE = 1_000_000


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


def watch(
    send: Callable[[Request], None],
    server: Server,
    folder: Path,
    *,
    passing_bytes: int,
    say: Callable[[str], None],
) -> Memory:
    """Upload and download artifacts of 120 MB, `passing_bytes` in total. `send` sends one request, or raises."""
    if shutil.disk_usage(folder).free < passing_bytes + _ROOM_TO_SPARE_BYTES:
        raise RuntimeError(
            f"{folder} has less than {passing_bytes} bytes of free space for artifacts"
        )
    samples = [(0.0, _started_mb(server))]
    passed_mb = 0.0
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(_EVERY_S):
            samples.append((passed_mb, server.resident_mb()))

    watching = threading.Thread(target=sample)
    watching.start()
    try:
        for number in itertools.count():
            hash = f"f10a7{number:08x}"
            for request in (
                upload(server, hash, ARTIFACT_BYTES),
                download(server, hash, ARTIFACT_BYTES),
            ):
                send(request)
                passed_mb += ARTIFACT_BYTES / _MEGABYTE
            say(f"memory: {server.resident_mb():,.0f} MB after {passed_mb:,.0f} MB of artifacts")
            if passed_mb * _MEGABYTE >= passing_bytes:
                break
    finally:
        ended.set()
        watching.join()
    return Memory((*samples, (passed_mb, server.resident_mb())))


def _started_mb(server: Server) -> float:
    """The memory after all processes have started. Those of the functions start one after another."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    before, now = 0.0, server.resident_mb()
    while now - before > 1 and time.monotonic() < deadline:
        time.sleep(_START_PAUSE_S)
        before, now = now, server.resident_mb()
    return now
