"""The real client with the edge: signed artifacts of any size, and the time that every hit saves.

With CLIENT_MATRIX=full, every cell of the second table of docs/compatibility.md. Otherwise one, without the largest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from . import cloud, turbo
from .cloud import LocalCloud
from .compatibility import SIZES, Document, EdgeRow, grouped, read_rows
from .monorepo import Package, build_ms, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.environ.get("CLOUD") == "deployed", reason="the emulator serves no distribution"),
]

IS_FULL = os.environ.get("CLIENT_MATRIX") == "full"
MODES = ("normal", "preflight", "signature", "signature, preflight")
VERSIONS = (turbo.NEWEST, "2.10.12", "2.2.3", "2.1.3", "1.13.4")
"""The newest, the last and the first that need a key of one team for direct uploads, and two that have none."""
CELLS = [(version, mode) for version in VERSIONS for mode in MODES]
SHORT = [(turbo.NEWEST, "signature, preflight")]
PACKAGES = {label.replace(" ", "-").lower(): label for label, size in SIZES.items() if IS_FULL or size < 10_000_000}
"""The label of each package's size."""


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("cloud")
    with cloud.running(request.config.rootpath, folder / "data", EDGE="1") as server:
        yield server


@pytest.fixture(scope="module")
def sized_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("edge") / "monorepo"
    generate(root, [Package(name, SIZES[label]) for name, label in PACKAGES.items()], home=home)
    return root


@pytest.mark.parametrize(("version", "mode"), CELLS if IS_FULL else SHORT)
def test_the_client_matches_the_table_of_the_edge(
    version: str,
    mode: str,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    sized_monorepo: Path,
    local_cloud: LocalCloud,
    document: Document,
) -> None:
    chosen = client(version, preflight="preflight" in mode)

    def built_twice(seed: str) -> tuple[str, str]:
        root = fresh_monorepo(
            version, seed=f"{version} {mode} {seed}", signature="signature" in mode, template=sized_monorepo
        )
        return fates(chosen, root, local_cloud)

    with_edge = built_twice("with the edge")
    if not IS_FULL:
        row = document.by_cell(EdgeRow)[version, mode]
        assert with_edge == (row.with_edge, row.time_with_edge)
        return
    switch = local_cloud.data / "edge" / "switch.json"
    key = switch.read_text()
    switch.unlink()
    try:
        without = built_twice("without the edge")
    finally:
        switch.write_text(key)
    row = EdgeRow(version, mode, *without, *with_edge)
    assert row == document.kept(row, order=CELLS)


def fates(client: turbo.Client, root: Path, local_cloud: LocalCloud) -> tuple[str, str]:
    """Build twice, the second time without local outputs. Returns what became of each artifact, and of the time that it
    saves, by size.
    """
    mark = local_cloud.log_size()
    cold = turbo.build(client, root)
    refused = {
        each.path.rpartition("/")[2]
        for each in local_cloud.requests_since(mark)
        if each.method == "PUT" and each.status == 413
    }
    built = output_digests(root)
    at_least_ms = {package: build_ms(root, package) for package in built}
    wipe_outputs_and_local_cache(root)
    warm = turbo.build(client, root)
    restored = output_digests(root)

    assert cold.cached == 0
    assert all(restored[package] == built[package] for package in warm.remote_hits)
    tasks = {task.package: task for task in cold.tasks}
    stored_ms = durations(local_cloud, [task.hash for task in cold.tasks])
    kept, saved = {}, {}
    for hit in sorted(warm.tasks, key=lambda task: list(PACKAGES).index(task.package)):
        size = PACKAGES[hit.package]
        if not hit.remote:
            kept[size] = "refused (413)" if hit.hash in refused else "stored, missed"
            continue
        kept[size] = "restored"
        saved[size] = "counted" if hit.time_saved_ms else "0 ms"
        if hit.time_saved_ms:
            assert hit.time_saved_ms == stored_ms[hit.hash]
            assert at_least_ms[hit.package] <= hit.time_saved_ms <= tasks[hit.package].took_ms, hit
    return grouped(kept), grouped(saved) if saved else "-"


def durations(local_cloud: LocalCloud, hashes: list[str]) -> dict[str, int | None]:
    """The duration with which each task is stored."""
    reply = httpx.post(
        f"{local_cloud.url}/v8/artifacts",
        params={"slug": local_cloud.team},
        headers={"Authorization": f"Bearer {local_cloud.token}"},
        json={"hashes": hashes},
        trust_env=False,
    )
    assert reply.status_code == 200, reply.text
    return {hash: entry and entry.get("taskDurationMs") for hash, entry in reply.json().items()}


def test_the_table_of_the_edge_has_exactly_one_row_for_each_version_and_mode(document: Document) -> None:
    if document.is_written:
        pytest.skip("the table is being written")

    cells = [(row.turbo, row.mode) for row in read_rows(document.path, EdgeRow)]
    assert sorted(cells) == sorted(CELLS)
