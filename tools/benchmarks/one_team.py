"""`python -m tools.benchmarks.one_team`: simulate how many reads and uploads one team loses to DynamoDB's throttling.

A partition of DynamoDB is a token bucket: 3,000 read units or 1,000 write units a second, and as many in reserve.
Arrivals are random. A call that is refused is repeated as the code does. Nothing here runs against AWS.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

_READS, _WRITES = 3000, 1000
_SECONDS = 20.0
_TO_DYNAMODB_S = 0.005
_HANDLED_S = 0.03
"""How long a request occupies an instance."""
_COPIES_S = 5.0
_MISSES = 0.1


@dataclass
class Bucket:
    """The capacity of a partition, in units a second."""

    rate: float
    tokens: float = field(init=False)
    filled_at: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.rate

    def take(self, now: float, units: float) -> bool:
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        if self.tokens < units:
            return False
        self.tokens -= units
        return True


class Clock:
    """Runs what is due, in order."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = count()

    def at(self, when: float, do: Callable[[float], None]) -> None:
        heapq.heappush(self._due, (when, next(self._numbers), do))

    def run(self) -> None:
        while self._due:
            when, _, do = heapq.heappop(self._due)
            do(when)


def arrivals(source: random.Random, rate: float, seconds: float) -> Iterator[float]:
    now = source.expovariate(rate)
    while now < seconds:
        yield now
        now += source.expovariate(rate)


@dataclass(frozen=True)
class Reads:
    """How lookups of one team read. `hit` and `miss` are units of the index; `pauses_s` are between the tries."""

    name: str
    partitions: int
    hit: int
    miss: int
    pauses_s: tuple[float, ...]
    copies: bool


def lost_reads(way: Reads, rate: float, *, seconds: float = _SECONDS) -> float:
    """The share of lookups that get 503."""
    source, clock, lost = random.Random(1), Clock(), 0  # noqa: S311  # a simulation
    index = [Bucket(_READS) for _ in range(way.partitions)]
    # The team and the member are in one partition; the user and the key each in another.
    shared = [(Bucket(_READS), 2), (Bucket(_READS), 1), (Bucket(_READS), 1)]
    instances = max(1, round(rate * _HANDLED_S))
    read_at = [[-_COPIES_S - 1.0] * instances for _ in shared]

    def read(now: float, asked: int, instance: int, left: list[tuple[Bucket, int]]) -> None:
        nonlocal lost
        still = [(bucket, units) for bucket, units in left if not bucket.take(now, units)]
        for number, item in enumerate(shared):
            if item in left and item not in still:
                read_at[number][instance] = now
        if way.copies:
            still = [
                item
                for item in still
                if item not in shared or now - read_at[shared.index(item)][instance] > _COPIES_S
            ]
        if not still:
            return
        if asked == len(way.pauses_s):
            lost += 1
            return
        pause = _TO_DYNAMODB_S + source.uniform(0, way.pauses_s[asked])
        clock.at(now + pause, partial(read, asked=asked + 1, instance=instance, left=still))

    times = list(arrivals(source, rate, seconds))
    for now in times:
        units = way.miss if source.random() < _MISSES else way.hit
        left = [*shared, (source.choice(index), units)]
        instance = source.randrange(instances)
        clock.at(now, partial(read, asked=0, instance=instance, left=left))
    clock.run()
    return lost / len(times)


@dataclass(frozen=True)
class Uploads:
    """How uploads of one team write. `apart` is whether bodies and totals have partitions of their own."""

    name: str
    partitions: int
    apart: bool
    locks: bool
    """Whether an eviction in the background has the totals in its transaction."""


_MIX = ((0.6, 2, 0), (0.9, 1, 11), (1.0, 7, 0))
"""Up to this share: the units of the index, and of a body. Logs, bodies of 10 KB, and direct uploads."""
_EVICTED_AT_ONCE, _TRANSACTION_S, _BETWEEN_S = 40, 0.04, 0.02


def lost_uploads(way: Uploads, rate: float, *, seconds: float = _SECONDS) -> float:
    """The share of uploads that get 503, while as much is evicted as is uploaded."""
    source, clock = random.Random(1), Clock()  # noqa: S311  # a simulation
    index = [Bucket(_WRITES) for _ in range(way.partitions)]
    tails = [(Bucket(_WRITES), Bucket(_WRITES)) for _ in range(way.partitions)]
    totals = Bucket(_WRITES) if way.apart else index[0]
    lost = stored = evicted = 0
    locked_until = 0.0

    def again(now: float, tries: int, do: Callable[..., None]) -> bool:
        if tries == 2:
            return False
        clock.at(now + source.uniform(0, 2**tries), partial(do, tries=tries + 1))
        return True

    def count_bytes(
        now: float, place: int, units: int, body: int, tries: int = 0, met: int = 0
    ) -> None:
        nonlocal lost
        do = partial(count_bytes, place=place, units=units, body=body)
        if now < locked_until:
            if met == 7:
                lost += 1
            else:
                pause = _TO_DYNAMODB_S + source.uniform(0, 0.01 * 2**met)
                clock.at(now + pause, partial(do, tries=tries, met=met + 1))
        elif totals.take(now, 1):
            clock.at(now + 0.02, partial(publish, place=place, units=units, body=body))
        elif not again(now, tries, partial(do, met=met)):
            lost += 1

    def publish(now: float, place: int, units: int, body: int, tries: int = 0) -> None:
        nonlocal lost, stored
        listed = 2 if units == _MIX[2][1] else 1
        if index[place].take(now, units) and all(tail.take(now, listed) for tail in tails[place]):
            stored += 1
            if body and not way.apart:
                index[place].take(now, body)
        elif not again(now, tries, partial(publish, place=place, units=units, body=body)):
            lost += 1

    def evict(now: float) -> None:
        nonlocal evicted, locked_until
        if now > seconds:
            return
        chosen = min(_EVICTED_AT_ONCE, stored - evicted)
        pause = 0.1
        if chosen >= _EVICTED_AT_ONCE // 2 and index[0].take(now, 4 * chosen / way.partitions):
            for bucket in index[1:]:
                bucket.take(now, 4 * chosen / way.partitions)
            evicted += chosen
            pause = _TRANSACTION_S + _BETWEEN_S
            if way.locks:
                locked_until = now + _TRANSACTION_S
        clock.at(now + pause, evict)

    times = list(arrivals(source, rate, seconds))
    for now in times:
        drawn = source.random()
        _, units, body = next(kind for kind in _MIX if drawn < kind[0])
        place = source.randrange(way.partitions)
        clock.at(now, partial(count_bytes, place=place, units=units, body=body))
    clock.at(0.01, evict)
    clock.run()
    return lost / len(times)


_OLD_PAUSES, _PAUSES = (0.01, 0.02), (0.1, 0.3, 0.9, 2.0)
READS = (
    Reads("0.2.0: one partition", 1, 3, 3, _OLD_PAUSES, copies=False),
    Reads("a team of 0.2.0", 1, 1, 3, _PAUSES, copies=True),
    Reads("a new team", 8, 1, 3, _PAUSES, copies=True),
    Reads("a new team, split once", 16, 1, 3, _PAUSES, copies=True),
    Reads("a new team, split twice", 32, 1, 3, _PAUSES, copies=True),
)
UPLOADS = (
    Uploads("0.2.0: one partition", 1, apart=False, locks=True),
    Uploads("a team of 0.2.0", 1, apart=True, locks=False),
    Uploads("a new team, with the totals in evictions", 8, apart=True, locks=True),
    Uploads("a new team", 8, apart=True, locks=False),
)
LOOKUPS_PER_S = (2_250, 6_750, 22_500)
"""The average of 300 CI jobs with 4,500 tasks in ten minutes, its peak, and ten times the average."""
UPLOADS_PER_S = (200, 600, 900, 1200)


def main() -> None:
    print(f"{'lost lookups':42}" + "".join(f"{rate:>10,}/s" for rate in LOOKUPS_PER_S))
    for reads in READS:
        shares = [lost_reads(reads, rate) for rate in LOOKUPS_PER_S]
        print(f"{reads.name:42}" + "".join(f"{share:>11.2%} " for share in shares))
    print(f"\n{'lost uploads':42}" + "".join(f"{rate:>10,}/s" for rate in UPLOADS_PER_S))
    for uploads in UPLOADS:
        shares = [lost_uploads(uploads, rate) for rate in UPLOADS_PER_S]
        print(f"{uploads.name:42}" + "".join(f"{share:>11.2%} " for share in shares))


if __name__ == "__main__":
    main()
