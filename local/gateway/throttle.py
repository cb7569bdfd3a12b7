"""Refuse requests as API Gateway and Lambda do when there are too many.

Off by default. API Gateway's limits apply to each route; here one bucket limits all routes together, which refuses
earlier. Neither refusal reaches a function, so the replies have none of Larder's headers.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """`rate` requests a second, `burst` at once, and `concurrency` functions at the same time. None means no limit."""

    rate: float | None = None
    burst: int = 0
    concurrency: int | None = None

    def bucket(self) -> TokenBucket | None:
        return None if self.rate is None else TokenBucket(self.rate, self.burst)


UNLIMITED = Limits()


@dataclass(slots=True)
class TokenBucket:
    """`burst` tokens, refilled with `rate` a second. Each request takes one."""

    rate: float
    burst: int
    _tokens: float = field(init=False)
    _at: float | None = None

    def __post_init__(self) -> None:
        self._tokens = float(self.burst)

    def take(self, now: float) -> bool:
        """Take a token at the time `now`, in seconds. False if there is none."""
        passed = 0.0 if self._at is None else now - self._at
        self._at = now
        self._tokens = min(self.burst, self._tokens + passed * self.rate)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
