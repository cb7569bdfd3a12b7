"""The tables in docs/faults.md, from tests/proofs/fault_families.py."""

from __future__ import annotations

from tests.proofs.fault_families import FAMILIES, REFUSALS
from tools.generate.text import table_row


def refusals() -> None:
    print(table_row("Reply to the repeated request", "Meaning"))
    print("|---|---|")
    for reply, meaning in REFUSALS.items():
        status, code = reply.split()
        print(table_row(f"{status} `{code}`", meaning))


def families() -> None:
    print(table_row("", "What you see", "Requests and functions"))
    print("|---|---|---|")
    for word, family in FAMILIES.items():
        print(
            table_row(
                word,
                family.seen,
                ", ".join(dict.fromkeys(f"`{name.partition(' (')[0]}`" for name in family.of)),
            )
        )
