"""Old and new clients in every mode. docs/compatibility.md has the results.

The table is written from the complete sample monorepo and compared with a run on the short one. Its packages differ in
the same ways, and a cell has the number of misses and not the number of packages.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from . import turbo
from .cloud import LocalCloud, Request
from .compatibility import Document, EdgeRow, Row, ToolRow, page, read_rows
from .monorepo import output_digests, wipe_outputs_and_local_cache, without_build_ids

pytestmark = pytest.mark.e2e

MODES = ("normal", "preflight", "signature", "signature, preflight")
VERSIONS = {
    turbo.NEWEST: MODES,
    # The first client that uses a presigned URL unchanged, and the last that does not.
    "2.10.13": ("preflight",),
    "2.10.12": MODES,
    "2.5.8": MODES,
    # 2.1.3 and older upload in chunks, without a Content-Length.
    "2.0.14": MODES,
    "1.13.4": MODES,
}
CELLS = [(version, mode) for version, modes in VERSIONS.items() for mode in modes]
SHORT = [(turbo.NEWEST, "normal"), ("1.13.4", "normal")]
"""The cells of a run without CLIENT_MATRIX=full: the newest and the oldest client. test_newest_turbo.py and
test_signature.py have the other modes.
"""


@pytest.fixture
def matrix_monorepo(request: pytest.FixtureRequest, document: Document) -> Path:
    name = "sample_monorepo" if document.is_written else "short_monorepo"
    root: Path = request.getfixturevalue(name)
    return root


@pytest.mark.parametrize(("version", "mode"), CELLS if os.environ.get("CLIENT_MATRIX") == "full" else SHORT)
def test_the_client_matches_the_compatibility_table(
    version: str,
    mode: str,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    matrix_monorepo: Path,
    local_cloud: LocalCloud,
    document: Document,
) -> None:
    chosen = client(version, preflight="preflight" in mode)
    root = fresh_monorepo(version, seed=f"{version} {mode}", signature="signature" in mode, template=matrix_monorepo)

    cold_mark = local_cloud.log_size()
    cold = turbo.build(chosen, root)
    requests_of_the_build = local_cloud.requests_since(cold_mark)
    uploads = [each for each in requests_of_the_build if each.method == "PUT"]
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)
    warm = turbo.build(chosen, root)
    restored = output_digests(root)
    wipe_outputs_and_local_cache(root)
    dry_mark = local_cloud.log_size()
    announced = turbo.dry_run(chosen, root)
    asked = local_cloud.requests_since(dry_mark)

    hits = warm.remote_hits
    assert cold.cached == 0
    assert warm.cached == len(hits)
    assert without_build_ids(restored) == without_build_ids(built)
    assert {package: restored[package] for package in hits} == {package: built[package] for package in hits}
    refused = {each.path for each in uploads if each.status == 413}
    hashes = {task.package: task.hash for task in cold.tasks}

    def fate(package: str) -> str:
        if package in hits:
            return "restored"
        return "refused (413)" if f"/v8/artifacts/{hashes[package]}" in refused else "stored, missed"

    seen = sum(task.remote for task in announced)
    assert len(announced) == warm.total
    row = Row(
        turbo=version,
        mode=mode,
        uploads_go="through the API" if _through_the_api(uploads) else "straight to storage",
        warm_hits=_share(len(hits), warm.total),
        full_turbo="yes" if warm.full_turbo else "no",
        output_20_mb=fate("large-20"),
        output_120_mb=fate("large-120"),
        restored_outputs="byte-identical" if hits else "none",
        dry_run_sees=f"{_share(seen, warm.total)}, {_how_a_dry_run_asked(asked)}",
        asks_the_status="yes" if any(each.path == "/v8/artifacts/status" for each in requests_of_the_build) else "no",
    )
    assert row == document.kept(row, order=CELLS)


def test_the_table_has_exactly_one_row_for_each_version_and_mode(document: Document) -> None:
    if document.is_written:
        pytest.skip("the table is being written")

    cells = [(row.turbo, row.mode) for row in read_rows(document.path, Row)]
    assert sorted(cells) == sorted(CELLS)


def test_the_page_has_the_texts_of_its_template(document: Document) -> None:
    assert document.path.read_text() == page(
        read_rows(document.path, Row), read_rows(document.path, EdgeRow), read_rows(document.path, ToolRow)
    )


def _share(hits: int, packages: int) -> str:
    if hits == packages:
        return "all"
    return f"all but {packages - hits}" if hits else "none"


def _through_the_api(uploads: list[Request]) -> bool:
    return any(each.path.startswith("/v8/artifacts/") for each in uploads)


def _how_a_dry_run_asked(requests: list[Request]) -> str:
    methods = {each.method for each in requests if each.path.startswith("/v8/artifacts")}
    return "one query" if "POST" in methods and "HEAD" not in methods else "one HEAD each"
