"""The memory of the local server while it stores and returns large artifacts."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.cases import download, upload
from benchmarks.figures import Memory
from benchmarks.load import Request
from benchmarks.servers import Server

ARTIFACT_BYTES = 120_000_000
_EVERY_S = 0.2
_START_PAUSE_S = 2.0
_START_TIMEOUT_S = 60.0
_ROOM_TO_SPARE_BYTES = 2_000_000_000
_MEGABYTE = 1_000_000


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
