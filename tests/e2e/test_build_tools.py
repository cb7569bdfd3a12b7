"""Nx, sccache and ccache on the cache, through `larder run`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tools.release.package import pack_sidecar

from . import node
from .cloud import COUNTS_AFTER_S, LocalCloud

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the compilers' caches need gcc"),
]

NX = "24.0.6"
SIZES = {"small": 1_000, "inline": 3_900_000, "direct": 6_000_000, "large": 40_000_000}
"""Bytes that projects of Nx write: through a function, and straight to storage."""
LINE = re.compile(r"Larder: (\d+) hits, (\d+) misses, (\d+) stored \([\d.]+ MB\), (\d+) refused")


@pytest.fixture(scope="module")
def larder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("larder") / "larder.pyz"
    pack_sidecar(file)
    return file


@pytest.fixture(scope="module")
def nx_workspace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four projects that write random files, so that equal outputs come from the cache."""
    root = tmp_path_factory.mktemp("nx")
    tools = request.config.rootpath / ".tools"

    def fill(folder: Path) -> None:
        wanted = f"nx@{NX}"
        node.npm("install", "--prefix", str(folder), "--no-audit", "--no-fund", wanted)

    modules = node.made_once(tools / "nx" / NX, fill) / "node_modules"
    (root / "node_modules").symlink_to(modules)
    (root / "package.json").write_text(json.dumps({"name": "workspace", "private": True}))
    cached = {"build": {"cache": True, "outputs": ["{projectRoot}/dist"]}}
    settings = {"neverConnectToCloud": True, "analytics": False, "targetDefaults": cached}
    (root / "nx.json").write_text(json.dumps(settings))
    (root / ".gitignore").write_text("node_modules\n.nx\ndist\n")
    for name, size in SIZES.items():
        command = f"mkdir -p dist && head -c {size} /dev/urandom > dist/out.bin"
        target = {"command": command, "options": {"cwd": name}}
        project = {"name": name, "targets": {"build": target}}
        (root / name).mkdir()
        (root / name / "project.json").write_text(json.dumps(project))
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def settings(cloud: LocalCloud, home: Path, token: str | None = None) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TURBO_API": cloud.url,
        "TURBO_TEAM": cloud.team,
        "TURBO_TOKEN": token or cloud.token,
    }


def run(
    larder: Path, root: Path, env: Mapping[str, str], *build: str
) -> tuple[tuple[int, ...], str]:
    """Run a build that must succeed. Returns hits, misses, stored and refused entries, and the output."""
    done = subprocess.run(
        [sys.executable, str(larder), "run", "--", *build],
        cwd=root,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    match = LINE.search(done.stderr)
    assert match, done.stderr
    return tuple(map(int, match.groups())), done.stdout + done.stderr


def nx_build(larder: Path, root: Path, env: Mapping[str, str]) -> tuple[tuple[int, ...], str]:
    """Run Nx without local data of earlier builds."""
    for name in (".nx/cache", ".nx/workspace-data", *(f"{one}/dist" for one in SIZES)):
        shutil.rmtree(root / name, ignore_errors=True)
    command = str(root / "node_modules" / ".bin" / "nx")
    return run(
        larder,
        root,
        {**env, "NX_DAEMON": "false", "CI": "true"},
        *(command, "run-many", "-t", "build"),
    )


def outputs(root: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((root / name / "dist" / "out.bin").read_bytes()).hexdigest()
        for name in SIZES
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


def test_nx_builds_with_a_key_that_only_reads_and_with_a_wrong_one(
    local_cloud: LocalCloud, larder: Path, nx_workspace: Path, tmp_path: Path
) -> None:
    """Nx ends a build for most errors of a cache. Here it never sees one."""
    reader = local_cloud.larder(
        *("keys", "create", "--owned-by-team", "--team", local_cloud.team, "--name", "reader"),
        *("--permissions", "artifacts=read"),
    )["key"]
    for project in SIZES:
        (nx_workspace / project / "changed.txt").write_text(secrets.token_hex(8))
    counts, said = nx_build(larder, nx_workspace, settings(local_cloud, tmp_path, reader))
    assert (counts[0], counts[2]) == (0, 0)
    assert "the token cannot store" in said
    wrong = "larder_" + "x" * 64
    counts, said = nx_build(larder, nx_workspace, settings(local_cloud, tmp_path, wrong))
    assert (counts[0], counts[2]) == (0, 0)
    assert said.count("Larder refuses the token (401)") == 1


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
) -> list[tuple[int, ...]]:
    """Compile with an empty local cache each time. Both builds give the same objects."""
    counts, built = [], []
    for number in range(2):
        for file in root.glob("*.o"):
            file.unlink()
        own = {folder: str(root / f"cache-{number}")}
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


def test_a_pull_request_cannot_change_what_main_compiles(
    local_cloud: LocalCloud, larder: Path, sources: Path, compilers: Path, tmp_path: Path
) -> None:
    """In a protected team, whatever tool it uses."""
    email, team = "ada@acme.example", "guarded"
    local_cloud.larder("users", "create", "--email", email, "--name", "Ada")
    local_cloud.larder("teams", "create", "--name", "G", "--slug", team, "--owner", email)
    of_team = ("keys", "create", "--user", email, "--team", team)
    keys = {
        "main": local_cloud.larder(*of_team, "--trusted")["key"],
        "pull request": local_cloud.larder(*of_team)["key"],
    }
    time.sleep(COUNTS_AFTER_S)

    def compile_as(job: str) -> tuple[int, ...]:
        for file in sources.glob("*.o"):
            file.unlink()
        env = {**settings(local_cloud, tmp_path, keys[job]), "TURBO_TEAM": team}
        own = {"CCACHE_DIR": str(sources / secrets.token_hex(4))}
        build = f"make -s CC='{compilers}/ccache gcc'"
        return run(larder, sources, {**env, **own}, "sh", "-c", build)[0]

    both = 2 * SOURCES
    assert compile_as("pull request") == (0, both, both, 0)
    assert compile_as("main") == (0, both, both, 0)
    assert compile_as("pull request") == (both, 0, 0, 0)
    assert compile_as("main") == (both, 0, 0, 0)


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
