"""The table in docs/teams.md: what each endpoint does in each state of the team, from tests/access.py."""

from __future__ import annotations

from tests.access import ROWS
from tools.generate.text import table_row

_EFFECTS = {"yes": "passes", "off": "403", "402": "402"}
_STATES = ("disabled", "paused", "over_limit", "blocked")


def table() -> None:
    """A row for all endpoints with the same effects. Those that pass in every state are left out."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for endpoint, words in ROWS.items():
        effects = tuple(_EFFECTS[words[state]] for state in _STATES)
        rows.setdefault(effects, []).append(f"`{endpoint}`")
    print(table_row("Requests", *(f"`{one}`" for one in _STATES[:3]), "blocked"))
    print("|---|---|---|---|---|")
    for effects, endpoints in rows.items():
        if {*effects} != {"passes"}:
            print(table_row(", ".join(endpoints), *effects))
