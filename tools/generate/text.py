"""Spellings that the generated parts share."""

from __future__ import annotations

import re


def camel_case(name: str) -> str:
    """The template's spelling of a name: `retention_days` is `RetentionDays`."""
    return "".join(word.capitalize() for word in name.split("_"))


def snake_case(name: str) -> str:
    """The reverse: `RetentionDays` is `retention_days`."""
    return re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower()


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
