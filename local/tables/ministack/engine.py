"""ministack's DynamoDB module in this process.

Its request handler never waits, so a request runs from start to end without another in between. So the changes of a
write can be read back, as after-images, before another request changes them. This uses a few of the module's internal
functions, also to load items; tests/local/test_tables.py fails if a new release changes them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterator
from typing import Any

from ministack.services import dynamodb as ministack

from local.tables.front import Reply
from local.tables.ministack.journal import Change, Item
from local.template import Table

log = logging.getLogger("local.tables")


def create_tables(tables: list[Table]) -> None:
    """Create the template's tables, empty. Raises RuntimeError if the engine rejects one."""
    for table in tables:
        status, _, body = run("CreateTable", json.dumps(table.create_table).encode())
        if status != 200:
            raise RuntimeError(f"{table.logical_id}: {body.decode(errors='replace')}")


def run(action: str, body: bytes) -> Reply:
    """Run one request from start to end."""
    headers = {"x-amz-target": f"DynamoDB_20120810.{action}"}
    return _finish(ministack.handle_request("POST", "/", headers, body, {}))


def touched(action: str, request: dict[str, Any]) -> list[Change]:
    """The current items that a write names."""
    return [
        change
        for table_name, key_source in _targets(action, request)
        if (change := _current(table_name, key_source)) is not None
    ]


def load(change: Change) -> bool:
    """Set one item to the state in `change`. Returns False if there is no table with such a key."""
    table = ministack._tables.get(change.table)
    if table is None:
        return False
    location = _location(table, change.key)
    if location is None:
        return False
    if change.item is None:
        ministack._remove_item(table, *location)
    else:
        ministack._set_item(table, *location, change.item)
    return True


def items(table_name: str) -> Iterator[tuple[str, Item, Item]]:
    """(table, key, item) of every item in a table. Items may change in between."""
    table = ministack._tables[table_name]
    for partition in list(table["items"].values()):
        for item in list(partition.values()):
            yield table_name, ministack._extract_key_from_item(table, item), item


def _finish(coroutine: Coroutine[Any, Any, Reply]) -> Reply:
    # The handler is a coroutine that never waits, so it finishes in the first step.
    try:
        coroutine.send(None)
    except StopIteration as finished:
        reply: Reply = finished.value
        return reply
    coroutine.close()
    raise asyncio.InvalidStateError("the DynamoDB engine waited in the middle of a request")


def _targets(action: str, request: dict[str, Any]) -> Iterator[tuple[str, Item]]:
    if action == "PutItem":
        yield request["TableName"], request["Item"]
    elif action in ("UpdateItem", "DeleteItem"):
        yield request["TableName"], request["Key"]
    elif action == "BatchWriteItem":
        for table_name, requests in request["RequestItems"].items():
            for write in requests:
                if "PutRequest" in write:
                    yield table_name, write["PutRequest"]["Item"]
                elif "DeleteRequest" in write:
                    yield table_name, write["DeleteRequest"]["Key"]
    elif action == "TransactWriteItems":
        for part in request["TransactItems"]:
            for operation, arguments in part.items():
                if operation == "Put":
                    yield arguments["TableName"], arguments["Item"]
                elif operation in ("Update", "Delete"):
                    yield arguments["TableName"], arguments["Key"]


def _current(table_name: str, key_source: Item) -> Change | None:
    name = ministack._normalize_table_name(table_name)
    table = ministack._tables.get(name)
    if table is None:
        return None
    key = ministack._extract_key_from_item(table, key_source)
    location = _location(table, key)
    if location is None:
        return None
    partition, sort = location
    return Change(name, key, table["items"].get(partition, {}).get(sort))


def _location(table: dict[str, Any], key: Item) -> tuple[Any, Any] | None:
    partition, sort, error = ministack._resolve_table_key_values(table, key, True)
    return None if error else (partition, sort)
