"""Spellings that the generated parts share."""

from __future__ import annotations

import json
from typing import Any


def camel_case(name: str) -> str:
    """The template's spelling of a name: `retention_days` is `RetentionDays`."""
    return "".join(word.capitalize() for word in name.split("_"))


def quoted(text: str) -> str:
    """The text as a YAML string."""
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def table_row(*cells: str) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def sentence(text: str) -> str:
    """The text with a capital letter."""
    return text[:1].upper() + text[1:]


def json_lines(document: Any, *, depth: int) -> str:
    """The document as JSON with a line for each part of this depth, so that a change shows the part that it is in."""
    return _lines(document, depth, "") + "\n"


def _lines(part: Any, depth: int, indent: str) -> str:
    if depth == 0 or not part or not isinstance(part, dict | list):
        return json.dumps(part)
    inner = indent + " "
    if isinstance(part, list):
        lines, ends = [_lines(one, depth - 1, inner) for one in part], "[]"
    else:
        lines = [
            f"{json.dumps(name)}: {_lines(one, depth - 1, inner)}" for name, one in part.items()
        ]
        ends = "{}"
    return ends[0] + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}{ends[1]}"
