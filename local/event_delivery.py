"""Deliver S3's events to the functions whose rules match, with retries.

An event is a file (local/object_storage/announcements.py), deleted when every function has handled it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from local.function_pool import FunctionPool
from local.request_log import RequestLog
from local.retry_queue import RetryQueue, invoke_with_retries
from local.template import EventRule


class EventDelivery:
    """Delivers the events in `folder`. Call `wake` after adding one."""

    def __init__(
        self, folder: Path, rules: list[EventRule], functions: FunctionPool, log: RequestLog
    ) -> None:
        self._rules = rules
        self._functions = functions
        self._log = log
        self._queue = RetryQueue(folder, self._deliver)

    def wake(self) -> None:
        self._queue.wake()

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self._queue.run()

    async def _deliver(self, payload: bytes) -> bool:
        event = json.loads(payload)
        for rule in self._rules:
            if not matches(rule.pattern, event):
                continue
            key = event["detail"]["object"]["key"]
            if not await invoke_with_retries(
                self._functions, rule.function, payload, self._log, what=key
            ):
                return False
        return True


def matches(pattern: Any, value: Any) -> bool:
    """Whether an EventBridge pattern matches an event. Supports the operators that a bucket's rules use.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
    """
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            name in value and matches(inner, value[name]) for name, inner in pattern.items()
        )
    if isinstance(pattern, list):
        return any(_matches_one(choice, value) for choice in pattern)
    raise ValueError(f"an event pattern's values must be lists, not {pattern!r}")


def _matches_one(choice: Any, value: Any) -> bool:
    if not isinstance(choice, dict):
        return bool(choice == value)
    ((operator, operand),) = choice.items()
    if operator == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    if operator == "suffix":
        return isinstance(value, str) and value.endswith(operand)
    if operator == "wildcard":
        parts = map(re.escape, operand.split("*"))
        return (
            isinstance(value, str) and re.fullmatch(".*".join(parts), value, re.DOTALL) is not None
        )
    if operator == "anything-but":
        return value not in (operand if isinstance(operand, list) else [operand])
    raise ValueError(f"the local cloud does not support the event pattern operator {operator!r}")
