"""When a request or background work must stop beginning new calls (docs/decisions/writes.md#deadlines).

A call that uses up all its tries takes longer than half of what a function has, and several can follow one another.
Then Lambda would end the function, and the gateway would answer in its place: too late, or with a 5xx without a reason.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Protocol

KEPT_BACK_S = 15.0
"""How long before the end of its function a request begins no further call, and no further try of one.

This is longer than one try that begins just before it: two seconds to connect, and ten for an answer of S3 or five for
any other.
"""

SHORT_S = 2.0

LAST_CALL_S = 7.5
"""How long one try of a call can take, other than of S3."""

MARGIN_MS = 30_000
"""How long before the end of its function background work begins nothing more. A hundred artifacts may be under way."""

_request_ends_at: float | None = None
_short = local()
_at_end: list[Callable[[], object]] = []


class Clocked(Protocol):
    """The context of an invocation, as far as its remaining time goes."""

    def get_remaining_time_in_millis(self) -> int: ...


@contextmanager
def request_deadline(remaining_ms: int) -> Iterator[None]:
    """Set the deadline of the request, whose function has this much time left."""
    global _request_ends_at  # noqa: PLW0603  # an instance has one request at a time; all its threads work for it
    _request_ends_at = time.monotonic() + remaining_ms / 1000 - KEPT_BACK_S
    try:
        yield
    finally:
        _request_ends_at = None
        while _at_end:
            _at_end.pop()()


@contextmanager
def short_deadline() -> Iterator[None]:
    """Set a deadline of two seconds for this thread, for calls that the answer does not depend on.

    A store that does not answer then costs the request the time-out of one try, and leaves it the rest of its time.
    """
    _short.ends_at = time.monotonic() + SHORT_S
    try:
        yield
    finally:
        _short.ends_at = None


@contextmanager
def one_try() -> Iterator[None]:
    """Let calls of this thread fail at their first failure, for work that can just as well be left out."""
    _short.once = True
    try:
        yield
    finally:
        _short.once = False


@contextmanager
def last_call() -> Iterator[None]:
    """Let one try of a call of this thread begin after the deadline of the request, if its function has the time."""
    _short.later_s = KEPT_BACK_S - LAST_CALL_S
    try:
        with one_try():
            yield
    finally:
        _short.later_s = 0.0


def has_one_try() -> bool:
    return getattr(_short, "once", False)


def at_end_of_request(act: Callable[[], object]) -> None:
    """Run `act` when the reply of the request is ready, or at once outside of a request."""
    if _request_ends_at is None:
        act()
    else:
        _at_end.append(act)


def exceeded() -> bool:
    """Whether a deadline is over, so that no further call, and no further try of one, may begin."""
    now = time.monotonic()
    ends_at: float | None = getattr(_short, "ends_at", None)
    if ends_at is not None and now >= ends_at:
        return True
    later_s: float = getattr(_short, "later_s", 0.0)
    return _request_ends_at is not None and now >= _request_ends_at + later_s


def has_time(context: Clocked) -> bool:
    """Whether background work has enough time left to begin more."""
    return context.get_remaining_time_in_millis() > MARGIN_MS
