"""How many requests run at a time: as many as the deployment takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST, MOST = 16, 64
"""A new AWS account runs ten functions at once. Most others run a thousand."""

_ROUND_SECONDS = 0.5
"""Refusals within this time are of requests that were sent together, and count as one."""


class Places:
    """Grows with each success, and is halved by a refusal (429 or 503), after which it grows slowly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent, self._patient = (threading.Condition(self._lock) for _ in range(2))
        self._waiting = 0
        self._taken = 0
        self._most = float(FIRST)
        self._refused_at: float | None = None

    @property
    def most(self) -> int:
        return int(self._most)

    def expect(self, most: int) -> None:
        """Begin with what the deployment took at the end of another run."""
        with self._lock:
            self._most = float(min(max(most, 1), MOST))

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

    def succeeded(self) -> None:
        with self._lock:
            step = 1 if self._refused_at is None else 1 / self._most
            self._most = min(self._most + step, MOST)
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
