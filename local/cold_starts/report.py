"""What a run is told as: a table for the screen, a page of the documentation, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from local.cold_starts.figures import Figures

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
_PAGE = """\
# Cold starts

How long every function takes to start, and how much memory it holds, as `make bench-cold` measured it with what
`make build` had made. `make bench-cold ARGS="--write docs/benchmarks-cold.md"` writes this page anew.

{table}

{summary}

- **init** is the time from the process's first moment until it asks for its first event; **CPU** is the processor's
  part of it, which other programs on the machine disturb less.
- **first** is the first call, **warm** every later one, from the event's leaving to the reply's arrival. The events are
  those of `events/`, filled in with people, keys and artifacts that exist.
- **x bare** is how many times as long as `bare_client` just before and after it: a function without Larder's layer that
  imports boto3, makes one DynamoDB client at import and reads one item. Larder's functions make their clients at the
  first call, so **both**, init and first call together, is the stricter comparison, and it counts all that the first
  request does. `do_nothing` is what the runtime itself takes.
- **peak** is the most memory that was resident at one time, **of** what the template gives. The artifact of the samples
  is small; `tests/local/test_runtime.py` puts and fetches the largest one within the same memory.
- Tables and bucket are local servers on the same processors: no network of a region, nothing encrypted on the way. In
  the cloud the processor's share follows from the memory. 512 MB are a bit less than a third of a core, and every time
  grows accordingly, those of `bare_client` too. The ratios stay.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured, and how. `versions` is what the functions ran on."""

    rows: Sequence[Figures]
    rounds: int
    warm_calls: int
    versions: dict[str, str]


def as_table(run: Run) -> str:
    """For a screen: columns under one another, and what was run."""
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
    sides = [":--", *["--:"] * (len(_HEADINGS) - 2), ":--"]
    lines = [_HEADINGS, sides, *(_cells(row) for row in run.rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return _PAGE.format(table=table, summary=_summary(run))


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


def _summary(run: Run) -> str:
    on = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"Medians of {run.rounds} environments of each function, started by turns, with {run.warm_calls} warm calls"
        f" each. Run on {on}."
    )
