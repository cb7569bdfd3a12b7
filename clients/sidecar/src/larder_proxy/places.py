"""How many requests run at a time: as many as the deployment takes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

FIRST, NEAR, MOST = 16, 48, 160
"""At the start, near the deployment, and far away.

A new AWS account runs ten functions at once, most others a thousand. A request from far away is on its way most of the
time, so more of them at a time do not need more functions. A process of macOS has 256 sockets and files.
"""

_ROUND_SECONDS = 0.5
"""Refusals within this time are of requests that were sent together, and count as one."""


def in_background(work: Callable[[], object]) -> threading.Thread | None:
    """Run it in a thread. None, without running it, if the system has no more of them."""
    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def open_files() -> int:
    """How many files and sockets this process may have, now that it raises its limit."""
    try:
        import resource
    except ImportError:
        return 4 * MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        most = max(soft, 4 * MOST if hard == resource.RLIM_INFINITY else min(hard, 4 * MOST))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Places:
    """Grows with each success, up to one more than `NEAR` for each millisecond of the fastest answer.

    Is halved by a refusal (429 or 503), after which it grows slowly.
    """

    def __init__(self, limit: int = MOST) -> None:
        self._limit = min(limit, MOST)
        self._lock = threading.Lock()
        self._urgent, self._patient = (threading.Condition(self._lock) for _ in range(2))
        self._waiting = 0
        self._taken = 0
        self._most = float(min(FIRST, limit))
        self._refused_at: float | None = None
        self._fastest = math.inf

    @property
    def most(self) -> int:
        return int(self._most)

    def expect(self, most: int) -> None:
        """Begin with what the deployment took at the end of another run."""
        with self._lock:
            self._most = float(min(max(most, 1), self._limit))

    @contextmanager
    def one(self, *, is_urgent: bool = True) -> Iterator[None]:
        """Wait for a place. What a tool waits for goes first."""
        with self._lock:
            if is_urgent:
                self._waiting += 1
                while self._taken >= self.most:
                    self._urgent.wait()
                self._waiting -= 1
            else:
                while self._taken >= self.most or self._waiting:
                    self._patient.wait()
            self._taken += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken -= 1
                self._wake()

    def succeeded(self, seconds: float) -> None:
        """Count an answer, which took some seconds to begin."""
        with self._lock:
            self._fastest = min(self._fastest, seconds)
            step = 1 if self._refused_at is None else 1 / self._most
            self._most = min(self._most + step, NEAR + self._fastest * 1_000, self._limit)
            self._wake()

    def refused(self) -> None:
        now = time.monotonic()
        with self._lock:
            if self._refused_at is None or now - self._refused_at > _ROUND_SECONDS:
                self._refused_at = now
                self._most = max(self._most / 2, 1)

    def _wake(self) -> None:
        free = max(self.most - self._taken, 0)
        self._urgent.notify(free)
        self._patient.notify(max(free - self._waiting, 0))
