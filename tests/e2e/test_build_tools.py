"""Nx, sccache and ccache on the cache, through `larder run`."""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path

import httpx
import pytest

from .build_tools import Counts, reading_key, settings
from .cloud import COUNTS_AFTER_S, LocalCloud, free_port
from .workspaces import CRATES, SIZES, SOURCES, Make, Workspace, ccache, needs, nx, rust, sccache

pytestmark = [pytest.mark.e2e, needs("gcc")]


@pytest.fixture(scope="module")
def nx_workspace(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return nx(tmp_path_factory.mktemp("nx"), tools)


@pytest.mark.thorough
def test_nx_restores_outputs_of_every_size_byte_for_byte(
    local_cloud: LocalCloud, larder: Path, nx_workspace: Workspace, tmp_path: Path
) -> None:
    env = settings(local_cloud, tmp_path)
    cold, _ = nx_workspace.build(larder, env)
    built = nx_workspace.digests()
    warm, said = nx_workspace.build(larder, env)
    assert (cold, warm) == ((0, 4, 4, 0), (4, 0, 0, 0))
    assert "4 out of 4 tasks" in said
    assert nx_workspace.digests() == built
    assert local_cloud.token not in said
    listed = local_cloud.larder("artifacts", "list", local_cloud.team, "--prefix", "nx-")
    assert len(listed) == 4
    headers = {"Authorization": f"Bearer {local_cloud.token}"}
    url = f"{local_cloud.url}/v1/runs?slug={local_cloud.team}"
    runs = httpx.get(url, headers=headers, trust_env=False).json()
    assert [(run["built"], run["remoteHits"]) for run in runs["runs"]] == [(0, 4), (4, 0)]
    assert {(task["package"], task["task"]) for task in runs["figures"]["tasks"]} == {(name, "build") for name in SIZES}


@pytest.mark.thorough
def test_nx_builds_with_a_key_that_only_reads(
    local_cloud: LocalCloud, larder: Path, nx_workspace: Workspace, tmp_path: Path
) -> None:
    for project in SIZES:
        (nx_workspace.root / project / "changed.txt").write_text(secrets.token_hex(8))
    reader = settings(local_cloud, tmp_path, reading_key(local_cloud))
    counts, said = nx_workspace.build(larder, reader)
    assert (counts.hits, counts.stored) == (0, 0)
    assert "the token cannot store" in said


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["20.8.4", "21.6.11", "22.7.12", "23.3.2"])
def test_older_versions_of_nx_ask_once_for_each_task(
    version: str, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """22.7.12 by itself asks again and again for tasks that wait: thousands of times for 120 tasks."""
    sizes = dict.fromkeys((f"p{number}" for number in range(120)), 1_000)
    workspace = nx(tmp_path / "workspace", tools, sizes, version)
    env = settings(local_cloud, tmp_path)

    def lookups(mark: int) -> int:
        return sum(
            request.method == "GET" and request.path.startswith("/v8/artifacts/nx-")
            for request in local_cloud.requests_since(mark)
        )

    mark = local_cloud.log_size()
    cold, _ = workspace.build(larder, env)
    assert cold == (0, 120, 120, 0)
    assert lookups(mark) <= 130
    built = workspace.digests()
    mark = local_cloud.log_size()
    warm, _ = workspace.build(larder, env)
    assert warm == (120, 0, 0, 0)
    assert lookups(mark) <= 130
    assert workspace.digests() == built


COMPILERS = [pytest.param(ccache, 2 * SOURCES, id="ccache"), pytest.param(sccache, SOURCES, id="sccache")]
"""Each with its number of entries: ccache has two for a compile."""


@pytest.mark.parametrize(("make", "entries"), COMPILERS)
def test_compilers_restore_objects(
    make: Make, entries: int, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """ccache speaks no https, and needs none on this computer."""
    workspace = make(tmp_path / "sources", tools)
    env = settings(local_cloud, tmp_path)
    assert workspace.build(larder, env)[0] == (0, entries, entries, 0)
    built = workspace.digests()
    counts, _ = workspace.build(larder, env)
    assert counts == (entries, 0, 0, 0)
    assert workspace.digests() == built


@needs("cargo")
@pytest.mark.thorough
def test_sccache_restores_all_dependencies_of_a_rust_program(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """The second build does not use the server of the first. sccache counts what Larder counts."""

    def counted(said: str) -> dict[str, int]:
        stats = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["stats"]
        return {name: sum(stats[name]["counts"].values()) for name in ("cache_hits", "cache_misses")}

    workspace, env = rust(tmp_path / "rust", tools), settings(local_cloud, tmp_path)
    counts, said = workspace.build(larder, env)
    assert counts == (0, CRATES, CRATES, 0)
    assert counted(said) == {"cache_hits": 0, "cache_misses": CRATES}
    built = workspace.digests()
    counts, said = workspace.build(larder, env)
    assert counts == (CRATES, 0, 0, 0)
    assert counted(said) == {"cache_hits": CRATES, "cache_misses": 0}
    assert workspace.digests() == built


@pytest.mark.parametrize(("make", "entries"), COMPILERS)
def test_compilers_build_without_larder_and_with_a_key_that_only_reads(
    make: Make, entries: int, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    workspace = make(tmp_path / "sources", tools)
    env = settings(local_cloud, tmp_path)
    nowhere = {**env, "TURBO_API": f"http://127.0.0.1:{free_port()}"}
    reader = settings(local_cloud, tmp_path, reading_key(local_cloud))
    for some in (nowhere, reader):
        counts, _ = workspace.build(larder, some)
        assert (counts.hits, counts.stored) == (0, 0)
    assert workspace.build(larder, env)[0].stored == entries
    assert workspace.build(larder, reader)[0] == (entries, 0, 0, 0)


@pytest.fixture(scope="module")
def guarded(local_cloud: LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Variables of two jobs of a protected team: one that is trusted, one that is not."""
    email, team = "ada@acme.example", "guarded"
    local_cloud.larder("users", "create", "--email", email, "--name", "Ada")
    local_cloud.larder("teams", "create", "--name", "G", "--slug", team, "--owner", email)
    of_team = ("keys", "create", "--user", email, "--team", team)
    keys = {
        "main": local_cloud.larder(*of_team, "--trusted")["key"],
        "pull request": local_cloud.larder(*of_team)["key"],
    }
    time.sleep(COUNTS_AFTER_S)
    home = tmp_path_factory.mktemp("home")
    return {job: {**settings(local_cloud, home, key), "TURBO_TEAM": team} for job, key in keys.items()}


def test_a_pull_request_cannot_change_what_main_compiles(
    larder: Path, tools: Path, guarded: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    """In a protected team, whatever tool it uses."""
    workspace = ccache(tmp_path / "sources", tools)
    both = 2 * SOURCES
    for job, counts in (
        ("pull request", (0, both, both, 0)),
        ("main", (0, both, both, 0)),
        ("pull request", (both, 0, 0, 0)),
        ("main", (both, 0, 0, 0)),
    ):
        assert workspace.build(larder, guarded[job])[0] == counts


def test_headers_that_change_in_turns_hit_directly_in_a_protected_team(
    larder: Path, tools: Path, guarded: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    """ccache adds the second set of headers to its manifest, under the same key: a trusted writer replaces it."""
    workspace = ccache(tmp_path / "sources", tools)
    for file in workspace.root.glob("*.c"):
        file.write_text(f'#include "h.h"\n{file.read_text()}')
    program = tools / "compilers/bin/ccache"
    workspace.command[:] = ["sh", "-c", f"make -s CC='{program} gcc' && {program} --print-stats"]

    def compile_with(header: str) -> tuple[Counts, int]:
        (workspace.root / "h.h").write_text(header)
        # ccache takes no header that is as new as its compile.
        os.utime(workspace.root / "h.h", (0, 0))
        counts, said = workspace.build(larder, guarded["main"])
        stats = dict(line.split("\t") for line in said.splitlines() if "\t" in line)
        return counts, int(stats["direct_cache_hit"])

    headers = ["int one;\n", "int two;\n"]
    assert [compile_with(one)[1] for one in headers] == [0, 0]
    for header in headers * 2:
        counts, direct = compile_with(header)
        assert (counts, direct) == (Counts(2 * SOURCES, 0, 0, 0), SOURCES)


def test_usage_counts_what_each_tool_got_and_the_time_of_compiles(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """A compile of ccache has two entries, so it has no time."""

    def used(tool: str) -> tuple[int, int, int, int]:
        headers = {"Authorization": f"Bearer {local_cloud.token}"}
        url = f"{local_cloud.url}/v1/usage?slug={local_cloud.team}"
        found = httpx.get(url, headers=headers, trust_env=False).json()["tools"]
        one: dict[str, int] = next((one for one in found if one["tool"] == tool), {})
        names = ("remoteHits", "remoteMisses", "untimedHits", "timeSavedMs")
        hits, misses, untimed, saved = (int(one.get(name, 0)) for name in names)
        return hits, misses, untimed, saved

    env = settings(local_cloud, tmp_path)
    for make, entries, is_timed in ((ccache, 2 * SOURCES, False), (sccache, SOURCES, True)):
        workspace = make(tmp_path / make.__name__, tools)
        before = used(make.__name__)
        started = time.monotonic()
        workspace.build(larder, env)
        took_ms = (time.monotonic() - started) * 1_000
        workspace.build(larder, env)
        hits, misses, untimed, saved = (now - former for now, former in zip(used(make.__name__), before, strict=True))
        assert (hits, misses, untimed) == (entries, entries, 0 if is_timed else entries)
        assert 0 < saved < took_ms if is_timed else saved == 0
