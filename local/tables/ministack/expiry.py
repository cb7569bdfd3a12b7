"""Delete expired items as DynamoDB does: late, and only to save space.

ministack's own thread for this would change tables during requests and bypass the journal, so it stays idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from local.tables.ministack import engine
from local.tables.ministack.journal import Change
from local.template import Table

_ITEMS_A_RECORD = 100


def expired(tables: list[Table], now_s: float) -> Iterator[list[Change]]:
    """The deletions that are due at `now_s` (epoch seconds), in batches. An empty list lets other work run."""
    for table in tables:
        if table.ttl_attribute is None:
            continue
        due: list[Change] = []
        for number, (name, key, item) in enumerate(engine.items(table.name), start=1):
            value = item.get(table.ttl_attribute, {}).get("N")
            if value is not None and float(value) <= now_s:
                due.append(Change(name, key, None))
            if number % _ITEMS_A_RECORD == 0:
                yield due
                due = []
        yield due
