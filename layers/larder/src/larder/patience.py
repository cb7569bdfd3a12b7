"""How long a request waits for stores that do not answer (docs/decisions/0031).

A call that uses up all its tries takes longer than half of what a function has, and several can follow one another.
Then Lambda would end the function, and the gateway answer in its place: with a 5xx that says nothing, or not in time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

KEPT_BACK_S = 15.0
"""What is left of a function's time when a request begins no further call, nor a further try of one.

More than one try takes that begins a moment before: two seconds to connect, and ten to answer at S3, five elsewhere.
"""

BRIEF_S = 2.0

_stops_at: float | None = None
_brief = local()


@contextmanager
def answering_in_time(remaining_ms: int) -> Iterator[None]:
    """Within, `is_over` tells when a function, which has so much time left now, must answer with what it has."""
    global _stops_at  # noqa: PLW0603  # an instance has one request at a time; all its threads work for it
    _stops_at = time.monotonic() + remaining_ms / 1000 - KEPT_BACK_S
    try:
        yield
    finally:
        _stops_at = None


@contextmanager
def briefly() -> Iterator[None]:
    """Within, it is over for this thread in two seconds: for what the answer does not rest on.

    A silent store then costs the request one try's time-out, and the rest of it has its time.
    """
    _brief.stops_at = time.monotonic() + BRIEF_S
    try:
        yield
    finally:
        _brief.stops_at = None


def is_over() -> bool:
    """Whether no further call, and no further try of one, is to begin."""
    now = time.monotonic()
    ends = (_stops_at, getattr(_brief, "stops_at", None))
    return any(end is not None and now >= end for end in ends)
