"""The table of findings in docs/operator-cli.md, from `larder doctor`."""

from __future__ import annotations

from larder_cli.doctor.findings import RULES
from tools.generate.text import table_row


def findings() -> None:
    print(table_row("Finding", "Level", "Rule"))
    print("|---|---|---|")
    for id, rule in RULES.items():
        print(table_row(f"`{id}`", rule.level, rule.text))
