"""The DynamoDB server: checks signatures, runs one request at a time, journals a write before it answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

from nanio.auth.sigv4 import verify_header_auth
from nanio.errors import S3Error
from starlette.types import Receive, Scope, Send

from local.dynamodb import engine, expiry
from local.dynamodb.journal import Change, Item, Journal
from local.template import Table

log = logging.getLogger("local.dynamodb")

_MAX_BODY_BYTES = 17 * 2**20  # BatchWriteItem takes 16 MB
_COMPACT_AFTER_BYTES = 64 * 2**20
_EXPIRY_PAUSE_S = 60.0


class DynamoDb:
    """The ASGI application. `open` before the first request, `close` after the last."""

    def __init__(self, tables: list[Table], journal: Journal, credentials: tuple[str, str]) -> None:
        self._tables = tables
        self._journal = journal
        self._access_key, self._secret_key = credentials
        self._left_over: dict[tuple[str, str], Change] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._compacting = False

    def open(self) -> None:
        """Make the tables, bring back what the journal holds, and compact it. Raises DamagedJournal."""
        engine.create_tables(self._tables)
        for change in self._journal.recover():
            self._restore(change)
        if self._left_over:
            names = sorted({table for table, _ in self._left_over})
            log.warning(
                "kept aside: items of tables that the template does not have: %s", ", ".join(names)
            )
        self._compact_now()

    def start_housekeeping(self) -> None:
        """Remove expired items now and then. Needs the event loop."""
        self._in_background(self._expire_forever())

    def close(self) -> None:
        """Save everything as one snapshot."""
        if self._journal.size_bytes:
            self._compact_now()
        self._journal.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _read_body(receive)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        status, reply_headers, reply = self._answer(scope, headers, body)
        raw = [
            (name.lower().encode("ascii"), str(value).encode("ascii"))
            for name, value in reply_headers.items()
        ]
        raw = [pair for pair in raw if pair[0] != b"content-length"]
        raw.append((b"content-length", str(len(reply)).encode("ascii")))
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": reply})

    def _answer(self, scope: Scope, headers: dict[str, str], body: bytes | None) -> engine.Reply:
        if body is None:
            return _error("ValidationException", "The request is too large")
        try:
            self._check_signature(scope, headers, body)
        except S3Error:
            return _error(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            )
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action in engine.READS:
            return engine.run(action, body)
        if action in engine.WRITES:
            return self._write(action, body)
        # An operation whose effect is not journalled must not look as if it had worked.
        return _error(
            "UnknownOperationException",
            f"The local cloud has no {action or 'operation without a name'}",
        )

    def _check_signature(self, scope: Scope, headers: dict[str, str], body: bytes) -> None:
        verify_header_auth(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            # Only S3's clients send the body's hash; for DynamoDB the server computes it.
            headers={**headers, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()},
            secret_lookup=lambda key: self._secret_key if key == self._access_key else None,
        )

    def _write(self, action: str, body: bytes) -> engine.Reply:
        try:
            request = json.loads(body)
            before = engine.touched(action, request)
        except (ValueError, KeyError, TypeError, AttributeError):
            # Names no item: the engine refuses it, and words the refusal as DynamoDB does.
            reply = engine.run(action, body)
            return (
                reply
                if reply[0] != 200
                else _error("ValidationException", "The request names no item")
            )
        try:
            reply = engine.run(action, body)
            if reply[0] == 200:
                self._journal.append(engine.touched(action, request))
            elif action == "BatchWriteItem":
                _undo(before)
        except Exception:
            # Memory must never be ahead of the journal: what is not journalled did not happen.
            log.exception("%s failed", action)
            _undo(before)
            return _error("InternalServerError", "Internal server error", status=500)
        if self._journal.size_bytes > _COMPACT_AFTER_BYTES and not self._compacting:
            self._in_background(self._compact_beside_requests())
        return reply

    def _restore(self, change: Change) -> None:
        if engine.load(change):
            return
        # The table is not in this template, or has another key: its items are carried along, not dropped.
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
            await asyncio.sleep(_EXPIRY_PAUSE_S)
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


async def _read_body(receive: Receive) -> bytes | None:
    """The body; None when it is larger than any request may be."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _error(code: str, message: str, status: int = 400) -> engine.Reply:
    body = json.dumps(
        {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
    ).encode()
    return status, {"content-type": "application/x-amz-json-1.0"}, body
