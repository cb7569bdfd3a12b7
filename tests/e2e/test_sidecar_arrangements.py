"""`larder run` with an unusual clock, network or user, with turbo that watches, and with a key whose uses end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from . import monorepo, turbo
from .build_tools import counted, settings, through
from .cloud import LocalCloud
from .workspaces import SOURCES, ccache, needs

pytestmark = [pytest.mark.e2e, pytest.mark.thorough, needs("gcc")]

ENTRIES = 2 * SOURCES
"""ccache has two for a compile."""

ONLY_IPV6 = 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"'


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may use, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("prefix", "hits"),
    [
        pytest.param(["faketime", "-f", "-3d"], ENTRIES, id="3 days behind", marks=needs("faketime")),
        pytest.param(["faketime", "-f", "+2y"], ENTRIES, id="2 years ahead", marks=needs("faketime")),
        pytest.param(
            ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"],
            ENTRIES,
            id="unknown user",
            marks=needs("setpriv"),
        ),
        pytest.param(["unshare", "--net", "sh", "-c", ONLY_IPV6, "sh"], 0, id="only IPv6", marks=needs("unshare")),
    ],
)
def test_compilers_build_on_an_unusual_computer(
    prefix: list[str], hits: int, local_cloud: LocalCloud, larder: Path, tools: Path, open_folder: Path
) -> None:
    """An unknown user has no home folder. Without 127.0.0.1 there is no cache."""
    if os.getuid() != 0 and prefix[0] != "faketime":
        pytest.skip("only root can become another user, or change a network")
    program = shutil.copy(larder, open_folder)
    workspace = ccache(open_folder / "sources", tools)
    env = {**settings(local_cloud, open_folder), **workspace.variables}
    if "setpriv" in prefix:
        # ccache alone needs one.
        workspace.command[:0] = ["env", f"HOME={env.pop('HOME')}"]
        subprocess.run(["chown", "-R", "54321", workspace.root], check=True)

    def build() -> str:
        workspace.forget()
        command = [*prefix, sys.executable, program, "run", "--", *workspace.command]
        done = subprocess.run(command, cwd=workspace.root, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    cold, built = build(), workspace.digests()
    warm = build()
    assert workspace.digests() == built
    if hits:
        assert counted(cold) == (0, ENTRIES, ENTRIES, 0)
        assert counted(warm) == (hits, 0, 0, 0)
    else:
        assert warm.startswith("Larder: no cache: [Errno 99] Cannot assign requested address")


def test_turbo_watches_and_the_next_job_restores_what_it_built(
    larder: Path,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
    tmp_path: Path,
) -> None:
    direct = client(turbo.NEWEST)
    one = through(larder, direct)
    root = fresh_monorepo(turbo.NEWEST, seed="watch", template=short_monorepo)
    log = tmp_path / "log"
    with log.open("w") as output:
        watching = subprocess.Popen(
            [str(one.command), "watch", "build", "--ui=stream", "--experimental-write-cache"],
            cwd=root,
            env=one.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        packages = len([*root.glob("packages/*/package.json")])
        wait_for(lambda: len([*root.glob("packages/*/dist")]) == packages, log)
        edited = min(root.glob("packages/*/package.json")).parent
        before = monorepo.output_digests(root)
        (edited / "edited.txt").write_text("edited")
        wait_for(lambda: monorepo.output_digests(root) != before, log)
        os.killpg(watching.pid, signal.SIGINT)
        watching.wait(60)
    finally:
        if watching.poll() is None:
            os.killpg(watching.pid, signal.SIGKILL)
    assert counted(log.read_text()).stored > packages, log.read_text()
    monorepo.wipe_outputs_and_local_cache(root)
    assert turbo.build(one, root).full_turbo


def wait_for(is_so: Callable[[], bool], log: Path) -> None:
    ends = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.1)
    # turbo stores the output after the task.
    time.sleep(2)


def test_a_key_whose_uses_end_fails_no_build(
    local_cloud: LocalCloud,
    larder: Path,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
) -> None:
    """The last line says why nothing more was stored."""
    owner = ("--owned-by-team", "--team", local_cloud.team, "--name", "few")
    created = local_cloud.larder("keys", "create", *owner, "--remaining", "10")
    direct = client(turbo.NEWEST)
    few = replace(direct, remote_cache={**direct.remote_cache, "TURBO_TOKEN": created["key"]})
    root = fresh_monorepo(turbo.NEWEST, seed="few uses", template=short_monorepo)
    run = turbo.build(through(larder, few), root)
    found = counted(run.text)
    assert found.stored + found.not_stored == run.total
    assert found.not_stored > 0
