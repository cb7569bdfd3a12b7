"""docs/compatibility.md: the table that the client matrix writes and is compared with."""

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
# Which turbo can do what

The table below is not written by hand. Every row is a run of the test suite: the client from npm builds a monorepo of
{packages} packages against a local Larder, its local cache and all outputs are deleted, and it builds again.
`make compatibility` writes the table anew; an ordinary test run, with fewer packages, fails when what it sees differs
from what stands here.

## How to read it

- **Mode.** *normal* is turbo as it comes. *preflight* is `--preflight` (or `TURBO_PREFLIGHT=1`): the client asks where
  to send an artifact before it sends it. *signature* is `"remoteCache": {{"signature": true}}` in turbo.json with a key
  in `TURBO_REMOTE_CACHE_SIGNATURE_KEY`.
- **Uploads go** *through the API* (at most about 4.5 MB each; the gateway refuses more with 413) or *straight to
  storage* by a presigned URL (any size up to S3's 5 GB).
- **Warm run hits**: packages that the second build restored from the remote cache. The monorepo has one package with a
  20 MB output and one with 120 MB, both incompressible. The other outputs range from 1 KB to 4 MB.
- **Restored outputs**: *byte-identical* when every restored file with its mode, and every link, equals what the first
  build wrote.
- **Dry run sees**: the remote hits that `turbo run build --dry=json` announces, and how it asks for them.
- **Asks the status**: whether a build asks `GET /v8/artifacts/status` first. No version lets the answer stop it:
  caching that is off, or over its limit, is enforced on every upload and download.

## The runs

"""

CONCLUSIONS = """
## What follows

- **Large artifacts need preflight and turbo 2.10.13 or newer.** Older clients add the team to the presigned URL, which
  breaks its signature. Larder recognises them and lets them upload through the API instead: what fits is cached, a
  larger artifact is refused with 413 and built again in every run. The build itself succeeds.
- **Downloads have no such limit.** Every version in the table restores whatever is stored, with or without preflight.
- **Signed artifacts travel through the API.** The signature comes and goes in a header that S3 does not keep. Without
  preflight, signed artifacts up to about 4.5 MB hit in every version and larger ones are refused. With preflight, a
  client of 2.10.13 or newer uploads straight to storage, the signature is lost, and every run builds everything again,
  although a dry run announces hits. Do not combine the two.
- **The time saved is incomplete for large artifacts.** turbo reads a build's duration from a header of the download,
  and a download from storage carries none: such a hit counts as 0 ms in turbo's own summary and in the events that it
  sends. For an artifact that was uploaded straight to storage the duration is not known at all.
- turbo gives up on a download after 30 seconds and on an upload after 60. On a slow line raise
  `TURBO_REMOTE_CACHE_TIMEOUT` and `TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT` (seconds); the runs above used 240 for both.
"""


def read_rows(document: Path) -> tuple[Row, ...]:
    """The rows of the committed table, in its order; none when it has other columns or is not there."""
    if not document.exists():
        return ()
    header, *rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in document.read_text().splitlines()
        if line.startswith("| ")
    ]
    return tuple(Row(*cells) for cells in rows) if header == COLUMNS else ()


def write_row(document: Path, row: Row, *, order: Sequence[tuple[str, str]], packages: int) -> None:
    """Put the row in its place, keep the others of `order`, write the prose anew. Safe for parallel writers."""
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
    """One run of the matrix, in the words of the table; the fields stand in the order of COLUMNS."""

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
