"""The local server streams artifacts and never keeps one in memory.

`make proofs` sends 2 GB. Without PASSING_MB it is a few artifacts of the same size.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.cloud import LocalCloud
from tools.benchmarks import memory
from tools.benchmarks.load import Request
from tools.benchmarks.servers import LARDER, Server

MAY_GROW_MB = 25
MAY_HOLD_MB = 50
"""The allowed growth above the idle process: less than half of an artifact."""

_PIECE = bytes(256 * 1024)


@pytest.mark.slow
def test_memory_does_not_grow_with_large_artifacts(
    local_cloud: LocalCloud, tmp_path: Path, report_lines: list[str]
) -> None:
    passing_mb = int(os.environ.get("PASSING_MB", "480"))
    check_memory(local_cloud, tmp_path, passing_mb, report_lines, "memory")


def check_memory(local_cloud: LocalCloud, folder: Path, passing_mb: int, report_lines: list[str], title: str) -> None:
    """The local cloud holds little while so many megabytes pass through it, and no more in the second half."""
    assert local_cloud.process is not None
    url, token, team = local_cloud.url, local_cloud.token, local_cloud.team
    server = Server(LARDER, url, local_cloud.process.pid, "", token, team)
    with httpx.Client(base_url=url, follow_redirects=True, trust_env=False, timeout=120) as client:
        held = memory.watch(
            lambda request: send(client, request),
            server,
            folder,
            passing_bytes=passing_mb * 1_000_000,
            say=lambda _: None,
        )
    report_lines.append(
        f"{title}: {held.passed_mb:,.0f} MB passed, {held.start_mb:.0f} MB held before, {held.peak_mb:.0f} at most, "
        f"{held.growth_mb:+.0f} from the first half to the second"
    )
    assert held.growth_mb < MAY_GROW_MB
    assert held.peak_mb - held.start_mb < MAY_HOLD_MB


def send(client: httpx.Client, request: Request) -> None:
    """The body in pieces, as a build client sends it."""
    if request.method == "PUT":
        asks = {"access-control-request-method": "PUT", **request.headers}
        preflight = client.request("OPTIONS", request.path, headers=asks)
        done = client.put(
            preflight.headers["location"], headers={"content-length": str(request.bytes)}, content=pieces(request.bytes)
        )
        assert done.status_code == 200, done.text
        return
    with client.stream("GET", request.path, headers=dict(request.headers)) as reply:
        assert reply.status_code == 200
        assert sum(map(len, reply.iter_raw())) == request.reply_bytes


def pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, len(_PIECE)):
        yield _PIECE[: size - start]
