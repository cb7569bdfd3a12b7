"""What takes the space of an owner: bytes and artifacts by age, writer and CI, and the largest artifacts.

The daily check of the totals reads every artifact, and adds each to a `Collector`.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from heapq import heappush, heappushpop

from larder.actor import Actor
from larder.artifacts.records import AGES, MOST_PARTS, Breakdown, Part, Seen
from larder.artifacts.repository import checks
from larder.usage.uploads import Stored
from larder.usage.vendors import ci_vendor


def read_breakdown(owner: str) -> Breakdown | None:
    """What takes the space, as the last complete check of the totals found it. None if there was none."""
    return checks.read_breakdown(owner)


class Collector:
    """Adds up artifacts, one after another."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._limits = [now - timedelta(days=days) for days in AGES]
        self._all = _Sum()
        self._unread = _Sum()
        self._records_uses = False
        self._ages = [_Sum() for _ in range(len(AGES) + 1)]
        self._writers: dict[str | None, _Sum] = defaultdict(_Sum)
        self._vendors: dict[str | None, _Sum] = defaultdict(_Sum)
        self._largest: list[tuple[int, int, Seen]] = []

    def add(self, artifact: Seen) -> None:
        age = sum(artifact.created_at <= limit for limit in self._limits)
        sums = [self._all, self._ages[age], self._writers[_writer(artifact.writer)]]
        sums.append(self._vendors[ci_vendor(artifact.ci)])
        self._records_uses |= artifact.is_read is not None
        if artifact.is_read is False:
            sums.append(self._unread)
        for each in sums:
            each.add(artifact)
        # The number keeps artifacts of the same size from being compared.
        entry = (artifact.size_bytes, self._all.artifacts, artifact)
        if len(self._largest) < MOST_PARTS:
            heappush(self._largest, entry)
        else:
            heappushpop(self._largest, entry)

    def breakdown(self) -> Breakdown:
        return Breakdown(
            at=self._now,
            stored=self._all.stored,
            ages=[age.stored for age in self._ages],
            writers=_largest_parts(self._writers),
            vendors=_largest_parts(self._vendors),
            never_read=self._unread.stored if self._records_uses else None,
            largest=[one for *_, one in sorted(self._largest, key=lambda entry: -entry[0])],
        )


class _Sum:
    __slots__ = ("artifacts", "scoped_bytes", "size_bytes")

    def __init__(self) -> None:
        self.artifacts = self.size_bytes = self.scoped_bytes = 0

    def add(self, artifact: Seen) -> None:
        self.artifacts += 1
        self.size_bytes += artifact.size_bytes
        if artifact.scope is not None:
            self.scoped_bytes += artifact.size_bytes

    @property
    def stored(self) -> Stored:
        return Stored(
            size_bytes=self.size_bytes, artifacts=self.artifacts, scoped_bytes=self.scoped_bytes
        )


def _writer(writer: Actor | None) -> str | None:
    """Each job of CI has a key of its own, so the artifacts of a rule's jobs are one part."""
    if writer is None:
        return None
    return writer.rule_id or writer.credential_id


def _largest_parts(sums: Mapping[str | None, _Sum]) -> list[Part]:
    parts = [Part(name=name, stored=total.stored) for name, total in sums.items()]
    return sorted(parts, key=lambda part: -part.stored.size_bytes)[:MOST_PARTS]
