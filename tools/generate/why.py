"""The words of causes for the console, from those of `larder why`, and the table of its edits in docs/why.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from larder.why.causes import ADVICE, Kind
from larder_cli.why.recipes import EDITS
from larder_cli.why.report import HINTS, TITLES
from tools.generate.text import table_row


def words() -> None:
    """Print the titles of kinds, the words of hints, and the advice, as constants of a script."""
    constant("CAUSE_TITLES", {kind: TITLES.get(kind, kind.value) for kind in Kind})
    constant("HINT_WORDS", HINTS)
    constant("ADVICE", ADVICE)


def edits() -> None:
    """The edits of `larder why --fix`."""
    print(table_row("`edit`", "Cause", "What it does"))
    print("|---|---|---|")
    for edit, texts in EDITS.items():
        print(table_row(f"`{edit}`", *texts))


def constant(name: str, texts: Mapping[Any, str]) -> None:
    """Print texts as a constant of a script."""
    print(f"const {name} = {{")
    for key, text in texts.items():
        print(f"  {json.dumps(str(key))}: {json.dumps(text)},")
    print("};")
