"""turbo builds of monorepos of several sizes, with each cache in turn: cold, then restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Build
from benchmarks.servers import LARDER, Server
from tests.e2e import monorepo, turbo

_NOT_SMALL = 6
"""Packages that every sample monorepo has in addition to the small ones."""


def build_with_each(
    tools: Path,
    folder: Path,
    servers: Sequence[Server],
    *,
    packages: int,
    rounds: int,
    say: Callable[[str], None],
) -> list[Build]:
    """The builds with Larder and the peer: one cold round, and `rounds` that restore everything from the cache."""
    home, root = folder / "home", folder / f"monorepo-{packages}"
    home.mkdir(exist_ok=True)
    template = folder / f"template-{packages}"
    say(f"turbo: creating a monorepo of {packages} packages")
    monorepo.generate(template, monorepo.sample_packages(packages - _NOT_SMALL), home=home)
    monorepo.copy_with_sources_of_its_own(
        template,
        root,
        seed=f"bench-{packages}",
        turbo_json=turbo.turbo_json(turbo.NEWEST),
        home=home,
    )
    command = turbo.installed(turbo.NEWEST, tools / "turbo")
    clients = [_client(command, server, home) for server in servers]

    def build(client: turbo.Client, *, restored: bool) -> float:
        monorepo.wipe_outputs_and_local_cache(root)
        run = turbo.build(client, root)
        if run.cached != (packages if restored else 0):
            raise RuntimeError(f"turbo restored {run.cached} of {packages} packages:\n{run.text}")
        return run.seconds

    ours, theirs = clients
    say(f"turbo: {packages} packages, cold")
    cold = (build(ours, restored=False), build(theirs, restored=False))
    warm = []
    for number in range(rounds):
        say(f"turbo: {packages} packages, restored, round {number + 1} of {rounds}")
        warm.append((build(ours, restored=True), build(theirs, restored=True)))
    return [Build(packages, "cold", (cold,)), Build(packages, "warm", tuple(warm))]


def _client(command: Path, server: Server, home: Path) -> turbo.Client:
    remote_cache = {
        "TURBO_API": server.url,
        "TURBO_TOKEN": server.token,
        "TURBO_TEAM": server.team,
    }
    # The peer has no separate storage, so a preflight has no use there.
    return turbo.Client(
        command=command,
        version=turbo.NEWEST,
        remote_cache=remote_cache,
        home=home,
        preflight=server.name == LARDER,
    )
