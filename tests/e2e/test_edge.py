"""The real client with the edge: signed artifacts of any size, and the time that every hit saves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import cloud, turbo
from .cloud import LocalCloud
from .monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        os.environ.get("CLOUD") == "deployed", reason="the emulator has no CloudFront"
    ),
]

IS_FULL = os.environ.get("EDGE_SIZES") == "full"
SMALL = {"100-b": 100, "4.4-mb": 4_400_000}
ABOVE_THE_FUNCTION = {"4.8-mb": 4_800_000} | (
    {"4.6-mb": 4_600_000, "120-mb": 120_000_000, "1-gb": 1_000_000_000} if IS_FULL else {}
)
EVERY_PACKAGE = SMALL.keys() | ABOVE_THE_FUNCTION.keys()
DIRECT = {turbo.NEWEST, "2.10.12", "2.2.3"}
"""Versions that upload straight to the edge with a key of one team. Older ones send no length."""
CELLS = (
    [
        (version, mode)
        for version in (turbo.NEWEST, "2.10.12", "2.2.3", "2.1.3", "1.13.4")
        for mode in ("normal", "preflight", "signature", "signature, preflight")
    ]
    if IS_FULL
    else [(turbo.NEWEST, "signature, preflight"), ("2.10.12", "signature, preflight")]
)


@pytest.fixture(scope="module")
def local_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("cloud")
    with cloud.running(request.config.rootpath, folder / "data", EDGE="1") as server:
        yield server


@pytest.fixture(scope="module")
def sized_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("edge") / "monorepo"
    sizes = SMALL | ABOVE_THE_FUNCTION
    generate(root, [Package(name, size) for name, size in sizes.items()], home=home)
    return root


@pytest.mark.parametrize(("version", "mode"), CELLS)
def test_a_warm_run_restores_what_the_client_can_upload(
    version: str,
    mode: str,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    sized_monorepo: Path,
    local_cloud: LocalCloud,
) -> None:
    preflight, signature = "preflight" in mode, "signature" in mode
    chosen = client(version, preflight=preflight)
    seed = f"{version} {mode}"
    root = fresh_monorepo(version, seed=seed, signature=signature, template=sized_monorepo)
    mark = local_cloud.log_size()
    cold = turbo.build(chosen, root)
    uploads = {
        each.path.rpartition("/")[2]: each.status
        for each in local_cloud.requests_since(mark)
        if each.method == "PUT"
    }
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)
    warm = turbo.build(chosen, root)

    straight = preflight and version in DIRECT
    kept = EVERY_PACKAGE if straight else SMALL.keys()
    assert cold.cached == 0
    assert warm.remote_hits == kept
    restored = output_digests(root)
    assert {package: restored[package] for package in kept} == {
        package: built[package] for package in kept
    }
    refused = {task.hash for task in cold.tasks if task.package not in kept}
    assert {hash for hash, status in uploads.items() if status == 413} == refused
    if straight:
        assert uploads == {}
    if version == turbo.NEWEST:
        hits = [task for task in warm.tasks if task.package in kept]
        assert all(task.time_saved_ms > 0 for task in hits)
