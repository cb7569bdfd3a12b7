"""ministack with the journal: one request at a time, and each write is journalled before its reply."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

from local.tables.front import WRITES, Reply, refusal
from local.tables.ministack import engine, expiry
from local.tables.ministack.journal import Change, Item, Journal
from local.template import Table

log = logging.getLogger("local.tables")

_COMPACT_AFTER_BYTES = 64 * 2**20


class Journalled:
    """The tables, in memory and in the journal."""

    def __init__(self, tables: list[Table], journal: Journal, *, expiry_s: int) -> None:
        self._tables = tables
        self._journal = journal
        self._expiry_s = expiry_s
        self._left_over: dict[tuple[str, str], Change] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._compacting = False

    def open(self) -> None:
        """Create the tables, restore the journal, and compact it. Raises DamagedJournal."""
        engine.create_tables(self._tables)
        for change in self._journal.recover():
            self._restore(change)
        if self._left_over:
            names = sorted({table for table, _ in self._left_over})
            log.warning(
                "kept aside: items of tables that are not in the template: %s", ", ".join(names)
            )
        self._compact_now()

    def start_housekeeping(self) -> None:
        """Delete expired items regularly. Needs the event loop."""
        self._in_background(self._expire_forever())

    def close(self) -> None:
        """Save everything as one snapshot."""
        if self._journal.size_bytes:
            self._compact_now()
        self._journal.close()

    async def answer(self, action: str, body: bytes) -> Reply:
        """Handle one request. It never waits, so requests do not overlap."""
        return self._write(action, body) if action in WRITES else engine.run(action, body)

    def _write(self, action: str, body: bytes) -> Reply:
        try:
            request = json.loads(body)
            before = engine.touched(action, request)
        except (ValueError, KeyError, TypeError, AttributeError):
            # It names no item. The engine rejects it with DynamoDB's error.
            reply = engine.run(action, body)
            return (
                reply
                if reply[0] != 200
                else refusal("ValidationException", "The request names no item")
            )
        try:
            reply = engine.run(action, body)
            if reply[0] == 200:
                self._journal.append(engine.touched(action, request))
            elif action == "BatchWriteItem":
                _undo(before)
        except Exception:
            # Memory must never be ahead of the journal, so undo a write that was not journalled.
            log.exception("%s failed", action)
            _undo(before)
            return refusal("InternalServerError", "Internal server error", status=500)
        if self._journal.size_bytes > _COMPACT_AFTER_BYTES and not self._compacting:
            self._in_background(self._compact_beside_requests())
        return reply

    def _restore(self, change: Change) -> None:
        if engine.load(change):
            return
        # The table is not in this template, or has another key. Its items are kept, not dropped.
        name = (change.table, json.dumps(change.key, sort_keys=True))
        if change.item is None:
            self._left_over.pop(name, None)
        else:
            self._left_over[name] = change

    def _everything(self) -> Iterator[tuple[str, Item, Item]]:
        for table in self._tables:
            yield from engine.items(table.name)
        for change in self._left_over.values():
            if change.item is not None:
                yield change.table, change.key, change.item

    def _compact_now(self) -> None:
        self._journal.begin()
        for _ in self._journal.compact(self._everything()):
            pass

    async def _compact_beside_requests(self) -> None:
        self._compacting = True
        try:
            self._journal.begin()
            for _ in self._journal.compact(self._everything()):
                await asyncio.sleep(0)
        finally:
            self._compacting = False

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(self._expiry_s)
            for removals in expiry.expired(self._tables, time.time()):
                if removals:
                    for removal in removals:
                        engine.load(removal)
                    self._journal.append(removals)
                await asyncio.sleep(0)

    def _in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background work failed", exc_info=error)


def _undo(before: list[Change]) -> None:
    for change in before:
        engine.load(change)
