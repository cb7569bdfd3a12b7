"""Counts the calls to AWS that a request waits for, one after another.

The count follows cause and effect and not the clock, so a busy machine does not change it. Each thread has the number
of sequential calls before its current work. A call adds one. A job in a background thread starts with the number of the
thread that submitted it, and a thread that takes a result takes its number if that is higher. The highest number is the
length of the longest chain of calls that had to wait for each other.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from larder import aws
from tests.hooks import hooked


@dataclass(frozen=True)
class Call:
    """One HTTP request to AWS, also a retry. `step` is its place in its chain, from 1."""

    operation: str
    step: int


@dataclass
class Calls:
    """The calls that `counted` has seen."""

    made: list[Call] = field(default_factory=list)

    @property
    def sequential(self) -> int:
        return max((call.step for call in self.made), default=0)

    @property
    def steps(self) -> list[list[str]]:
        """The names of the operations, grouped by step."""
        return [
            sorted(call.operation for call in self.made if call.step == step) for step in range(1, self.sequential + 1)
        ]


class _Behind(threading.local):
    """The number of sequential calls before the current work of this thread."""

    calls = 0


@contextmanager
def counted() -> Iterator[Calls]:
    """A context that counts the requests of the layer's clients."""
    calls = Calls()
    behind = _Behind()
    reached_by: WeakKeyDictionary[Future[Any], list[int]] = WeakKeyDictionary()
    submit, result = ThreadPoolExecutor.submit, Future.result

    def before_send(event_name: str = "", **_: object) -> None:
        behind.calls += 1
        calls.made.append(Call(event_name.rpartition(".")[2], behind.calls))

    def carrying_submit(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        handed_over = behind.calls
        reached = [handed_over]

        def carried() -> Any:
            behind.calls = handed_over
            try:
                return function(*args, **kwargs)
            finally:
                reached[0] = behind.calls
                behind.calls = 0

        future = submit(pool, carried)
        reached_by[future] = reached
        return future

    def carrying_result(future: Future[Any], timeout: float | None = None) -> Any:
        try:
            return result(future, timeout)
        finally:
            behind.calls = max(behind.calls, *reached_by.get(future, [0]))

    with (
        # First, because moto replies in the same event, and a reply ends the event.
        hooked("before-send", before_send, aws.dynamodb(), aws.s3()),
        patch.object(ThreadPoolExecutor, "submit", carrying_submit),
        patch.object(Future, "result", carrying_result),
    ):
        yield calls
