"""docs/compatibility.md: the tables that the client matrix and the tests of the edge write, or compare with."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from .monorepo import sample_packages

SIZES = {
    "100 B": 100,
    "4.4 MB": 4_400_000,
    "4.6 MB": 4_600_000,
    "4.8 MB": 4_800_000,
    "120 MB": 120_000_000,
    "1 GB": 1_000_000_000,
}
"""The sizes of the outputs in the table of the edge: below and above the limit of a function, and large."""

INTRODUCTION = """\
# Compatibility with turbo versions

Each row is the result of a test with each of its versions and modes: the client from npm builds a monorepo of
{packages} packages with a local Larder, the test deletes the client's local cache and all outputs, and the client
builds again. `make compatibility` updates the tables of this page.

- **Mode.** *normal* is turbo with its default settings, *preflight* with `--preflight`, *signature* with
  `"remoteCache": {{"signature": true}}` in turbo.json.
- **Uploads go** *through the API* (about 4.5 MB at most) or *straight to storage* with a presigned URL.
- **Warm run hits**: packages that the second build restored. One has an output of 20 MB and one of 120 MB, both
  incompressible; the others 1 KB to 4 MB.
- **Dry run sees**: the remote hits that `turbo run build --dry=json` reports, and the requests that it sends for them.
- **Asks the status**: whether a build sends `GET /v8/artifacts/status` first.

## Results

"""

CONCLUSIONS = """
## Conclusions

- **Large artifacts need preflight and turbo 2.10.13 or newer**, or [2.2.3 with the edge](#with-the-edge). Older clients
  [break presigned URLs](clients/turbo.md#preflight), so they upload through the API.
- **Downloads have no such limit.** Every version restores all stored artifacts.
- **Without the edge, do not combine signatures and preflight.** S3 does not store the header with the signature, so
  clients from 2.10.13 on build everything again in every run, although a dry run reports hits.
- **Without the edge, the time saved is incomplete for large artifacts.** turbo reads a build's duration from a header
  that a download from storage does not have: such a hit counts as 0 ms in turbo's summary and events.
- On a slow connection, increase [turbo's time-outs](clients/turbo.md#settings). The tests use 240 seconds for both.
"""

EDGE = """
## With the edge

The same test, without and with the [edge](edge.md). The monorepo has a package for each of these sizes:
{sizes}.

- *restored* artifacts are byte-identical. *refused (413)* are those above the limit of the API. *stored, missed* are
  those whose signature S3 dropped.
- **Time saved** is that of turbo's summary of the warm run. *0 ms* is a hit whose duration got lost.
- turbo 2.2.3 to 2.10.12 needs a key that is bound to a team for direct uploads, as here. 2.1.3 and older send no
  length, so they never get an address.

"""

TOOLS = """
## Other build tools

The same test with [`larder run`](tools/README.md). Rush, tested through `larder proxy`, is not in the table. Newer
versions of Gradle and Bazel were only read, not run.

- **Outputs** are the sizes of the files that one task writes. Entries over 4.5 MB go straight to storage.
- **Second build** is what `larder run` counts: entries that were found, of those that the tool asked for.
- **Time saved** is whether [usage](usage.md#build-tools) has it.

"""


def grouped(fates: Mapping[str, str]) -> str:
    """The fate of each size, in their order: `100 B to 4.6 MB restored, 4.8 MB refused (413)`."""
    runs = [(fate, [size for size, _ in run]) for fate, run in groupby(fates.items(), itemgetter(1))]
    if len(runs) == 1:
        return f"all {runs[0][0]}"
    return ", ".join(
        f"{sizes[0]} {fate}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} {fate}" for fate, sizes in runs
    )


def read_rows(document: Path, kind: type[RowType]) -> tuple[RowType, ...]:
    """The rows of the committed table, one for each version and mode. Empty if it has other columns or is missing."""
    if not document.exists():
        return ()
    lines = document.read_text().splitlines()
    for is_table, block in groupby(lines, lambda line: line.startswith("|")):
        if is_table:
            header, _, *rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in block]
            if header == COLUMNS[kind]:
                return tuple(
                    kind(version, mode, *cells)
                    for versions, modes, *cells in rows
                    for mode in modes.split("; ")
                    for version in versions.split(", ")
                )
    return ()


@dataclass(frozen=True)
class Document:
    """docs/compatibility.md, which `make compatibility` writes. Any other run is compared with it."""

    path: Path
    is_written: bool

    def by_cell(self, kind: type[RowType]) -> dict[tuple[str, str], RowType]:
        """The rows of a table in order, by version and mode."""
        return {row.cell: row for row in read_rows(self.path, kind)}

    def kept(self, row: RowType, *, order: Sequence[tuple[str, str]]) -> RowType | None:
        """Write the row, if this run writes the document. Returns the document's row for its version and mode."""
        if self.is_written:
            write_row(self.path, row, order=order)
        return self.by_cell(type(row)).get(row.cell)


def write_row(document: Path, row: AnyRow, *, order: Sequence[tuple[str, str]]) -> None:
    """Insert or replace the row, keep the others of `order`, and write the page again. Safe for parallel use."""
    folder = os.open(document.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        tables: dict[type[AnyRow], Iterable[AnyRow]] = {
            Row: read_rows(document, Row),
            EdgeRow: read_rows(document, EdgeRow),
            ToolRow: read_rows(document, ToolRow),
        }
        known = {one.cell: one for one in tables[type(row)]}
        known[row.cell] = row
        tables[type(row)] = [known[cell] for cell in order if cell in known]
        document.write_text(page(tables[Row], tables[EdgeRow], tables[ToolRow]))
    finally:
        os.close(folder)


def page(rows: Iterable[AnyRow], of_edge: Iterable[AnyRow], of_tools: Iterable[AnyRow]) -> str:
    introduction = INTRODUCTION.format(packages=len(sample_packages()))
    edge = EDGE.format(sizes=", ".join(SIZES))
    return "".join(
        [
            introduction + _table(Row, rows) + CONCLUSIONS,
            edge + _table(EdgeRow, of_edge),
            TOOLS + _table(ToolRow, of_tools),
        ]
    )


def _table(kind: type[AnyRow], rows: Iterable[AnyRow]) -> str:
    """The table. Versions and modes with the same results share a row."""
    versions: dict[tuple[str, ...], list[str]] = {}
    for version, *cells in map(astuple, rows):
        versions.setdefault(tuple(cells), []).append(version)
    modes: dict[tuple[str, ...], list[str]] = {}
    for (mode, *cells), shared in versions.items():
        modes.setdefault((", ".join(shared), *cells), []).append(mode)
    merged = [(shared, "; ".join(of), *cells) for (shared, *cells), of in modes.items()]
    lines = [f"| {' | '.join(cells)} |" for cells in (COLUMNS[kind], *merged)]
    lines.insert(1, "|" + "---|" * len(COLUMNS[kind]))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Row:
    """One run of the matrix, in the words of the table. The fields have the order of the columns."""

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

    @property
    def cell(self) -> tuple[str, str]:
        return self.turbo, self.mode


@dataclass(frozen=True)
class EdgeRow:
    """One version and mode, without and with the edge. The fields have the order of the columns."""

    turbo: str
    mode: str
    without: str
    time_without: str
    with_edge: str
    time_with_edge: str

    @property
    def cell(self) -> tuple[str, str]:
        return self.turbo, self.mode


@dataclass(frozen=True)
class ToolRow:
    """One version of another build tool. The fields have the order of the columns."""

    tool: str
    outputs: str
    second_build: str
    restored_outputs: str
    time_saved: str

    @property
    def cell(self) -> tuple[str, str]:
        return self.tool, ""


AnyRow = Row | EdgeRow | ToolRow
COLUMNS: dict[type[AnyRow], tuple[str, ...]] = {
    Row: (
        "turbo", "Mode", "Uploads go", "Warm run hits", "FULL TURBO", "20 MB output", "120 MB output",
        "Restored outputs", "Dry run sees", "Asks the status",
    ),
    EdgeRow: ("turbo", "Mode", "Without the edge", "Time saved without", "With the edge", "Time saved with"),
    ToolRow: ("Tool", "Outputs", "Second build", "Restored outputs", "Time saved"),
}  # fmt: skip
RowType = TypeVar("RowType", Row, EdgeRow, ToolRow)
