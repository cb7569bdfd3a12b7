"""The compared servers. Each listens on a loopback address only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import cloud, node

_NPM = Path(__file__).with_name("peers")
_SCRIPTS = (_NPM / "load.mjs", _NPM / "accounts.mjs", _NPM / "lambda.mjs")
_INSTALL_SECONDS = 900
_START_SECONDS = 90
_STOP_SECONDS = 10
_MEGABYTE = 2**20
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

LARDER = "Larder"
CACHE_PEER = "turborepo-remote-cache"
ACCOUNTS_PEER = "Better Auth"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `token` and `team` are the credentials of builds; empty for servers without builds."""

    name: str
    url: str
    pid: int
    version: str
    token: str = ""
    team: str = ""

    def cpu_ms(self) -> float:
        """The CPU time of all its processes since they started."""
        return sum(_cpu_ms(pid) for pid in _family(self.pid))

    def resident_mb(self) -> float:
        """The memory of all its processes now."""
        return sum(_resident_mb(pid) for pid in _family(self.pid))


def installed(tools: Path) -> Path:
    """The folder with the peers and the load generator, in the versions of package-lock.json."""
    return node.installed(_NPM, _SCRIPTS, tools, seconds=_INSTALL_SECONDS)


@contextlib.contextmanager
def larder(root: Path, folder: Path) -> Iterator[Server]:
    """Larder's local server, without rate limits by address, because all requests come from one address."""
    options = {"LARDER_HTTP_RATE_LIMIT_ENABLED": "false"}
    with cloud.running(root, folder / "larder", **options) as running:
        assert running.process is not None
        version = _larder_version(root)
        token, team = running.token, running.team
        yield Server(LARDER, running.url, running.process.pid, version, token, team)


@contextlib.contextmanager
def remote_cache(npm: Path, folder: Path) -> Iterator[Server]:
    """turborepo-remote-cache with a folder as storage, a static token, and little logging."""
    port, token = cloud.free_port(), "a-token-of-the-benchmark"
    environ = {
        "PATH": os.environ["PATH"],
        "NODE_ENV": "production",
        "PORT": str(port),
        "HOST": "127.0.0.1",
        "TURBO_TOKEN": token,
        "STORAGE_PROVIDER": "local",
        "STORAGE_PATH": str(folder / CACHE_PEER),
        "STORAGE_PATH_USE_TMP_FOLDER": "false",
        # The default is 100 MB; the largest artifact is larger.
        "BODY_LIMIT": str(200 * _MEGABYTE),
        "LOG_LEVEL": "error",
    }
    command = ["node", "node_modules/turborepo-remote-cache/dist/cli.js"]
    version = _npm_version(npm, "turborepo-remote-cache")
    with _node(command, npm, environ, port, folder / "remote-cache.log") as pid:
        yield Server(CACHE_PEER, f"http://127.0.0.1:{port}", pid, version, token, "team_benchmark")


@contextlib.contextmanager
def better_auth(npm: Path, folder: Path) -> Iterator[Server]:
    """Better Auth on plain node http (peers/accounts.mjs)."""
    port, log = cloud.free_port(), folder / "better-auth.log"
    command = ["node", "accounts.mjs", str(port), str(folder / "accounts.sqlite")]
    environ = {"PATH": os.environ["PATH"], "NODE_ENV": "production"}
    with _node(command, npm, environ, port, log) as pid:
        tables = log.read_text().partition("ready: ")[2].strip()
        version = f"{_npm_version(npm, 'better-auth')} on {tables}"
        yield Server(ACCOUNTS_PEER, f"http://127.0.0.1:{port}", pid, version)


@contextlib.contextmanager
def _node(
    command: list[str], folder: Path, environ: dict[str, str], port: int, log: Path
) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait_until(lambda: _accepts(port), process, log)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"a peer did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.1)


def _accepts(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _npm_version(folder: Path, package: str) -> str:
    described = json.loads((folder / "node_modules" / package / "package.json").read_text())
    return str(described["version"])


def _larder_version(root: Path) -> str:
    import tomllib

    with (root / "layers" / "larder" / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def _family(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                found.extend(map(int, children.read_text().split()))
    return found


def _cpu_ms(pid: int) -> float:
    """The CPU time of a process in user and kernel mode; 0 when it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        # Fields 3 and later, after the name, which can contain any character. Source: proc_pid_stat(5).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS_A_SECOND
    return 0.0


def _resident_mb(pid: int) -> float:
    """The memory of a process, in MB; 0 when the process has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0
