"""Nx, sccache and ccache on the cache, through `larder run`."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from . import node
from .build_tools import Counts, packed, reading_key, run, settings
from .cloud import COUNTS_AFTER_S, LocalCloud, free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the compilers' caches need gcc"),
]

NX = "24.0.6"
SIZES = {"small": 1_000, "inline": 3_900_000, "direct": 6_000_000, "large": 40_000_000}
"""Bytes that projects of Nx write: through a function, and straight to storage."""


@pytest.fixture(scope="module")
def larder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("larder"))


@pytest.fixture(scope="module")
def nx_workspace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("nx")
    fill_nx(root, request.config.rootpath / ".tools", NX, SIZES)
    return root


def fill_nx(root: Path, tools: Path, version: str, sizes: Mapping[str, int]) -> None:
    """Projects that write so many random bytes, so that equal outputs come from the cache."""

    def fill(folder: Path) -> None:
        wanted = f"nx@{version}"
        node.npm("install", "--prefix", str(folder), "--no-audit", "--no-fund", wanted)

    modules = node.made_once(tools / "nx" / version, fill) / "node_modules"
    (root / "node_modules").symlink_to(modules)
    (root / "package.json").write_text(json.dumps({"name": "workspace", "private": True}))
    cached = {"build": {"cache": True, "outputs": ["{projectRoot}/dist"]}}
    settings = {"neverConnectToCloud": True, "analytics": False, "targetDefaults": cached}
    (root / "nx.json").write_text(json.dumps(settings))
    (root / ".gitignore").write_text("node_modules\n.nx\ndist\n")
    for name, size in sizes.items():
        command = f"mkdir -p dist && head -c {size} /dev/urandom > dist/out.bin"
        target = {"command": command, "options": {"cwd": name}}
        project = {"name": name, "targets": {"build": target}}
        (root / name).mkdir()
        (root / name / "project.json").write_text(json.dumps(project))
        (root / name / "unique.txt").write_text(secrets.token_hex(8))
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)


def nx_build(larder: Path, root: Path, env: Mapping[str, str]) -> tuple[Counts, str]:
    """Run Nx without local data of earlier builds."""
    for folder in (root / ".nx/cache", root / ".nx/workspace-data", *root.glob("*/dist")):
        shutil.rmtree(folder, ignore_errors=True)
    command = str(root / "node_modules" / ".bin" / "nx")
    return run(
        larder,
        root,
        {**env, "NX_DAEMON": "false", "CI": "true"},
        *(command, "run-many", "-t", "build"),
    )


def outputs(root: Path) -> dict[str, str]:
    return {
        file.parts[-3]: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.glob("*/dist/out.bin")
    }


def test_nx_restores_outputs_of_every_size_byte_for_byte(
    local_cloud: LocalCloud, larder: Path, nx_workspace: Path, tmp_path: Path
) -> None:
    env = settings(local_cloud, tmp_path)
    cold, _ = nx_build(larder, nx_workspace, env)
    built = outputs(nx_workspace)
    warm, said = nx_build(larder, nx_workspace, env)
    assert (cold, warm) == ((0, 4, 4, 0), (4, 0, 0, 0))
    assert "4 out of 4 tasks" in said
    assert outputs(nx_workspace) == built
    assert local_cloud.token not in said
    listed = local_cloud.larder("artifacts", "list", local_cloud.team, "--prefix", "nx-")
    assert len(listed) == 4
    headers = {"Authorization": f"Bearer {local_cloud.token}"}
    url = f"{local_cloud.url}/v1/runs?slug={local_cloud.team}"
    runs = httpx.get(url, headers=headers, trust_env=False).json()
    assert [(one["built"], one["remoteHits"]) for one in runs["runs"]] == [(0, 4), (4, 0)]
    assert {(one["package"], one["task"]) for one in runs["figures"]["tasks"]} == {
        (name, "build") for name in SIZES
    }


def test_nx_builds_with_a_key_that_only_reads_with_a_wrong_one_and_without_larder(
    local_cloud: LocalCloud, larder: Path, nx_workspace: Path, tmp_path: Path
) -> None:
    """Nx ends a build for most errors of a cache. Here it never sees one."""
    reader = reading_key(local_cloud)
    for project in SIZES:
        (nx_workspace / project / "changed.txt").write_text(secrets.token_hex(8))
    counts, said = nx_build(larder, nx_workspace, settings(local_cloud, tmp_path, reader))
    assert (counts[0], counts[2]) == (0, 0)
    assert "the token cannot store" in said
    wrong = "larder_" + "x" * 64
    counts, said = nx_build(larder, nx_workspace, settings(local_cloud, tmp_path, wrong))
    assert (counts[0], counts[2]) == (0, 0)
    assert said.count("Larder refuses the token (401)") == 1
    nowhere = {**settings(local_cloud, tmp_path), "TURBO_API": f"http://127.0.0.1:{free_port()}"}
    counts, said = nx_build(larder, nx_workspace, nowhere)
    assert (counts[0], counts[2]) == (0, 0)
    assert said.count("Larder does not answer") == 1


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["20.8.4", "21.6.11", "22.7.12", "23.3.2"])
def test_older_versions_of_nx_ask_once_for_each_task(
    version: str,
    local_cloud: LocalCloud,
    larder: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """22.7.12 by itself asks again and again for tasks that wait: thousands of times for 120 tasks."""
    root = tmp_path / "workspace"
    root.mkdir()
    sizes = dict.fromkeys((f"p{number}" for number in range(120)), 1_000)
    fill_nx(root, request.config.rootpath / ".tools", version, sizes)
    env = settings(local_cloud, tmp_path)

    def lookups(mark: int) -> int:
        return sum(
            one.method == "GET" and one.path.startswith("/v8/artifacts/nx-")
            for one in local_cloud.requests_since(mark)
        )

    mark = local_cloud.log_size()
    cold, _ = nx_build(larder, root, env)
    assert cold == (0, 120, 120, 0)
    assert lookups(mark) <= 130
    built = outputs(root)
    mark = local_cloud.log_size()
    warm, _ = nx_build(larder, root, env)
    assert warm == (120, 0, 0, 0)
    assert lookups(mark) <= 130
    assert outputs(root) == built


SOURCES = 6
MAKEFILE = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t$(CC) -c $< -o $@\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    root = tmp_path / "sources"
    root.mkdir()
    unique = secrets.token_hex(8)
    for number in range(SOURCES):
        (root / f"f{number}.c").write_text(
            f'const char *f{number}(void) {{ return "{unique}"; }}\n'
        )
    (root / "Makefile").write_text(MAKEFILE)
    return root


def objects(root: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(root.glob("*.o"))}


def compile_twice(
    larder: Path, root: Path, env: dict[str, str], folder: str, compiler: str
) -> list[Counts]:
    """Compile with an empty local cache each time. Both builds give the same objects."""
    counts, built = [], []
    for _ in range(2):
        for file in root.glob("*.o"):
            file.unlink()
        own = {folder: str(root / secrets.token_hex(4))}
        counts.append(run(larder, root, {**env, **own}, "sh", "-c", f"make -s CC='{compiler}'")[0])
        built.append(objects(root))
    assert built[0] == built[1]
    assert len(built[0]) == SOURCES
    return counts


@pytest.fixture(scope="module")
def compilers(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.config.rootpath / ".tools" / "compilers" / "bin"
    assert (folder / "ccache").exists(), "run `make .tools/compilers/.ready`"
    return folder


def test_ccache_compiles_from_the_cache(
    local_cloud: LocalCloud, larder: Path, sources: Path, compilers: Path, tmp_path: Path
) -> None:
    """It has two entries for a compile. It speaks no https, and needs none on this computer."""
    env = settings(local_cloud, tmp_path)
    cold, warm = compile_twice(larder, sources, env, "CCACHE_DIR", f"{compilers}/ccache gcc")
    assert cold == (0, 2 * SOURCES, 2 * SOURCES, 0)
    assert (warm[0], warm[1:]) == (2 * SOURCES, (0, 0, 0))


def test_sccache_compiles_from_the_cache(
    local_cloud: LocalCloud, larder: Path, sources: Path, compilers: Path, tmp_path: Path
) -> None:
    env = settings(local_cloud, tmp_path)
    program = f"{compilers}/sccache"
    (sources / "Makefile").write_text(MAKEFILE.replace("all:", "all: stopped\nstopped:", 1))
    (sources / "Makefile").write_text(
        f"all: objects\n\t{program} --stop-server >/dev/null\n"
        + MAKEFILE.replace("all:", "objects:", 1)
    )
    cold, warm = compile_twice(larder, sources, env, "SCCACHE_DIR", f"{program} gcc")
    assert (cold, warm) == ((0, SOURCES, SOURCES, 0), (SOURCES, 0, 0, 0))


@pytest.mark.parametrize("tool", ["ccache", "sccache"])
def test_compilers_build_without_larder_and_with_a_key_that_only_reads(
    tool: str,
    local_cloud: LocalCloud,
    larder: Path,
    sources: Path,
    compilers: Path,
    tmp_path: Path,
) -> None:
    program = f"{compilers}/{tool}"
    stop = f"\n\t{program} --stop-server >/dev/null" if tool == "sccache" else ""
    makefile = f"all: objects{stop}\n" + MAKEFILE.replace("all:", "objects:", 1)
    (sources / "Makefile").write_text(makefile)
    folder, command = f"{tool.upper()}_DIR", f"{program} gcc"
    env = settings(local_cloud, tmp_path)
    nowhere = {**env, "TURBO_API": f"http://127.0.0.1:{free_port()}"}
    for counts in compile_twice(larder, sources, nowhere, folder, command):
        assert (counts.hits, counts.stored) == (0, 0)
    reader = settings(local_cloud, tmp_path, reading_key(local_cloud))
    for counts in compile_twice(larder, sources, reader, folder, command):
        assert (counts.hits, counts.stored) == (0, 0)
    stored = compile_twice(larder, sources, env, folder, command)[0].stored
    assert stored > 0
    for counts in compile_twice(larder, sources, reader, folder, command):
        assert counts == (stored, 0, 0, 0)


@pytest.fixture(scope="module")
def guarded(local_cloud: LocalCloud) -> dict[str, str]:
    """Keys of a protected team: one that is trusted, one that is not."""
    email, team = "ada@acme.example", "guarded"
    local_cloud.larder("users", "create", "--email", email, "--name", "Ada")
    local_cloud.larder("teams", "create", "--name", "G", "--slug", team, "--owner", email)
    of_team = ("keys", "create", "--user", email, "--team", team)
    keys = {
        "main": local_cloud.larder(*of_team, "--trusted")["key"],
        "pull request": local_cloud.larder(*of_team)["key"],
    }
    time.sleep(COUNTS_AFTER_S)
    return keys


def test_a_pull_request_cannot_change_what_main_compiles(
    local_cloud: LocalCloud,
    larder: Path,
    sources: Path,
    compilers: Path,
    guarded: dict[str, str],
    tmp_path: Path,
) -> None:
    """In a protected team, whatever tool it uses."""

    def compile_as(job: str) -> Counts:
        for file in sources.glob("*.o"):
            file.unlink()
        env = {**settings(local_cloud, tmp_path, guarded[job]), "TURBO_TEAM": "guarded"}
        own = {"CCACHE_DIR": str(sources / secrets.token_hex(4))}
        build = f"make -s CC='{compilers}/ccache gcc'"
        return run(larder, sources, {**env, **own}, "sh", "-c", build)[0]

    both = 2 * SOURCES
    assert compile_as("pull request") == (0, both, both, 0)
    assert compile_as("main") == (0, both, both, 0)
    assert compile_as("pull request") == (both, 0, 0, 0)
    assert compile_as("main") == (both, 0, 0, 0)


def test_headers_that_change_in_turns_hit_directly_in_a_protected_team(
    local_cloud: LocalCloud,
    larder: Path,
    sources: Path,
    compilers: Path,
    guarded: dict[str, str],
    tmp_path: Path,
) -> None:
    """ccache adds the second set of headers to its manifest, under the same key: a trusted writer replaces it."""
    for file in sources.glob("*.c"):
        file.write_text(f'#include "h.h"\n{file.read_text()}')
    env = {**settings(local_cloud, tmp_path, guarded["main"]), "TURBO_TEAM": "guarded"}
    ccache = f"{compilers}/ccache"

    def compile_with(header: str) -> tuple[Counts, int]:
        (sources / "h.h").write_text(header)
        # ccache takes no header that is as new as its compile.
        os.utime(sources / "h.h", (0, 0))
        for file in sources.glob("*.o"):
            file.unlink()
        own = {"CCACHE_DIR": str(sources / secrets.token_hex(4))}
        build = f"make -s CC='{ccache} gcc' && {ccache} --print-stats"
        counts, said = run(larder, sources, {**env, **own}, "sh", "-c", build)
        stats = dict(line.split("\t") for line in said.splitlines() if "\t" in line)
        return counts, int(stats["direct_cache_hit"])

    headers = ["int one;\n", "int two;\n"]
    assert [compile_with(one)[1] for one in headers] == [0, 0]
    for header in headers * 2:
        counts, direct = compile_with(header)
        assert (counts, direct) == (Counts(2 * SOURCES, 0, 0, 0), SOURCES)


def test_usage_counts_what_the_tools_got(
    local_cloud: LocalCloud, larder: Path, sources: Path, compilers: Path, tmp_path: Path
) -> None:
    def today() -> tuple[int, int]:
        headers = {"Authorization": f"Bearer {local_cloud.token}"}
        url = f"{local_cloud.url}/v1/usage?slug={local_cloud.team}"
        total = httpx.get(url, headers=headers, trust_env=False).json()["total"]
        return total["remoteHits"], total["remoteMisses"]

    hits, misses = today()
    env = settings(local_cloud, tmp_path)
    compile_twice(larder, sources, env, "CCACHE_DIR", f"{compilers}/ccache gcc")
    assert today() == (hits + 2 * SOURCES, misses + 2 * SOURCES)
