"""docs/compatibility.md: the table that the client matrix writes and compares with its results."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

COLUMNS = (
    "turbo",
    "Mode",
    "Uploads go",
    "Warm run hits",
    "FULL TURBO",
    "20 MB output",
    "120 MB output",
    "Restored outputs",
    "Dry run sees",
    "Asks the status",
)

INTRODUCTION = """\
# Compatibility with turbo versions

Each row of the table is the result of a test: the client from npm builds a monorepo of {packages} packages with a local
Larder, the test deletes the client's local cache and all outputs, and the client builds again. `make compatibility`
updates the table. The usual test run uses fewer packages and fails if its results differ from the table.

## Columns

- **Mode.** *normal* is turbo with its default settings. *preflight* is `--preflight` (or `TURBO_PREFLIGHT=1`): the
  client asks where to send an artifact before it uploads it. *signature* is `"remoteCache": {{"signature": true}}` in
  turbo.json with a key in `TURBO_REMOTE_CACHE_SIGNATURE_KEY`.
- **Uploads go** *through the API* (at most about 4.5 MB each; the gateway refuses larger ones with 413) or *straight
  to storage* with a presigned URL (any size up to S3's 5 GB).
- **Warm run hits**: packages that the second build restored from the remote cache. The monorepo has one package with a
  20 MB output and one with 120 MB, both incompressible. The other outputs range from 1 KB to 4 MB.
- **Restored outputs**: *byte-identical* if every restored file, its mode and every link are the same as after the first
  build.
- **Dry run sees**: the remote hits that `turbo run build --dry=json` reports, and the requests that it sends for them.
- **Asks the status**: whether a build sends `GET /v8/artifacts/status` first. No version stops because of the reply.
  Larder enforces a disabled or paused cache on every upload and download.

## Results

"""

CONCLUSIONS = """
## Conclusions

- **Large artifacts need preflight and turbo 2.10.13 or newer.** Older clients add the team to the presigned URL, which
  breaks its signature. Larder recognises them and lets them upload through the API instead. Small artifacts are
  cached. Larger ones are refused with 413 and built again in every run. The build itself succeeds.
- **Downloads have no such limit.** Every version in the table restores all stored artifacts, with or without preflight.
- **Without the edge, do not combine signatures and preflight.** The signature is in a header that S3 does not store.
  Without preflight, signed artifacts up to about 4.5 MB hit in every version, and larger ones are refused. With
  preflight, clients from 2.10.13 on upload straight to storage and lose the signature. Then every run builds everything
  again, although a dry run reports hits. [The edge](edge.md) keeps the signature. The table is without it.
- **The time saved is incomplete for large artifacts.** turbo reads a build's duration from a header of the download.
  A download from storage does not have it, so such a hit counts as 0 ms in turbo's own summary and in the events that
  it sends. If an artifact was uploaded straight to storage, Larder does not know its duration.
- turbo gives up on a download after 30 seconds and on an upload after 60. On a slow connection, increase
  `TURBO_REMOTE_CACHE_TIMEOUT` and `TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT` (seconds). The tests use 240 for both.
"""


def read_rows(document: Path) -> tuple[Row, ...]:
    """The rows of the committed table in order. Empty if it has other columns or does not exist."""
    if not document.exists():
        return ()
    header, *rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in document.read_text().splitlines()
        if line.startswith("| ")
    ]
    return tuple(Row(*cells) for cells in rows) if header == COLUMNS else ()


def write_row(document: Path, row: Row, *, order: Sequence[tuple[str, str]], packages: int) -> None:
    """Insert or replace the row, keep the others of `order`, and write the text again. Safe for parallel use."""
    folder = os.open(document.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        rows = {(known.turbo, known.mode): known for known in read_rows(document)}
        rows[row.turbo, row.mode] = row
        table = [COLUMNS, *(astuple(rows[cell]) for cell in order if cell in rows)]
        lines = [f"| {' | '.join(cells)} |" for cells in table]
        lines.insert(1, "|" + "---|" * len(COLUMNS))
        document.write_text(
            INTRODUCTION.format(packages=packages) + "\n".join(lines) + "\n" + CONCLUSIONS
        )
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Row:
    """One run of the matrix, in the words of the table. The fields have the order of COLUMNS."""

    turbo: str
    mode: str
    uploads_go: str
    warm_hits: str
    full_turbo: str
    output_20_mb: str
    output_120_mb: str
    restored_outputs: str
    dry_run_sees: str
    asks_the_status: str
