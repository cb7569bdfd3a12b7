"""The words of causes for the console, from those of `larder why`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from larder.why.causes import ADVICE, Kind
from larder_cli.why.report import HINTS, TITLES


def words() -> None:
    """Print the titles of kinds, the words of hints, and the advice, as constants of a script."""
    constant("CAUSE_TITLES", {kind: TITLES.get(kind, kind.value) for kind in Kind})
    constant("HINT_WORDS", HINTS)
    constant("ADVICE", ADVICE)


def constant(name: str, texts: Mapping[Any, str]) -> None:
    """Print texts as a constant of a script."""
    print(f"const {name} = {{")
    for key, text in texts.items():
        print(f"  {json.dumps(str(key))}: {json.dumps(text)},")
    print("};")
