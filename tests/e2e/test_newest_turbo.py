"""The newest turbo builds the sample monorepo twice. Its local cache and outputs are deleted in between."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from . import turbo
from .cloud import LocalCloud
from .monorepo import (
    LARGE_PACKAGES,
    Package,
    generate,
    output_digests,
    sample_packages,
    wipe_outputs_and_local_cache,
    without_build_ids,
)

pytestmark = pytest.mark.e2e

EVERY_PACKAGE = frozenset(package.name for package in sample_packages())
INLINE_PACKAGES = EVERY_PACKAGE - LARGE_PACKAGES.keys()


def test_the_newest_turbo_of_these_tests_is_npms_latest() -> None:
    latest = turbo.newest_on_npm()

    if latest != turbo.NEWEST:
        # Not a failure, because a new release breaks nothing here. The summary of the run shows it.
        pytest.skip(f"npm's latest turbo is {latest}, these tests run {turbo.NEWEST}")


def test_the_server_prints_the_lines_that_turbo_needs(local_cloud: LocalCloud) -> None:
    for name, value in local_cloud.turbo_environment.items():
        assert f"{name}={value}" in local_cloud.log_text()
    url = local_cloud.url
    assert f"turbo login --api {url} --login {url}" in local_cloud.log_text()


def test_with_preflight_the_second_run_is_full_turbo_and_every_output_is_byte_identical(
    client: Callable[..., turbo.Client], fresh_monorepo: Callable[..., Path]
) -> None:
    root = fresh_monorepo(turbo.NEWEST, seed="preflight")
    newest = client(turbo.NEWEST, preflight=True)
    cold = turbo.build(newest, root)
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)

    warm = turbo.build(newest, root)

    assert (cold.cached, cold.total) == (0, len(EVERY_PACKAGE))
    assert warm.full_turbo
    assert warm.remote_hits == EVERY_PACKAGE
    # Each build has another id, so equal outputs were restored.
    assert output_digests(root) == built


@pytest.mark.parametrize("token", ["right", "wrong"])
def test_the_second_build_of_the_readme_is_cached_only_with_the_right_token(
    client: Callable[..., turbo.Client], fresh_monorepo: Callable[..., Path], short_monorepo: Path, token: str
) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    line = next(line for line in readme.splitlines() if line.startswith("npx turbo "))
    newest = client(turbo.NEWEST)
    if token == "wrong":
        newest = replace(newest, remote_cache={**newest.remote_cache, "TURBO_TOKEN": "nope"})
    root = fresh_monorepo(turbo.NEWEST, seed=token, template=short_monorepo)
    cached = []
    for _ in range(2):
        text = turbo.command(newest, root, *shlex.split(line, comments=True)[2:])
        found = turbo.CACHED.search(text)
        assert found
        cached.append(int(found[1]))
    assert cached[0] == 0
    assert (cached[1] > 0) is (token == "right")


@pytest.mark.thorough
def test_a_key_becomes_the_teams_during_a_build_and_both_restore_it(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
    local_cloud: LocalCloud,
) -> None:
    team = local_cloud.turbo_environment["TURBO_TEAM"]
    named = ("--user", "operator@larder.local", "--team", team, "--name", "CI")
    personal = local_cloud.larder("keys", "create", *named)
    root = fresh_monorepo(turbo.NEWEST, seed="to the team", template=short_monorepo)
    by_user = client(turbo.NEWEST, preflight=True)
    by_user = replace(by_user, remote_cache={**by_user.remote_cache, "TURBO_TOKEN": personal["key"]})

    with ThreadPoolExecutor(1) as building:
        cold = building.submit(turbo.build, by_user, root)
        of_team = local_cloud.larder("keys", "rotate", personal["id"], "--to-team")
        assert cold.result().cached == 0
    built = output_digests(root)
    for key in (personal["key"], of_team["key"]):
        wipe_outputs_and_local_cache(root)
        environment = {**by_user.remote_cache, "TURBO_TOKEN": key}
        warm = turbo.build(replace(by_user, remote_cache=environment), root)
        assert warm.full_turbo
        assert output_digests(root) == built


@pytest.mark.thorough
def test_without_preflight_all_but_the_two_too_large_artifacts_hit(
    client: Callable[..., turbo.Client], fresh_monorepo: Callable[..., Path], local_cloud: LocalCloud
) -> None:
    root = fresh_monorepo(turbo.NEWEST, seed="normal")
    newest = client(turbo.NEWEST)
    mark = local_cloud.log_size()
    cold = turbo.build(newest, root)
    refused = [
        request for request in local_cloud.requests_since(mark) if request.method == "PUT" and request.status == 413
    ]
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)

    warm = turbo.build(newest, root)

    hashes = {task.package: task.hash for task in cold.tasks}
    assert {request.path for request in refused} == {f"/v8/artifacts/{hashes[name]}" for name in LARGE_PACKAGES}
    assert all("preflight" in request.line for request in refused)
    assert "413" in cold.text
    assert warm.remote_hits == INLINE_PACKAGES
    assert (warm.cached, warm.full_turbo) == (len(INLINE_PACKAGES), False)
    restored = output_digests(root)
    assert {name: restored[name] for name in INLINE_PACKAGES} == {name: built[name] for name in INLINE_PACKAGES}
    assert without_build_ids(restored) == without_build_ids(built)


@pytest.mark.thorough
def test_killing_the_server_between_runs_loses_no_artifact_or_key(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    local_cloud: LocalCloud,
    tmp_path: Path,
    home: Path,
) -> None:
    template = tmp_path / "template"
    generate(template, [Package("small", 1_000), Package("large", 20_000_000)], home=home)
    root = fresh_monorepo(turbo.NEWEST, seed="kill", template=template)
    turbo.build(client(turbo.NEWEST, preflight=True), root)
    printed = local_cloud.turbo_environment
    wipe_outputs_and_local_cache(root)

    local_cloud.kill()
    local_cloud.start()

    assert local_cloud.turbo_environment == printed
    assert turbo.build(client(turbo.NEWEST, preflight=True), root).full_turbo
