"""turbo builds of monorepos of several sizes with each cache in turn, cold and restored, and what turbo waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Build, Restored
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
) -> tuple[list[Build], Restored]:
    """The builds with Larder and the peer: one cold round, and `rounds` that restore everything from the cache.

    Each round also restores from turbo's own folder, which takes only turbo's work, and from Larder without preflights.
    """
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

    def build(client: turbo.Client, *, restored: bool, local: bool = False) -> float:
        monorepo.wipe_outputs(root)
        if not local:
            monorepo.wipe_local_cache(root)
        run = turbo.build(client, root)
        if run.cached != (packages if restored else 0):
            raise RuntimeError(f"turbo restored {run.cached} of {packages} packages:\n{run.text}")
        return run.seconds

    ours, theirs = clients
    say(f"turbo: {packages} packages, cold")
    cold = (build(ours, restored=False), build(theirs, restored=False))
    offline, plain = replace(ours, remote_cache={}), replace(ours, preflight=False)
    warm, ways = [], []
    for number in range(rounds):
        say(f"turbo: {packages} packages, restored, round {number + 1} of {rounds}")
        remote = build(ours, restored=True)
        own = build(offline, restored=True, local=True)
        warm.append((remote, build(theirs, restored=True)))
        ways.append((own, build(plain, restored=True), remote))
    builds = [Build(packages, "cold", (cold,)), Build(packages, "warm", tuple(warm))]
    return builds, Restored(packages, tuple(ways))


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
