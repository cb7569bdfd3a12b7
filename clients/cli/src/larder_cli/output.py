"""The output of a command: JSON for programs, tables for people.

A record maps names to plain values. A name ends with its unit, and tables format the value by it: `size_bytes` 1500
is shown as `1.5 kB` under `size`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import click

from larder.project import page

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Record = Mapping[str, object]

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_ENDINGS = ("_bytes", "_ms", "_at", "_s")
_NONE = "-"
WIDE = "larder_cli.wide"
"""Where the context of a command keeps whether the user wants all columns."""
_UNLIMITED = 10_000
"""Columns when the output is not a terminal: a program that reads the table needs unfolded lines."""

_CITED = re.compile(r"\bdocs/([\w/-]+)\.md(?:, ([A-Z][\w ]*\w))?")

_MARKS = (("\N{FULL BLOCK}", "green"), ("\N{MEDIUM SHADE}", "cyan"), ("\N{LIGHT SHADE}", "dim"))
_ASCII_MARKS = (("#", "green"), ("+", "cyan"), (".", "dim"))
"""Characters for the parts of a bar. They differ without colours too; the second set is for outputs without UTF-8."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A value drawn as a bar of up to three parts. `longest` is the greatest sum in the column.

    The sum follows the bar, which takes up to ten columns more than `width`.
    """

    parts: Sequence[int]
    longest: int
    width: int = 24


def fields(source: object, *names: str) -> dict[str, object]:
    """Attributes of an object, for a record that shows them under their names."""
    return {name: getattr(source, name) for name in names}


def echo(*lines: str, err: bool = False) -> None:
    """Print lines of text, with control characters replaced. With `err`, on standard error."""
    for line in lines:
        click.echo(printable(line), err=err)


def linked(text: str, deployment: str) -> str:
    """A text that cites pages, such as `docs/operations.md, ApiFailing`, with their addresses at a deployment."""

    def address(cited: re.Match[str]) -> str:
        name, heading = cited.groups(default="")
        return page(f"{name}#{heading.lower().replace(' ', '-')}".rstrip("#"), deployment)

    return _CITED.sub(address, text)


def echo_progress(line: str, *, is_live: bool) -> None:
    """Print a line on standard error. On a terminal (`is_live`), the next such line takes its place."""
    shown = printable(line)
    click.echo(f"\r{shown:<78}" if is_live else shown, nl=not is_live, err=True)


def print_line(text: str = "") -> None:
    """Print a line of text, with control characters replaced."""
    _console().print(printable(text), soft_wrap=True)


def print_indented(text: str) -> None:
    """Print a text of several words below a line, in lines of at most 80 columns."""
    for line in wrap(
        printable(text),
        width=80,
        initial_indent="  - ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        print_line(line)


def print_json(value: Record | Sequence[Record]) -> None:
    # JSON escapes all other characters that are not ASCII text.
    click.echo(json.dumps(value, indent=2, default=_jsonable).replace("\x7f", "\\u007f"))


def print_record(record: Record, *, as_json: bool) -> None:
    """Print the fields of one record. On a terminal, those without a value share a line."""
    if as_json:
        print_json(record)
        return
    from rich.table import Table

    console = _console()
    unset = [
        _label(name) for name, value in record.items() if value is None and console.is_terminal
    ]
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in record.items():
        if _label(name) not in unset:
            table.add_row(_label(name), _text(name, value))
    if unset:
        table.add_row("not set", ", ".join(unset))
    console.print(table)


_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?")
"""A number as text, such as 1,234.50."""


def print_table(
    records: Sequence[Record],
    columns: Iterable[str],
    *,
    empty: str,
    as_json: bool,
    legend: Sequence[str] = (),
) -> None:
    """Print records of one kind. The table shows `columns`, the JSON shows everything.

    `empty` is printed if there are no records. `legend` describes the parts of the bars.

    On a terminal, columns are left out if they do not fit or have no value, unless the user wants them all (`--wide`):
    `columns` are in the order of their importance. No word is broken, so that an id can always be copied.
    """
    if as_json:
        print_json(records)
        return
    if not records:
        echo(empty)
        return
    columns = list(columns)
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    console = _console()
    is_wide = _wants_all(console)
    if is_wide:
        console.width = _UNLIMITED
    cells = {name: [_cell(console, name, record[name]) for record in records] for name in columns}
    least = {name: _least_width(name, cells[name], records) for name in columns}
    left_out = _left_out(cells, least, console.width) if is_wide is False else []
    shown = [name for name in columns if name not in left_out]
    spare = console.width - sum(least[name] + _GAP for name in shown) + _GAP
    console.width = max(console.width, console.width - spare)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in shown:
        more = max(map(cell_len, map(str, cells[name]))) - least[name]
        more = max(min(more, spare), 0)
        spare -= more
        table.add_column(
            _label(name), justify=_justify(records, name), overflow="fold", width=least[name] + more
        )
    for row in zip(*(cells[name] for name in shown), strict=True):
        table.add_row(*row)
    console.print(table)
    if with_values := [_label(name) for name in left_out if not _is_empty(cells[name])]:
        console.print(Text(f"Left out: {', '.join(with_values)}. --wide shows all columns.", "dim"))
    if legend:
        drawn = zip(_marks(console), legend, strict=False)
        console.print(
            Text("   ").join(Text(f"{mark} {part}", style) for (mark, style), part in drawn)
        )


_SHORT = 18
"""The longest text that is not wrapped."""
_GAP = 3
"""Columns between two columns of a table."""


def _wants_all(console: "Console") -> bool | None:
    """Whether the user of a terminal wants all columns of a table. None if there is no such choice."""
    context = click.get_current_context(silent=True)
    return context.meta.get(WIDE) if console.is_terminal and context is not None else None


def _least_width(name: str, cells: Sequence["str | Text"], records: Sequence[Record]) -> int:
    """How wide a column has to be. Only texts may be wrapped: between words, and not if they are short."""
    from rich.cells import cell_len

    parts = [_label(name)]
    for cell, record in zip(cells, records, strict=True):
        is_text = isinstance(record[name], str)
        parts += [str(cell)[:_SHORT], *str(cell).split(" ")] if is_text else [str(cell)]
    return max(map(cell_len, parts))


def _is_empty(cells: Sequence["str | Text"]) -> bool:
    return {*map(str, cells)} <= {_NONE, ""}


def _left_out(
    cells: Mapping[str, Sequence["str | Text"]], least: Mapping[str, int], most: int
) -> list[str]:
    """The columns without a value, and the last ones that do not fit. The first one and the id always fit."""
    out = [name for name in cells if _is_empty(cells[name])]
    left = most + _GAP
    for name in sorted((name for name in cells if name not in out), key="id".__ne__):
        left -= least[name] + _GAP
        if left < 0 and len(out) < len(cells) - 1 and name not in ("id", next(iter(cells))):
            out.append(name)
            left += least[name] + _GAP
    return out


def _console() -> "Console":
    from rich.console import Console

    # Names are user input, so rich must not interpret markup or emoji codes in them.
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def _cell(console: "Console", name: str, value: object) -> "str | Text":
    return _drawn(console, value) if isinstance(value, Bar) else _text(name, value)


def _drawn(console: "Console", bar: Bar) -> "Text":
    """The bar and its sum. The ends of the parts are rounded, not their lengths, so that equal sums look equal."""
    from rich.text import Text

    drawn, done, end = Text(), 0, 0
    for part, (mark, style) in zip(bar.parts, _marks(console), strict=False):
        done += part
        cells = max(round(done * bar.width / bar.longest), 1) if done else 0
        drawn.append(mark * (cells - end), style)
        end = cells
    return drawn.append(f" {done:,}" if done else "-")


def _marks(console: "Console") -> Sequence[tuple[str, str]]:
    return _MARKS if console.encoding.startswith("utf") else _ASCII_MARKS


def _justify(records: Sequence[Record], name: str) -> Literal["left", "right"]:
    values = [record[name] for record in records if record[name] not in (None, "")]
    return "right" if values and all(map(_is_number, values)) else "left"


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _label(name: str) -> str:
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _text(name: str, value: object) -> str:
    return printable(_plain(name, value))


def printable(text: str) -> str:
    """The text with control characters replaced, which could move the cursor or change colours."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _plain(name: str, value: object) -> str:
    match value:
        case None:
            return _NONE
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith("_bytes"):
            return human_size(value)
        case int() if name.endswith("_ms"):
            return human_duration(value)
        case int():
            return human_number(value)
        case float():
            return f"{value:,.1f}"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        case Mapping():
            return " ".join(f"{key}={_plain('', inner)}" for key, inner in value.items())
        case list() | tuple():
            return ",".join(_plain("", inner) for inner in value)
    return str(value)


def human_number(number: int) -> str:
    return f"{number:,}"


def human_size(size_bytes: int) -> str:
    """Thousands, as storage is sold: 1,500 bytes are `1.5 kB`."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 999.95 and unit < len(_SIZE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.1f} {_SIZE_UNITS[unit]}" if unit else f"{size_bytes} B"


def human_duration(duration_ms: int) -> str:
    """The two largest units: `59.4 s`, `1 min 30 s`, `10 h 0 min`, and from two days on `2 d 3 h`."""
    seconds = round(duration_ms / 1000)
    if seconds < 60:
        return f"{duration_ms / 1000:.1f} s"
    days, hours, minutes = seconds // 86_400, seconds // 3600, seconds % 3600 // 60
    if days >= 2:
        return f"{days:,} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


def _jsonable(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
