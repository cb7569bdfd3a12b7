"""The table of findings in docs/operator-cli.md, from `larder doctor`."""

from __future__ import annotations

from larder_cli.doctor.findings import RULES
from tools.generate.text import table_row


def findings() -> None:
    """The findings of each level. `larder doctor` prints the rule of each that it finds."""
    print(table_row("Level", "Findings"))
    print("|---|---|")
    for level in dict.fromkeys(rule.level for rule in RULES.values()):
        ids = [f"`{id}`" for id, rule in RULES.items() if rule.level == level]
        print(table_row(level, ", ".join(ids)))
