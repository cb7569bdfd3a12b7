"""Gradle, moon, Rush and Bazel on the cache, through `larder run` and `larder proxy`."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from .build_tools import Counts, reading_key, settings
from .cloud import LocalCloud, free_port
from .workspaces import BAZEL_ACTIONS, MOON_FILES, Make, bazel, commit, delete, gradle, installed, moon, needs, write

pytestmark = pytest.mark.e2e

RUSH = "5.179.0"


TOOLS = [
    pytest.param(moon, Counts(0, 1, MOON_FILES + 3, 0), 1, id="moon"),
    pytest.param(gradle, Counts(0, 2, 2, 0), 2, id="gradle", marks=needs("gradle")),
    pytest.param(
        bazel, Counts(0, BAZEL_ACTIONS, 5 * BAZEL_ACTIONS, 0), BAZEL_ACTIONS, id="bazel", marks=needs("bazel")
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "first", "hits"), TOOLS)
def test_a_second_build_restores_all_outputs_byte_for_byte(
    make: Make, first: Counts, hits: int, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """Also with a key that can only read, and without Larder, the build succeeds."""
    workspace = make(tmp_path / "workspace", tools)
    env = settings(local_cloud, tmp_path)
    unreachable = {**env, "TURBO_API": f"http://127.0.0.1:{free_port()}"}
    counts, said = workspace.build(larder, unreachable)
    assert (counts.hits, counts.stored) == (0, 0)
    assert said.count("Larder does not answer (") == 1
    reader = settings(local_cloud, tmp_path, reading_key(local_cloud))
    counts, said = workspace.build(larder, reader)
    assert (counts.hits, counts.stored) == (0, 0)
    assert said.count("the token cannot store: nothing is uploaded") == 1
    counts, _ = workspace.build(larder, env)
    built = workspace.digests()
    assert counts == first
    for some in (env, reader):
        counts, said = workspace.build(larder, some)
        assert workspace.digests() == built
        assert counts == (hits, 0, 0, 0)
        assert local_cloud.token not in said


@pytest.mark.thorough
def test_moon_restores_its_outputs_and_usage_and_runs_name_it(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    def ask(path: str) -> dict[str, list[dict[str, object]]]:
        headers = {"Authorization": f"Bearer {local_cloud.token}"}
        url = f"{local_cloud.url}{path}?slug={local_cloud.team}"
        found: dict[str, list[dict[str, object]]] = httpx.get(url, headers=headers, trust_env=False).json()
        return found

    workspace = moon(tmp_path / "workspace", tools)
    env = settings(local_cloud, tmp_path)
    before = {tool["tool"]: tool for tool in ask("/v1/usage")["tools"]}.get("moon", {})
    started = time.monotonic()
    workspace.build(larder, env)
    took_ms = (time.monotonic() - started) * 1_000
    built = workspace.digests()
    workspace.build(larder, env)
    assert workspace.digests() == built
    assert len(built) == MOON_FILES + 1
    (now,) = (tool for tool in ask("/v1/usage")["tools"] if tool["tool"] == "moon")
    for name in ("remoteHits", "remoteMisses"):
        assert now[name] == int(str(before.get(name, 0))) + 1
    saved = int(str(now["timeSavedMs"])) - int(str(before.get("timeSavedMs", 0)))
    assert 0 < saved < took_ms
    newest, former = ask("/v1/runs")["runs"][:2]
    assert [(one["client"], one["remoteHits"], one["built"]) for one in (former, newest)] == [
        ("moon", 0, 1),
        ("moon", 1, 0),
    ]
    assert newest["timeSavedMs"] == saved


RUSH_SCRIPT = "mkdir -p dist && head -c 6000000 /dev/urandom > dist/out.bin"


@pytest.mark.thorough
def test_rush_restores_from_the_proxy_of_the_user(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """Its address is in a file, so it needs a port that stays. It waits five seconds for each miss."""
    root, port = tmp_path / "workspace", free_port()
    rush = installed(tools, "rush", f"@microsoft/rush@{RUSH}") / ".bin/rush"
    project = {"name": "app", "version": "1.0.0", "scripts": {"build": RUSH_SCRIPT}}
    http = {"url": f"http://127.0.0.1:{port}/rush/", "isCacheWriteAllowed": True}
    cache = {"buildCacheEnabled": True, "cacheProvider": "http", "httpConfiguration": http}
    projects = [{"packageName": "app", "projectFolder": "app"}]
    own = {"operationName": "build", "outputFolderNames": ["dist"]}
    write(
        root,
        {
            "rush.json": json.dumps(
                {
                    "rushVersion": RUSH,
                    "pnpmVersion": "9.15.9",
                    "nodeSupportedVersionRange": ">=18.0.0",
                    "projects": projects,
                }
            ),
            "common/config/rush/build-cache.json": json.dumps(cache),
            "app/package.json": json.dumps(project),
            "app/config/rush-project.json": json.dumps({"operationSettings": [own]}),
            "app/in.txt": secrets.token_hex(8),
            ".gitignore": "node_modules\ncommon/temp\ndist\n.rush\nrush-logs\n*.log\n",
        },
    )
    commit(root)
    env = settings(local_cloud, tmp_path)

    def call(*command: str, **more: str) -> str:
        done = subprocess.run(command, cwd=root, env={**env, **more}, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def proxy(*arguments: str) -> str:
        return call(sys.executable, str(larder), "proxy", *arguments)

    def build() -> tuple[str, bytes]:
        delete(root / "app/dist", root / "common/temp/build-cache")
        for file in (root / "app/.rush/temp").glob("package-deps*"):
            file.unlink()
        delete(root / "app/.rush/temp/operation")
        return call(str(rush), "build", **variables), (root / "app/dist/out.bin").read_bytes()

    def start() -> dict[str, str]:
        """The variables of Rush."""
        proxy("start", "--port", str(port))
        lines = [line.removeprefix("export ").split("=", 1) for line in proxy("env", "rush").splitlines()]
        return {name: value.strip("'") for name, value in lines}

    call(str(rush), "update")
    try:
        variables = start()
        _, built = build()
        while json.loads(proxy("status"))["stored"] != 1:
            assert json.loads(proxy("status"))["not_stored"] == {}
        said, restored = build()
        counts = json.loads(proxy("status"))
        proxy("stop")
        # Rush itself ends with 1 if an upload is refused.
        env["TURBO_TOKEN"] = reading_key(local_cloud)
        (root / "app/in.txt").write_text(secrets.token_hex(8))
        variables = start()
        _, changed = build()
        refused = json.loads(proxy("status"))
    finally:
        proxy("stop")
    assert "restored from the build cache" in said
    assert restored == built
    assert (counts["hits"], counts["misses"], counts["stored"]) == (1, 1, 1)
    assert changed != built
    assert (refused["hits"], refused["misses"], refused["stored"]) == (0, 1, 0)
