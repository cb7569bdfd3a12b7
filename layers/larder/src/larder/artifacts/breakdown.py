"""What takes the space of an owner: bytes and artifacts by age, writer, CI and origin, and the largest artifacts.

The daily check of the totals reads every artifact, and adds each to a `Collector`.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from heapq import heappush, heappushpop
from typing import Any

from larder.actor import Actor
from larder.artifacts.models import Totals
from larder.artifacts.records import AGES, MOST_PARTS, Breakdown, Origin, Part, Seen
from larder.artifacts.repository import checks
from larder.clock import EPOCH
from larder.usage.uploads import Stored
from larder.usage.vendors import ci_vendor

Origins = Callable[[Iterable[Seen]], Iterable[Origin]]
"""The origin of each of some artifacts, in their order."""

MOST_NAMES = 500
"""The most repositories, branches, packages and tasks that are added up by name. Later ones are `OTHERS`."""

OTHERS = "…"

_Entry = tuple[int, int, dict[str, Any]]
"""A size, a number, and the item of an artifact."""


def read_breakdown(owner: str) -> Breakdown | None:
    """What takes the space, as the last complete check of the totals found it. None if there was none."""
    return checks.read_breakdown(owner)


def sum_index(owner: str) -> "Collector":
    """Add up the owner's artifacts, as they are in the index. For the operator, never on a request."""
    collector = Collector(EPOCH)
    for items, _ in checks.index_pages(owner, consistent=True):
        collector.add(items)
    return collector


class Collector:
    """Adds up artifacts, one page after another.

    `unlisted` is how many of them are not in the index of last uses, `undated` how many are not in that of uploads.
    """

    def __init__(self, now: datetime, origins: Origins | None = None) -> None:
        self._now = now
        self._origins = origins or (lambda artifacts: (Origin() for _ in artifacts))
        self._limits = [now - timedelta(days=days) for days in AGES]
        self._all = _Sum()
        self._unread = _Sum()
        self._ages = [_Sum() for _ in range(len(AGES) + 1)]
        self._writers: dict[str | None, _Sum] = defaultdict(_Sum)
        self._vendors: dict[str | None, _Sum] = defaultdict(_Sum)
        self._scopes: dict[str | None, _Sum] = defaultdict(_Sum)
        self._named: list[dict[str | None, _Sum]] = [defaultdict(_Sum) for _ in Origin._fields]
        self._largest: list[_Entry] = []
        self.unlisted = self.undated = 0

    def add(self, items: Iterable[dict[str, Any]]) -> None:
        """Add what `checks.index_pages` read."""
        items = list(items)
        seen = [checks.seen(item) for item in items]
        for item, artifact, origin in zip(items, seen, self._origins(seen), strict=True):
            age = sum(artifact.created_at <= limit for limit in self._limits)
            sums = [self._all, self._ages[age], self._writers[_writer(artifact.writer)]]
            sums += [self._vendors[ci_vendor(artifact.ci)], self._scopes[artifact.scope]]
            if artifact.is_read is False:
                sums.append(self._unread)
            for parts, name in zip(self._named, origin, strict=True):
                sums.append(parts[name if name in parts or len(parts) < MOST_NAMES else OTHERS])
            for each in sums:
                each.add(artifact)
            self.unlisted += artifact.is_read is None
            self.undated += "uploaded_at" not in item
            # The number keeps artifacts of the same size from being compared.
            entry = (artifact.size_bytes, self._all.artifacts, item)
            if len(self._largest) < MOST_PARTS:
                heappush(self._largest, entry)
            else:
                heappushpop(self._largest, entry)

    @property
    def totals(self) -> Totals:
        stored = self._all.stored
        return Totals(
            size_bytes=stored.size_bytes,
            artifacts=stored.artifacts,
            scoped_bytes=stored.scoped_bytes,
        )

    @property
    def scopes(self) -> dict[str, tuple[int, int]]:
        """The bytes and the number of artifacts in each own scope."""
        return {
            scope: (total.size_bytes, total.artifacts)
            for scope, total in self._scopes.items()
            if scope is not None
        }

    def breakdown(self) -> Breakdown:
        records_uses = self.unlisted < self._all.artifacts
        largest = sorted(self._largest, key=lambda entry: -entry[0])
        return Breakdown(
            at=self._now,
            stored=self._all.stored,
            ages=[age.stored for age in self._ages],
            writers=_largest_parts(self._writers),
            vendors=_largest_parts(self._vendors),
            origins={
                field: _largest_parts(parts)
                for field, parts in zip(Origin._fields, self._named, strict=True)
            },
            never_read=self._unread.stored if records_uses else None,
            largest=[checks.seen(item) for *_, item in largest],
        )

    def packed(self) -> str:
        """What it has added up, to continue in another call (`unpack`): text that takes part of an invocation."""
        sums = [self._all, self._unread, *self._ages]
        named = [self._writers, self._vendors, self._scopes, *self._named]
        state = [
            [each.figures for each in sums],
            [[(name, total.figures) for name, total in parts.items()] for parts in named],
            self._largest,
            [self.unlisted, self.undated],
        ]
        return b64encode(zlib.compress(json.dumps(state).encode())).decode()

    def unpack(self, packed: str) -> None:
        figures, named, largest, counts = json.loads(zlib.decompress(b64decode(packed)))
        self._all, self._unread, *self._ages = (_Sum(*each) for each in figures)
        sums = (self._writers, self._vendors, self._scopes, *self._named)
        # A job of the version before, during an upgrade, has none of the last ones.
        for parts, pairs in zip(sums, named, strict=False):
            parts.update({name: _Sum(*each) for name, each in pairs})
        self._largest = [(size, number, item) for size, number, item in largest]
        self.unlisted, self.undated = counts


class _Sum:
    __slots__ = ("artifacts", "scoped_bytes", "size_bytes")

    def __init__(self, size_bytes: int = 0, artifacts: int = 0, scoped_bytes: int = 0) -> None:
        self.size_bytes = size_bytes
        self.artifacts = artifacts
        self.scoped_bytes = scoped_bytes

    def add(self, artifact: Seen) -> None:
        self.artifacts += 1
        self.size_bytes += artifact.size_bytes
        if artifact.scope is not None:
            self.scoped_bytes += artifact.size_bytes

    @property
    def figures(self) -> tuple[int, int, int]:
        return self.size_bytes, self.artifacts, self.scoped_bytes

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
