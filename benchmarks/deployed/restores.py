"""Complete restores by real turbo, with each way in turn, over each path."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.deployed import repositories
from benchmarks.paths import CI, FAR, LAPTOP, LOOPBACK, NONE, Latencies, Model
from benchmarks.paths import Path as Route
from tests.e2e import monorepo, turbo

OWN = "own folder"
DIRECT = "direct"
PREFLIGHT = "preflight"
SIDECAR = "`larder run`"
BEFORE = "direct, before"
PEER_FUNCTION = "peer, function"
PEER_CONTAINER = "peer, container"
WAYS = (OWN, DIRECT, PREFLIGHT, SIDECAR, BEFORE, PEER_FUNCTION, PEER_CONTAINER)
PATHS = (CI, LAPTOP, FAR)
WARM = Latencies()

STARTS = Latencies(start=380, peer_start=1_150)
"""Larder: 150 ms for the sandbox, 188 for its init at full speed, and 12 ms of CPU in the first call, at the share of
512 MB (docs/benchmarks-cold.md). The peer: with 1,024 MB."""

FORMER_START = 540
"""When the first call loaded TLS: 143 ms of init, and 71 of CPU in the first call."""


@dataclass(frozen=True)
class Restores:
    """Seconds of each round by way, and the fewest packages that one of them restored."""

    packages: int
    mix: str
    path: str
    after_idle: bool
    seconds: Mapping[str, Sequence[float]]
    restored: Mapping[str, int]

    def median(self, way: str) -> float:
        return statistics.median(self.seconds[way])

    def ratio(self, way: str, other: str) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(
            ours / theirs
            for ours, theirs in zip(self.seconds[way], self.seconds[other], strict=True)
        )


def native(version: str, tools: Path) -> Path:
    """turbo's own program, without the start of node."""
    modules = turbo.installed(version, tools).parent.parent
    (program,) = [
        found
        for found in modules.glob("**/bin/turbo")
        if found.is_file() and found.read_bytes()[:4] == b"\x7fELF"
    ]
    return program


def measure(
    model: Model,
    folder: Path,
    tools: Path,
    *,
    packages: int,
    mix: str,
    rounds: int,
    say: Callable[[str], None],
) -> list[Restores]:
    """Restores of one repository: warm over each path, and after idle over the first two."""
    root = folder / f"{mix}-{packages}"
    repositories.make(root, packages, mix)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    program = native(turbo.NEWEST, tools)
    wrapped = _wrapped(program, folder)

    def restore(way: str) -> tuple[float, int]:
        monorepo.wipe_outputs(root)
        if way != OWN:
            monorepo.wipe_local_cache(root)
        base = {PEER_FUNCTION: "/peer-function", PEER_CONTAINER: "/peer-container"}.get(way, "")
        api = {"TURBO_API": model.url + base, "TURBO_TOKEN": "a" * 64, "TURBO_TEAM": "team_any"}
        client = turbo.Client(
            command=wrapped if way == SIDECAR else program,
            version=turbo.NEWEST,
            remote_cache={} if way == OWN else api,
            home=home,
            # With the npm of the repository.
            ci={"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        )
        flags = ["--preflight"] if way == PREFLIGHT else []
        started = time.monotonic()
        text = turbo.command(client, root, "run", "build", "--output-logs=none", *flags)
        seconds = time.monotonic() - started
        cached = turbo.CACHED.search(text)
        if cached is None:
            raise RuntimeError(f"turbo does not say what it restored:\n{text}")
        return seconds, int(cached[1])

    model.set(LOOPBACK, NONE)
    restore(DIRECT)
    # Once through the sidecar, which then knows the hashes of the last run.
    restore(SIDECAR)
    cases = [(path, WARM) for path in PATHS] + [(path, STARTS) for path in PATHS[:2]]
    return [_case(model, restore, packages, mix, *case, rounds, say) for case in cases]


def _case(
    model: Model,
    restore: Callable[[str], tuple[float, int]],
    packages: int,
    mix: str,
    path: Route,
    latencies: Latencies,
    rounds: int,
    say: Callable[[str], None],
) -> Restores:
    seconds: dict[str, list[float]] = defaultdict(list)
    restored: dict[str, int] = {}
    after_idle = latencies is STARTS
    for number in range(rounds):
        for way in WAYS:
            if way == OWN:
                # Its files are those of the restore before.
                model.set(LOOPBACK, NONE)
                restore(DIRECT)
            former = replace(latencies, in_tables=2_000, start=FORMER_START if after_idle else 0)
            model.set(path, former if way == BEFORE else latencies, seed=number)
            took, found = restore(way)
            if found < packages and way != PEER_FUNCTION:
                raise RuntimeError(f"{way}: only {found} of {packages} packages were restored")
            seconds[way].append(took)
            restored[way] = min(found, restored.get(way, found))
    case = Restores(packages, mix, path.name, after_idle, seconds, restored)
    say(
        f"{packages} {mix}, {path.name}{', after idle' * after_idle}: "
        + ", ".join(f"{way} {case.median(way):.2f}" for way in WAYS)
    )
    return case


def _wrapped(program: Path, folder: Path) -> Path:
    """A command that runs turbo by `larder run`."""
    proxy = Path(__file__).resolve().parents[2] / "proxy" / "src"
    command = folder / "through-larder-run"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={proxy} exec {sys.executable} -m larder_proxy run -- {program} "$@"\n'
    )
    command.chmod(0o755)
    return command
