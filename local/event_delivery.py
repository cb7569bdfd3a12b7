"""Hands S3's events to the functions whose rules match them, again when a function fails.

An event is a file (local/object_storage/announcements.py) that goes when every function has had it: what a crash left
behind is delivered at the next start. An event that keeps failing is put aside in `failed/`, the dead-letter queue of
one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from pathlib import Path
from typing import Any

from local.invocation import FunctionFailed, Functions
from local.request_log import RequestLog
from local.template import EventRule

_ATTEMPTS = 3
_PAUSE_S = 0.5
_AT_ONCE = 2
_LOOK_AGAIN_S = 30.0


class EventDelivery:
    """Delivers the events in `folder`; `ring` says that there are new ones."""

    def __init__(
        self, folder: Path, rules: list[EventRule], functions: Functions, log: RequestLog
    ) -> None:
        self._folder = folder
        self._rules = rules
        self._functions = functions
        self._log = log
        self._bell = asyncio.Event()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        # Requests go before events: uploads must not fill every worker with events of earlier ones.
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def ring(self) -> None:
        self._bell.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            while True:
                self._bell.clear()
                for path in sorted(self._folder.glob("*.json")):
                    if path.name not in self._under_way:
                        self._under_way[path.name] = asyncio.create_task(self._deliver(path))
                # The bell may be lost in a crash; the files are not.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), _LOOK_AGAIN_S)
        finally:
            for task in self._under_way.values():
                task.cancel()

    async def _deliver(self, path: Path) -> None:
        try:
            async with self._turns:
                await self._deliver_to_all(path)
        finally:
            del self._under_way[path.name]

    async def _deliver_to_all(self, path: Path) -> None:
        payload = _read(path)
        event = json.loads(payload)
        for rule in self._rules:
            if not matches(rule.pattern, event):
                continue
            if not await self._invoke(rule, event["detail"]["object"]["key"], payload):
                _put_aside(path)
                return
        _remove(path)

    async def _invoke(self, rule: EventRule, key: str, payload: bytes) -> bool:
        name = rule.function.logical_id
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._functions.invoke(rule.function, payload, str(uuid.uuid4()))
                return True
            except FunctionFailed as error:
                self._log.note(f"{name} failed on {key}, attempt {attempt} of {_ATTEMPTS}: {error}")
                await asyncio.sleep(_PAUSE_S * attempt)
        return False


# An event is a small file on a local disk: no reason for a thread.
def _read(path: Path) -> bytes:
    return path.read_bytes()


def _remove(path: Path) -> None:
    path.unlink()


def _put_aside(path: Path) -> None:
    failed = path.parent / "failed"
    failed.mkdir(mode=0o700, exist_ok=True)
    path.rename(failed / path.name)


def matches(pattern: Any, value: Any) -> bool:
    """Does an EventBridge pattern match an event? The parts of the pattern language that a bucket's rules use.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
    """
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            name in value and matches(inner, value[name]) for name, inner in pattern.items()
        )
    if isinstance(pattern, list):
        return any(_matches_one(choice, value) for choice in pattern)
    raise ValueError(f"an event pattern's values are lists, not {pattern!r}")


def _matches_one(choice: Any, value: Any) -> bool:
    if not isinstance(choice, dict):
        return bool(choice == value)
    ((operator, operand),) = choice.items()
    if operator == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    if operator == "suffix":
        return isinstance(value, str) and value.endswith(operand)
    if operator == "anything-but":
        return value not in (operand if isinstance(operand, list) else [operand])
    raise ValueError(
        f"the event pattern operator {operator!r} is not understood by the local cloud"
    )
