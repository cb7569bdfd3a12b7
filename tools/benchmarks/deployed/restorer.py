"""turbo in a repository of packages, restoring everything in one way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import monorepo, turbo
from tools.benchmarks.deployed import repositories
from tools.benchmarks.paths import LOOPBACK, NONE, Model

OWN = "own folder"
DIRECT = "direct"
PREFLIGHT = "preflight"
EDGE = "edge"
SIDECAR = "`larder run`"
PEER_FUNCTION = "peer, function"
PEER_CONTAINER = "peer, container"

_BASES = {EDGE: "/edge", PEER_FUNCTION: "/peer-function", PEER_CONTAINER: "/peer-container"}
_FLAGS = {PREFLIGHT: ["--preflight"]}
_ANY_TOKEN, _ANY_TEAM = "a" * 64, "team_any"


@dataclass(frozen=True)
class Restored:
    seconds: float
    packages: int


class Restorer:
    """A new repository in `folder`. The model has its artifacts, and its hashes are known to `larder run`."""

    def __init__(self, model: Model, folder: Path, tools: Path, *, packages: int, mix: str) -> None:
        self.model, self.packages, self.mix = model, packages, mix
        self._root, self._bin = folder / f"{mix}-{packages}", folder / "bin"
        self._home = folder / "home"
        self._home.mkdir(exist_ok=True)
        repositories.make(self._root, packages, mix)
        self._program = native(turbo.NEWEST, tools)
        self._wrapped = _wrapped(self._program, folder)
        self.fill()
        self.restore(SIDECAR)

    def fill(self) -> None:
        """Leave the artifacts in turbo's own folder, too."""
        self.model.set(LOOPBACK, NONE)
        self.build(DIRECT)

    def restore(self, way: str, *server: str) -> Restored:
        """The same as `build`, and raise RuntimeError if a package is built."""
        found = self.build(way, *server)
        # The peer's function cannot return large artifacts.
        if found.packages < self.packages and way != PEER_FUNCTION:
            raise RuntimeError(
                f"{way}: only {found.packages} of {self.packages} packages were restored"
            )
        return found

    def build(
        self, way: str, url: str = "", token: str = _ANY_TOKEN, team: str = _ANY_TEAM
    ) -> Restored:
        """Restore what the model or another server has, and build and store the rest."""
        monorepo.wipe_outputs(self._root)
        if way != OWN:
            monorepo.wipe_local_cache(self._root)
        api = {
            "TURBO_API": (url or self.model.url) + _BASES.get(way, ""),
            "TURBO_TOKEN": token,
            "TURBO_TEAM": team,
        }
        client = turbo.Client(
            command=self._wrapped if way == SIDECAR else self._program,
            version=turbo.NEWEST,
            remote_cache={} if way == OWN else api,
            home=self._home,
            # With the npm of the repository.
            ci={"PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}"},
        )
        flags = _FLAGS.get(way, [])
        started = time.monotonic()
        text = turbo.command(client, self._root, "run", "build", "--output-logs=none", *flags)
        seconds = time.monotonic() - started
        cached = turbo.CACHED.search(text)
        if cached is None:
            raise RuntimeError(f"turbo does not say what it restored:\n{text}")
        return Restored(seconds, int(cached[1]))


@contextlib.contextmanager
def half_a_processor() -> Iterator[None]:
    """Start programs on one processor, of which another process takes half, as one group of Linux's scheduler."""
    all_of_them = os.sched_getaffinity(0)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        autogroup = Path("/proc/self/autogroup").read_text().split()
        Path(f"/proc/{busy.pid}/autogroup").write_text(autogroup[-1])
        for pid in (0, busy.pid):
            os.sched_setaffinity(pid, {max(all_of_them)})
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)
        busy.kill()
        busy.wait()


def native(version: str, tools: Path) -> Path:
    """turbo's own program, without the start of node."""
    modules = turbo.installed(version, tools).parent.parent
    (program,) = [
        found
        for found in modules.glob("**/bin/turbo")
        if found.is_file() and found.read_bytes()[:4] == b"\x7fELF"
    ]
    return program


def _wrapped(program: Path, folder: Path) -> Path:
    """A command that runs turbo by `larder run`."""
    proxy = Path(__file__).resolve().parents[3] / "clients" / "sidecar" / "src"
    command = folder / "through-larder-run"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={proxy} exec {sys.executable} -m larder_proxy run -- {program} "$@"\n'
    )
    command.chmod(0o755)
    return command
