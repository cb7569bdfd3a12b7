"""How long a tool waits for Larder, its storage or a login that hangs."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from larder_proxy.connections import LIMITS, Limits, Pool
from larder_proxy.memory import AHEAD_SECONDS

from tests.web_server import hang

from .deployment import DIRECT, Deployment, Running, deployed, sidecar

SHORT = Limits(connect=0.5, answer=1, silence=0.5, upload=0.6)
MARGIN_SECONDS = 0.9
"""For the work of a busy computer. Three waits, after which a pause begins, take longer."""
HASHES = [f"{number:016x}" for number in range(40)]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as one:
        one.limits = SHORT
        yield one


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def get_all(turbo: httpx.Client) -> None:
    for hash in HASHES:
        assert turbo.get(f"/v8/artifacts/{hash}?slug=acme").status_code == 404


def before_answers(deployment: Deployment) -> None:
    deployment.broken = hang


def in_storage(deployment: Deployment) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/storage/"):
            hang(handler)
            return
        handler.send_response(302)
        handler.send_header("location", f"{deployment.url}/storage/x")
        handler.send_header("content-length", "0")
        handler.end_headers()

    deployment.broken = answer


def in_downloads(deployment: Deployment) -> None:
    deployment.artifacts = dict.fromkeys(HASHES, b"x" * 10_000)
    deployment.is_stalling = True


def in_downloads_from_storage(deployment: Deployment) -> None:
    deployment.artifacts = dict.fromkeys(HASHES, b"x" * (DIRECT + 1))
    deployment.is_stalling = True


def after_errors(deployment: Deployment) -> None:
    """Each try takes long, but none of them too long."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(SHORT.silence * 0.9)
        handler.send_response(503)
        handler.send_header("content-length", "0")
        handler.end_headers()

    deployment.broken = answer


@pytest.mark.parametrize("way", ["asked", "prefetched", "asked again"])
@pytest.mark.parametrize("hangs", [before_answers, in_storage, in_downloads, in_downloads_from_storage, after_errors])
def test_all_lookups_of_a_build_wait_no_longer_than_one(
    hangs: Callable[[Deployment], None], way: str, turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """More of them than there are places at the start."""
    if way == "asked again":
        running.sidecar.cache.prefetch.expect(HASHES)
        memory = running.sidecar.cache.memory
        running.until(lambda: all(memory.is_missing((hash, "")) for hash in HASHES))
        time.sleep(AHEAD_SECONDS)
        # The first is asked for alone, and the next with all others.
        turbo.get(f"/v8/artifacts/{HASHES[0]}?slug=acme")
    hangs(deployment)
    if way == "prefetched":
        running.sidecar.cache.prefetch.expect(HASHES)
    took = seconds(lambda: get_all(turbo))
    assert took < SHORT.answer + SHORT.silence + MARGIN_SECONDS
    assert "Larder does not answer" in "".join(running.lines)


def test_a_download_that_drips_is_given_up(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    """A byte now and then is no silence."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/octet-stream")
        handler.send_header("content-length", "1000")
        handler.end_headers()
        with suppress(OSError):
            for _ in range(1_000):
                handler.wfile.write(b"x")
                time.sleep(SHORT.silence / 4)

    deployment.broken = drip
    took = seconds(lambda: turbo.get(f"/v8/artifacts/{HASHES[0]}?slug=acme"))
    assert took < SHORT.answer + SHORT.silence + MARGIN_SECONDS
    assert running.sidecar.cache.counts.misses == 1


def test_uploads_wait_no_longer_than_one_and_are_lost(
    turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    before_answers(deployment)
    for hash in HASHES:
        assert turbo.put(f"/v8/artifacts/{hash}?slug=acme", content=b"x").status_code == 202
    took = seconds(running.uploaded)
    assert took < SHORT.connect + SHORT.upload + MARGIN_SECONDS
    assert running.sidecar.cache.counts.not_stored.total() == len(HASHES)


def test_a_login_of_a_job_that_hangs_is_tried_for_one_answer(deployment: Deployment, tmp_path: Path) -> None:
    """Every request needs it, so each of them would wait in turn."""
    before_answers(deployment)
    job = {"TURBO_TOKEN": "", "LARDER_ID_TOKEN": "a.b.c"}
    with sidecar(deployment, tmp_path, **job) as one:
        token = one.sidecar.listener.turbo_variables()["TURBO_TOKEN"]
        headers = {"Authorization": f"Bearer {token}"}
        one.sidecar.cache.prefetch.expect(HASHES)
        with httpx.Client(base_url=one.sidecar.listener.url, headers=headers, trust_env=False) as turbo:
            took = seconds(lambda: get_all(turbo))
        assert took < SHORT.answer + SHORT.silence + MARGIN_SECONDS
        assert one.lines[0].startswith("no cache: the id token of the job was refused")


def test_the_addresses_of_a_host_share_the_time_of_a_connection() -> None:
    """A full queue takes no connection, as an address behind a firewall."""
    with closing(socket.socket()) as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        pool = Pool({}, SHORT)

        def connect() -> None:
            with pytest.raises(OSError, match="time"):
                pool.connect(f"http://localhost:{full.getsockname()[1]}")

        assert seconds(connect) < SHORT.connect + MARGIN_SECONDS
        for one in waiting:
            one.close()


def test_a_build_waits_for_half_a_minute_at_most() -> None:
    assert LIMITS.connect + LIMITS.silence < LIMITS.answer
    # ccache waits for ten.
    assert LIMITS.silence < 10
    assert LIMITS.answer + LIMITS.silence <= 30
    assert LIMITS.connect + LIMITS.upload <= 30
