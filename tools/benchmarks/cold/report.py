"""The reports of a run: a table for the screen, a page of the documentation, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.benchmarks.cold.figures import Figures

_HEADINGS = (
    "function",
    "init ms",
    "x bare",
    "CPU ms",
    "x bare",
    "first ms",
    "both x",
    "CPU x",
    "warm p50",
    "p99 ms",
    "peak MB",
    "of MB",
    "replies",
)
_ON_PAGE = (0, 1, 5, 6, 8, 10)
"""The columns of the page. It also has the replies that are no success. The screen has all."""
_FUNCTIONS = Path(__file__).resolve().parents[3] / "functions"
_IN_FULL = "artifacts"
"""The folder of functions/ whose functions have a row each on the page: builds wait for most of them."""
_PAGE = """\
# Cold starts

`make bench-cold ARGS="--write docs/benchmarks-cold.md"` measures the output of `make build` and writes this page. On
the screen, each function has a row, with more columns.

{table}

{summary}

- **init** is the time from the start of the process until it asks for its first event. **first** is the first call,
  **warm** every later one, with the events of `events/`. The number of replies that are no success, such as a 404 for
  what an earlier call has deleted, is in parentheses.
- **both x** is init and first call together, divided by those of `bare_client`: a function without Larder's layer that
  imports boto3, creates one DynamoDB client at import and reads one item. `do_nothing` shows the cost of the runtime.
- **peak** is the peak of resident memory, with a small artifact.
- Tables and bucket are local servers, the tables behind TLS. In the cloud, 512 MB get a bit less than a third of a core
  after the start. All times grow accordingly, including those of `bare_client`, so the ratios stay the same.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements and how they were made. `versions` are those of Python and the runtime's packages."""

    rows: Sequence[Figures]
    rounds: int
    warm_calls: int
    versions: dict[str, str]


def as_table(run: Run) -> str:
    """For a screen: aligned columns and a summary."""
    lines = [_HEADINGS, *(_cells(row) for row in run.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    rendered = [
        "  ".join(
            cell.ljust(width) if column in (0, len(widths) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*rendered, "", _summary(run)])


def as_page(run: Run) -> str:
    """For the documentation, in Markdown."""
    sides = [":--", *["--:"] * (len(_ON_PAGE) - 1)]
    headings = [_HEADINGS[at] for at in _ON_PAGE]
    folders = sorted({_folder(row.function) for row in run.rows} - {"", _IN_FULL})
    rows = [
        *(_row_on_page(row) for row in run.rows if _folder(row.function) not in folders),
        *(
            _range([row for row in run.rows if _folder(row.function) == folder], folder)
            for folder in folders
        ),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in (headings, sides, *rows))
    return _PAGE.format(table=table, summary=_summary(run))


def _folder(function: str) -> str:
    """The folder of functions/ that has the function. Empty for a baseline."""
    return next((path.parent.name for path in _FUNCTIONS.glob(f"*/{function}.py")), "")


def _row_on_page(row: Figures) -> list[str]:
    name, *figures = (_cells(row)[at] for at in _ON_PAGE)
    others = _other_replies(row)
    return [f"{name} ({others})" if others else name, *figures]


def _range(rows: Sequence[Figures], folder: str) -> list[str]:
    """The lowest and the highest figure of each column."""
    columns = [[_cells(row)[at] for row in rows] for at in _ON_PAGE[1:]]
    ordered = [sorted((cell for cell in column if cell != "-"), key=float) for column in columns]
    return [
        f"{folder}, {len(rows)} functions",
        *(f"{cells[0]} to {cells[-1]}" if cells else "-" for cells in ordered),
    ]


def as_json(run: Run) -> str:
    return json.dumps(asdict(run), indent=2)


def _cells(row: Figures) -> tuple[str, ...]:
    ratios = row.ratios
    return (
        row.function,
        f"{row.init_ms:.0f}",
        f"{ratios.init:.2f}" if ratios else "-",
        f"{row.init_cpu_ms:.0f}",
        f"{ratios.init_cpu:.2f}" if ratios else "-",
        f"{row.first_ms:.0f}",
        f"{ratios.cold:.2f}" if ratios else "-",
        f"{ratios.cold_cpu:.2f}" if ratios else "-",
        f"{row.warm_p50_ms:.1f}",
        f"{row.warm_p99_ms:.1f}",
        f"{row.peak_mb:.0f}",
        f"{row.memory_mb}",
        ", ".join(f"{count} x {reply}" for reply, count in row.replies.items()),
    )


def _other_replies(row: Figures) -> str:
    return ", ".join(
        f"{count} x {reply}"
        for reply, count in row.replies.items()
        if reply[0] not in "23" and reply != "done"
    )


def _summary(run: Run) -> str:
    on = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"Medians of {run.rounds} environments of each function, started in turn, with {run.warm_calls} warm calls"
        f" each. Run on {on}."
    )
