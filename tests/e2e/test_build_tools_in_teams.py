"""What a team allows applies to every build tool: quotas, blocks, rules of CI jobs, deletion. Builds stay green."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.issuer import Issuer, Server, github_claims, serving
from tests.proxy.interpreters import OLDEST, python

from .build_tools import Counts, settings
from .cloud import LocalCloud, running
from .workspaces import Make, gradle, needs, nx

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

MB = 1_000_000


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A full quota refuses uploads. Downloads come through the edge while its switch is on."""
    data = tmp_path_factory.mktemp("cloud") / "data"
    with running(request.config.rootpath, data, LARDER_OVER_QUOTA="refuse", EDGE="1") as server:
        yield server


@pytest.fixture(scope="module")
def server(local_cloud: LocalCloud) -> Iterator[Server]:
    """An issuer that the operator has accepted."""
    with serving() as one:
        one.issuer()
        local_cloud.larder("issuers", "add", one.url)
        yield one


def team_of(cloud: LocalCloud, name: str, *options: str) -> str:
    """A key of a new team, which has the slug `name`."""
    email = f"{name}@acme.example"
    cloud.larder("users", "create", "--email", email, "--name", "Ada")
    cloud.larder("teams", "create", "--name", name, "--slug", name, "--owner", email)
    if options:
        cloud.larder("teams", "set", name, *options)
    key = cloud.larder("keys", "create", "--user", email, "--team", name)["key"]
    return str(key)


def variables(cloud: LocalCloud, home: Path, team: str, key: str) -> dict[str, str]:
    return {**settings(cloud, home, key), "TURBO_TEAM": team}


def small_nx(root: Path, tools: Path) -> Any:
    return nx(root, tools, {"small": 1_000, "large": 40 * MB})


TOOLS = [pytest.param(small_nx, id="nx"), pytest.param(gradle, id="gradle", marks=needs("gradle"))]


@pytest.mark.parametrize("make", TOOLS)
def test_an_entry_larger_than_the_quota_is_refused_and_the_rest_is_stored(
    make: Make, request: pytest.FixtureRequest, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """Gradle keeps its remote cache."""
    team = f"full-{request.node.callspec.id}"
    key = team_of(local_cloud, team, "--quota", "10MB")
    workspace, env = (make(tmp_path / "workspace", tools), variables(local_cloud, tmp_path, team, key))
    for counts in ((0, 2, 1, 1), (1, 1, 0, 1)):
        found, said = workspace.build(larder, env)
        assert found == counts
        assert said.count("Larder: Larder refuses an upload") == 1
        assert "remote build cache was disabled" not in said


@pytest.mark.parametrize("make", TOOLS)
@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("--caching", "paused"), "remote_caching_paused"),
        (("--caching", "disabled"), "remote_caching_disabled"),
        (("--block", "soft_block"), "account_soft_blocked"),
        (("--block", "payment_missing"), "payment_missing"),
    ],
)
def test_a_team_without_caching_builds(
    make: Make,
    change: tuple[str, str],
    line: str,
    request: pytest.FixtureRequest,
    local_cloud: LocalCloud,
    larder: Path,
    tools: Path,
    tmp_path: Path,
) -> None:
    team = f"off-{request.node.callspec.id}".replace("_", "-")
    key = team_of(local_cloud, team, *change)
    workspace, env = (make(tmp_path / "workspace", tools), variables(local_cloud, tmp_path, team, key))
    counts, said = workspace.build(larder, env)
    assert (counts.hits, counts.misses, counts.stored) == (0, 2, 0)
    assert line in said
    assert "remote build cache was disabled" not in said


def test_nx_restores_every_size_with_and_without_the_edge(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """The edge keeps what it has stored for readers without it."""
    sizes = {"small": 1_000, "inline": 4_400_000, "direct": 6 * MB, "large": 120 * MB}
    env = settings(local_cloud, tmp_path)
    switch = local_cloud.data / "edge" / "switch.json"
    key = switch.read_text()
    try:
        for states in ((True, True), (False, False), (True, False), (False, True)):
            workspace = nx(tmp_path / "-".join(map(str, states)), tools, sizes)
            digests = []
            for is_on, counts in zip(states, (Counts(0, 4, 4, 0), Counts(4, 0, 0, 0)), strict=True):
                if is_on:
                    switch.write_text(key)
                else:
                    switch.unlink(missing_ok=True)
                assert workspace.build(larder, env)[0] == counts, states
                digests.append(workspace.digests())
            assert digests[0] == digests[1]
    finally:
        switch.write_text(key)


# Jobs of CI ---------------------------------------------------------------------------------------


def job(cloud: LocalCloud, home: Path, team: str, server: Server, **claims: Any) -> dict[str, str]:
    """The environment of a job with an id token, and without a key."""
    token = Issuer(server.url).mint({**github_claims(**claims), "aud": cloud.url})
    env = {**variables(cloud, home, team, ""), "LARDER_ID_TOKEN": token}
    del env["TURBO_TOKEN"]
    return env


def test_a_rule_that_is_disabled_in_mid_job_costs_the_rest_of_the_cache(
    local_cloud: LocalCloud, server: Server, larder: Path, tools: Path, tmp_path: Path
) -> None:
    team_of(local_cloud, "stopped")
    add = ("trust", "add", "stopped", "--github", "acme/web", "--issuer", server.url)
    rule = local_cloud.larder(*add)
    workspace = nx(tmp_path / "workspace", tools, {"first": 1_000, "second": 1_000})
    project = workspace.root / "second/project.json"
    waiting = "until [ -e ../go ]; do sleep 0.1; done; mkdir"
    project.write_text(project.read_text().replace("mkdir", waiting, 1))
    env = job(local_cloud, tmp_path, "stopped", server)
    with ThreadPoolExecutor() as pool:
        building = pool.submit(workspace.build, larder, env)
        ends = time.monotonic() + 60
        while not local_cloud.larder("artifacts", "list", "stopped"):
            assert time.monotonic() < ends
        local_cloud.larder("trust", "set", "stopped", rule["id"], "--disable")
        (workspace.root / "go").touch()
        counts, said = building.result()
    assert (counts.misses, counts.stored) == (2, 1)
    assert len(workspace.outputs()) == 2
    assert said.count("Larder: no cache: Larder refuses the token (401)\n") == 1


def test_a_job_of_a_fork_builds_without_a_cache(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    """It has no id token and no key."""
    env = settings(local_cloud, tmp_path)
    del env["TURBO_TOKEN"]
    workspace = nx(tmp_path / "workspace", tools, {"one": 1_000})
    counts, said = workspace.build(larder, {**env, "GITHUB_ACTIONS": "true"})
    assert (counts.hits, counts.stored) == (0, 0)
    first, last = [line for line in said.splitlines() if line.startswith("Larder: no cache")]
    assert first.endswith("no key in TURBO_TOKEN, no id token of a CI job, and no `turbo login`")
    assert last.startswith(f"{first}. 0 hits, 1 misses, ")


# Entries ------------------------------------------------------------------------------------------


@pytest.mark.skipif(python(OLDEST) is None, reason=f"Python {OLDEST} is not installed")
def test_the_oldest_python_without_packages_builds_in_a_folder_with_spaces(
    local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "my build folder"
    workspace = nx(folder / "work space", tools, {"one": 1_000, "two": 6 * MB})
    copy = folder / "larder.pyz"
    copy.write_bytes(larder.read_bytes())
    env = {**settings(local_cloud, tmp_path), **workspace.variables}
    command = [python(OLDEST) or "", "-I", "-S", str(copy), "run", "--", *workspace.command]
    said = ""
    for _ in range(2):
        workspace.forget()
        done = subprocess.run(command, cwd=workspace.root, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stderr
    assert "Larder: 2 hits, 0 misses" in said
