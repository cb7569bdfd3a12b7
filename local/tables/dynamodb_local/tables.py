"""Update the tables in DynamoDB Local to the template at each start, as a deployment does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from local.tables.front import Reply
from local.template import Table

Call = Callable[[str, bytes], Reply]

_TIMEOUT_S = 60.0
_LOOK_PAUSE_S = 0.05


class TablesRefused(Exception):
    """A table cannot be changed to match the template. The message names it and says why."""


def make_tables(tables: list[Table], call: Call) -> None:
    """Create missing tables, and update indexes and time to live. Raises TablesRefused.

    A table that is no longer in the template stays, and is used again if the template contains it again.
    """
    there = set(_ask(call, "ListTables", {})["TableNames"])
    for table in tables:
        if table.name in there:
            _change_indexes(table, call)
        else:
            _ask(call, "CreateTable", table.create_table)
        _change_time_to_live(table, call)


def _change_indexes(table: Table, call: Call) -> None:
    wanted = _indexes(table.create_table)
    there = _described(table, call)
    if there["KeySchema"] != table.create_table["KeySchema"]:
        raise TablesRefused(f"{table.name} has a different key in the template")
    gone = [name for name, index in _indexes(there).items() if wanted.get(name) != index]
    new = [name for name, index in wanted.items() if _indexes(there).get(name) != index]
    # DynamoDB changes one index at a time.
    changes: list[dict[str, Any]] = [{"Delete": {"IndexName": name}} for name in gone]
    changes += [{"Create": {"IndexName": name, **wanted[name]}} for name in new]
    for change in changes:
        _ask(
            call,
            "UpdateTable",
            {
                "TableName": table.name,
                "AttributeDefinitions": table.create_table["AttributeDefinitions"],
                "GlobalSecondaryIndexUpdates": [change],
            },
        )
        _wait_until_active(table, call)


def _indexes(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The definitions of the indexes, by name."""
    return {
        index["IndexName"]: {
            "KeySchema": index["KeySchema"],
            "Projection": index["Projection"],
        }
        for index in description.get("GlobalSecondaryIndexes", [])
    }


def _wait_until_active(table: Table, call: Call) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        there = _described(table, call)
        states = {index["IndexStatus"] for index in there.get("GlobalSecondaryIndexes", [])}
        if {there["TableStatus"], *states} == {"ACTIVE"}:
            return
        if time.monotonic() > deadline:
            raise TablesRefused(f"the indexes of {table.name} did not become active in time")
        time.sleep(_LOOK_PAUSE_S)


def _described(table: Table, call: Call) -> dict[str, Any]:
    described: dict[str, Any] = _ask(call, "DescribeTable", {"TableName": table.name})["Table"]
    return described


def _change_time_to_live(table: Table, call: Call) -> None:
    description = _ask(call, "DescribeTimeToLive", {"TableName": table.name})[
        "TimeToLiveDescription"
    ]
    there = description.get("AttributeName")
    if there == table.ttl_attribute:
        return
    for attribute, enabled in ((there, False), (table.ttl_attribute, True)):
        if attribute is not None:
            specification = {"AttributeName": attribute, "Enabled": enabled}
            request = {"TableName": table.name, "TimeToLiveSpecification": specification}
            _ask(call, "UpdateTimeToLive", request)


def _ask(call: Call, action: str, request: dict[str, Any]) -> dict[str, Any]:
    status, _, body = call(action, json.dumps(request).encode("utf-8"))
    reply: dict[str, Any] = json.loads(body)
    if status != 200:
        message = reply.get("message") or reply.get("Message")
        raise TablesRefused(f"DynamoDB Local rejected {action}: {message}")
    return reply
