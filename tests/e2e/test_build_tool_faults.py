"""Whatever is wrong with Larder costs a build of other tools its hits, never its success, and little time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.proxy.deployment import Deployment, deployed, variables
from tests.web_server import hang

from .cloud import free_port
from .workspaces import MOON_FILES, Make, Workspace, ccache, gradle, moon, needs, nx, sccache

pytestmark = [pytest.mark.e2e, needs("gcc")]

LATER_SECONDS = 35
"""How much later than without a cache a build may end."""

MAKES: dict[str, Make] = {
    "nx": lambda root, tools: nx(root, tools, {"small": 1_000, "direct": 6_000_000}),
    "gradle": gradle,
    "sccache": sccache,
    "ccache": ccache,
}
PAGE = b"<!doctype html><title>Welcome</title>"


def page(handler: BaseHTTPRequestHandler) -> None:
    """Another site, or a proxy that asks for a login."""
    _reply(handler, 200, PAGE)


def not_found(handler: BaseHTTPRequestHandler) -> None:
    _reply(handler, 404, PAGE)


def error(handler: BaseHTTPRequestHandler) -> None:
    _reply(handler, 500, b"{}")


def _reply(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("content-type", "text/html")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


@dataclass(frozen=True)
class Fault:
    """`begins` gives the address of Larder, and may change the deployment. `line` is what the user sees, once."""

    begins: Callable[[Deployment], str]
    line: str
    is_stored: bool = False
    """Whether the entries are there before."""
    meanwhile: Callable[[Deployment], None] = lambda _: None
    """Happens after the first request."""


def broken(answer: Callable[[BaseHTTPRequestHandler], None]) -> Callable[[Deployment], str]:
    def begins(deployment: Deployment) -> str:
        deployment.broken = answer
        return deployment.url

    return begins


def unreachable(_: Deployment) -> str:
    return f"http://127.0.0.1:{free_port()}"


def unknown_name(_: Deployment) -> str:
    return "http://cache.invalid"


def without_keys(deployment: Deployment) -> str:
    deployment.tokens.clear()
    return deployment.url


def cut(deployment: Deployment) -> str:
    deployment.cuts = 1_000
    return deployment.url


def stalling(deployment: Deployment) -> str:
    deployment.is_stalling = True
    return deployment.url


def damaged(deployment: Deployment) -> str:
    for hash, content in deployment.artifacts.items():
        middle = len(content) // 2
        changed = bytes(byte ^ 255 for byte in content[middle : middle + 16])
        deployment.artifacts[hash] = content[:middle] + changed + content[middle + 16 :]
    return deployment.url


OF_ANOTHER_SITE = "no cache: TURBO_API is not the address of Larder"
FAULTS = {
    "unreachable": Fault(unreachable, "Larder does not answer (ConnectionRefusedError)"),
    "unknown name": Fault(unknown_name, "Larder does not answer (gaierror)"),
    "another site": Fault(broken(page), OF_ANOTHER_SITE),
    "not found": Fault(broken(not_found), OF_ANOTHER_SITE),
    "wrong key": Fault(without_keys, "Larder refuses the token (401)"),
    "revoked": Fault(
        lambda deployment: deployment.url,
        "Larder refuses the token (401)",
        meanwhile=lambda deployment: deployment.tokens.clear(),
    ),
    "500": Fault(broken(error), "Larder does not answer (status 500)"),
    "hanging": Fault(broken(hang), "Larder does not answer (no answer in time)"),
    "cut": Fault(cut, "a download was cut", is_stored=True),
    "stalling": Fault(stalling, "Larder does not answer (no answer in time)", is_stored=True),
    "damaged": Fault(damaged, "a download is damaged", is_stored=True),
}
IN_CI = [("nx", "wrong key"), ("ccache", "500")]


def marks(tool: str, fault: str) -> list[pytest.MarkDecorator]:
    found = [] if (tool, fault) in IN_CI else [pytest.mark.thorough]
    return [*found, needs("gradle")] if tool == "gradle" else found


CASES = [
    pytest.param(tool, fault, id=f"{tool} {fault}", marks=marks(tool, fault)) for tool in MAKES for fault in FAULTS
]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as one:
        yield one


def seconds_without_a_cache(workspace: Workspace, home: Path) -> float:
    workspace.forget()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **workspace.variables}
    # Builds of other tests have servers of sccache, too.
    env["SCCACHE_SERVER_PORT"] = str(free_port())
    started = time.monotonic()
    subprocess.run(workspace.command, cwd=workspace.root, env=env, check=True, capture_output=True)
    return time.monotonic() - started


@pytest.mark.parametrize(("tool", "fault"), CASES)
def test_a_build_succeeds_in_time_and_one_line_has_the_reason(
    tool: str, fault: str, deployment: Deployment, larder: Path, tools: Path, tmp_path: Path
) -> None:
    workspace, wrong = MAKES[tool](tmp_path / "workspace", tools), FAULTS[fault]
    env = variables(deployment, tmp_path)
    alone = seconds_without_a_cache(workspace, tmp_path)
    if wrong.is_stored:
        workspace.build(larder, env)
    env["TURBO_API"] = wrong.begins(deployment)
    deployment.asked.clear()
    started = time.monotonic()
    with ThreadPoolExecutor() as pool:
        building = pool.submit(workspace.build, larder, env)
        while not deployment.asked and not building.done():
            time.sleep(0.01)
        wrong.meanwhile(deployment)
        counts, said = building.result()
    assert time.monotonic() - started < alone + LATER_SECONDS
    assert workspace.outputs()
    *lines, _ = [line for line in said.splitlines() if line.startswith("Larder: ")]
    if fault == "damaged" and tool != "nx":
        # These tools find it themselves, build, and store the entry again.
        assert (lines, counts.misses, counts.stored) == ([], 0, counts.hits)
    else:
        assert (len(lines), counts.hits) == (1, 0), said
        assert wrong.line in lines[0]


def wrong_digest(deployment: Deployment) -> None:
    """Of one file of moon."""
    hash = max(deployment.artifacts, key=lambda one: one.startswith("moon-cas-"))
    deployment.artifacts[hash] = b"other bytes"


@pytest.mark.thorough
@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "wrong digest"])
def test_moon_restores_all_files_of_a_task_or_none(
    is_refused: bool, deployment: Deployment, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """Also if Larder lacks one of them, or has other bytes."""
    workspace, env = moon(tmp_path / "workspace", tools), variables(deployment, tmp_path)
    if is_refused:
        deployment.failing["PUT"] = [(413, "artifact_too_large")]
    counts, _ = workspace.build(larder, env)
    assert counts.not_stored == int(is_refused)
    built = set(workspace.digests())
    if not is_refused:
        wrong_digest(deployment)
    workspace.build(larder, env)
    digests = workspace.digests()
    assert len(digests) == MOON_FILES + 1
    assert not built & set(digests)
    workspace.build(larder, env)
    assert workspace.digests() == digests
