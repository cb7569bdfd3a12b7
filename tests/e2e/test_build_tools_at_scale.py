"""Builds through `larder run` at scale: few functions, builds at once, large outputs, a restart in mid-build."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from .build_tools import Counts, settings
from .cloud import LocalCloud, running
from .workspaces import Workspace, nx, nx_in

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

TASKS = 300


@pytest.fixture(scope="module")
def small_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud with as many functions at once as a new AWS account."""
    folder = tmp_path_factory.mktemp("cloud")
    with running(request.config.rootpath, folder / "data", CONCURRENCY="10") as server:
        yield server


def many_tasks(root: Path, tools: Path) -> Workspace:
    return nx(root, tools, dict.fromkeys((f"p{number}" for number in range(TASKS)), 1_000))


def test_builds_at_once_and_jobs_one_after_the_other_with_ten_functions(
    small_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """Nx sends all lookups at once. `larder run` asks again where a function is missing, and Nx sees no error."""
    first = many_tasks(tmp_path / "first", tools)

    def copy(name: str) -> Workspace:
        root = tmp_path / name
        shutil.copytree(first.root, root, symlinks=True)
        return nx_in(root)

    second = copy("second")
    env = settings(small_cloud, tmp_path)
    with ThreadPoolExecutor() as pool:
        for counts, _ in pool.map(lambda one: one.build(larder, env), (first, second)):
            assert counts.hits + counts.misses == TASKS
            assert (counts.stored, counts.not_stored) == (counts.misses, 0)
    for job in ("second job", "third job"):
        assert copy(job).build(larder, env)[0] == Counts(TASKS, 0, 0, 0)
    headers = {"Authorization": f"Bearer {small_cloud.token}"}
    url = f"{small_cloud.url}/v1/usage?slug={small_cloud.team}"
    nx = next(tool for tool in httpx.get(url, headers=headers, trust_env=False).json()["tools"] if tool["tool"] == "nx")
    assert nx["remoteHits"] + nx["remoteMisses"] == 4 * TASKS
    listed = small_cloud.larder("artifacts", "list", small_cloud.team, "--prefix", "nx-", "--limit", "1000")
    assert len(listed) == TASKS
    totals = small_cloud.larder("usage", small_cloud.team)
    assert totals["stored_bytes"] == sum(one["size_bytes"] for one in listed)


LARGE = 120_000_000
PARALLEL = 8


def test_large_outputs_in_parallel_take_little_memory_and_leave_no_file(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    sizes = dict.fromkeys((f"p{number}" for number in range(PARALLEL)), LARGE)
    workspace = nx(tmp_path / "workspace", tools, sizes)
    env = {**settings(local_cloud, tmp_path), **workspace.variables}
    env |= {"NX_PARALLEL": str(PARALLEL), "TMPDIR": str(spool)}
    measured = f"""
import os, re, runpy, sys
exit = os._exit
def measured(status):
    peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
    print("peak", peak, file=sys.stderr, flush=True)
    exit(status)
os._exit = measured
sys.argv = {[str(larder), "run", "--", *workspace.command]!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    peaks, digests, said = [], [], ""
    for _ in range(2):
        workspace.forget()
        done = subprocess.run(
            [sys.executable, "-c", measured], cwd=workspace.root, env=env, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stderr
        peaks.append(int(said.rpartition("peak ")[2]))
        digests.append(workspace.digests())
    assert f"Larder: {PARALLEL} hits, 0 misses" in said
    assert digests[0] == digests[1]
    assert max(peaks) < 64_000
    assert [*spool.glob("larder-*")] == []


def test_a_restart_of_larder_in_and_between_builds_costs_hits_only(
    request: pytest.FixtureRequest, larder: Path, tools: Path, tmp_path: Path
) -> None:
    workspace = many_tasks(tmp_path / "workspace", tools)
    with running(request.config.rootpath, tmp_path / "data") as cloud:
        env = settings(cloud, tmp_path)
        with ThreadPoolExecutor() as pool:
            building = pool.submit(workspace.build, larder, env)
            while not workspace.outputs():
                assert not building.done()
                time.sleep(0.05)
            cloud.restart()
            building.result()
        time.sleep(1)
        counts, _ = workspace.build(larder, env)
        assert counts.hits + counts.misses == TASKS
        assert counts.hits > 0
        built = workspace.digests()
        cloud.restart()
        counts, _ = workspace.build(larder, env)
        assert counts == (TASKS, 0, 0, 0)
        assert workspace.digests() == built


def test_deleted_entries_are_built_again_and_turbo_reads_none_of_nx(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    workspace = nx(tmp_path / "workspace", tools, {"one": 1_000, "two": 6_000_000})
    env = settings(local_cloud, tmp_path)
    of_nx = ("artifacts", "list", local_cloud.team, "--prefix", "nx-")
    before = local_cloud.larder(*of_nx)
    assert workspace.build(larder, env)[0] == (0, 2, 2, 0)
    (entry, _) = (one for one in local_cloud.larder(*of_nx) if one not in before)
    headers = {"Authorization": f"Bearer {local_cloud.token}"}
    for hash, status in ((entry["hash"].removeprefix("nx-"), 404), (entry["hash"], 200)):
        url = f"{local_cloud.url}/v8/artifacts/{hash}?slug={local_cloud.team}"
        reply = httpx.get(url, headers=headers, trust_env=False, follow_redirects=False)
        assert (reply.status_code == 404) == (status == 404)
    local_cloud.larder("artifacts", "delete", local_cloud.team, entry["hash"])
    assert workspace.build(larder, env)[0] == (1, 1, 1, 0)
    writer = local_cloud.larder(*of_nx)[0]
    local_cloud.larder("artifacts", "delete", local_cloud.team, "--writer", writer["writer"])
    ends = time.monotonic() + 60
    while local_cloud.larder(*of_nx):
        assert time.monotonic() < ends
    assert workspace.build(larder, env)[0] == (0, 2, 2, 0)
