"""What a cache with scopes, protection, a quota and a retention does, one request after the other.

It has no stores, no calls and no concurrency. A size names an upload: every upload of a test has another one.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

SHARED = "shared"
TRUSTED = "main"
"""The writer of the shared scope. The own scope of any other writer has the writer's name."""

Reply = tuple[int, int]
"""The status and, for reads, the size."""

DAY = timedelta(days=1)
RETENTION = {True: timedelta(days=30), False: timedelta(days=7)}
"""Of the shared scope, and of an own one."""


@dataclass(frozen=True)
class Stored:
    size: int
    began: datetime
    used: datetime
    """The last recorded use. The upload is one."""


@dataclass(frozen=True)
class Offer:
    """A direct upload that was offered."""

    place: tuple[str, str]
    """The scope and the hash."""
    began: datetime
    size: int = 0
    """0 until the object arrives."""
    ended: bool = False
    """Whether it was published or refused."""


@dataclass
class Model:
    quota: int
    evicts: bool
    """Whether the least recently used artifacts make room for an upload that does not fit. If not, it is refused."""
    now: datetime
    stored: dict[tuple[str, str], Stored] = field(default_factory=dict)
    """By scope and hash, also what has expired or is hidden."""
    offers: dict[int, Offer] = field(default_factory=dict)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)
    """The offer that readers of a place know: the last one."""
    marked: set[tuple[str, str]] = field(default_factory=set)
    """Where readers of what is stored look for the newest offer, too."""
    most: int = 0
    """The most bytes that were stored since the last look at what was evicted."""
    is_protected: bool = False
    trusted_from: datetime | None = None
    counts_replaced: bool = False
    """Whether an upload must fit in addition to what it replaces."""

    def while_uploading(self) -> Iterator["Model"]:
        """An upload does not know what another one of its hash, which is counted, will have replaced."""
        yield self
        yield replace(deepcopy(self), counts_replaced=True)

    # What readers see.

    def is_shown(self, place: tuple[str, str]) -> bool:
        stored = self.stored.get(place)
        return stored is not None and not self.has_expired(place) and not self._is_hidden(place)

    def has_expired(self, place: tuple[str, str]) -> bool:
        return self.now >= self.stored[place].used + RETENTION[place[0] == SHARED]

    def _is_hidden(self, place: tuple[str, str]) -> bool:
        from_ = self.trusted_from
        return self.is_protected and place[0] == SHARED and from_ is not None and self.stored[place].began < from_

    def written(self, writer: str) -> str:
        """The scope that a writer writes."""
        return writer if self.is_protected and writer != TRUSTED else SHARED

    @property
    def total(self) -> int:
        return sum(stored.size for stored in self.stored.values())

    def evict(self, places: set[tuple[str, str]]) -> bool:
        """Remove these. False if it should not evict them: others were used less recently, or there was room."""
        kept = [stored.used for place, stored in self.stored.items() if place not in places]
        last = max(self.stored[place].used for place in places)
        if not self.evicts or self.most <= self.quota * 0.9 or last > min(kept, default=last):
            return False
        for place in places:
            del self.stored[place]
        self.marked -= places
        return True

    # Requests.

    def put(self, writer: str, hash: str, size: int) -> Reply:
        place = (self.written(writer), hash)
        if self.is_protected and self.is_shown((SHARED, hash)):
            return 202, 0
        if not self._fits(place, size):
            return 403, 0
        self._store(place, Stored(size, self.now, self.now))
        return 202, 0

    def _fits(self, place: tuple[str, str], size: int) -> bool:
        replaced = self.stored[place].size if place in self.stored and not self.counts_replaced else 0
        return self.evicts or self.total - replaced + size <= self.quota

    def _store(self, place: tuple[str, str], stored: Stored) -> None:
        # While it replaces another one, both are counted.
        self.most = max(self.most, self.total + stored.size)
        self.stored[place] = stored
        if place not in self.newest or self.offers[self.newest[place]].began <= stored.began:
            self.marked.discard(place)

    def read(self, reader: str, hash: str, how: str) -> Reply:
        places = dict.fromkeys([(SHARED, hash), (self.written(reader), hash)])
        seen = next((place for place in places if place in self.marked or self.is_shown(place)), None)
        is_hit = seen is not None and seen not in self.marked
        for place in places:
            if place in self.newest and not is_hit:
                self.publish(self.newest[place])
            if self.is_shown(place):
                if how != "query":
                    self._use(place)
                return 200, self.stored[place].size
        return 404, 0

    def _use(self, place: tuple[str, str]) -> None:
        stored = self.stored[place]
        if self.now - stored.used >= (DAY if self.evicts else RETENTION[place[0] == SHARED] * 2 / 3):
            self.stored[place] = replace(stored, used=self.now)

    def delete(self, scope: str, hash: str) -> Reply:
        place = (scope, hash)
        *_, is_stored = [place in self.stored for _ in self.deletion(place)]
        self.stored.pop(place, None)
        return 200, int(is_stored)

    def deletion(self, place: tuple[str, str]) -> Iterator[None]:
        """Delete step by step, up to the artifact itself. A process can end after each step."""
        if place in self.newest:
            self.publish(self.newest[place])
            yield
        for number, offer in self.offers.items():
            if offer.place == place:
                self.offers[number] = replace(offer, ended=True)
        yield
        self.newest.pop(place, None)
        self.marked.discard(place)
        yield

    def offer(self, writer: str, hash: str, number: int) -> Reply:
        place = (self.written(writer), hash)
        self.offers[number] = Offer(place, self.now)
        self.newest[place] = number
        if place in self.stored:
            self.marked.add(place)
        return 204, 0

    def arrive(self, number: int, size: int) -> Reply:
        """The client stores the object of an offer."""
        if not self.offers[number].size:
            self.offers[number] = replace(self.offers[number], size=size)
        return 0, 0

    def publish(self, number: int) -> Reply:
        """S3's event of the object arrives, or a reader finds it."""
        offer = self.offers[number]
        if offer.size and not offer.ended:
            self._end(number, offer)
        return 0, 0

    def _end(self, number: int, offer: Offer) -> None:
        self.offers[number] = replace(offer, ended=True)
        if self.newest.get(offer.place) == number:
            del self.newest[offer.place]
            self.marked.discard(offer.place)
        current = self.stored.get(offer.place)
        if current is not None and current.began > offer.began:
            return
        if self.is_protected and offer.place[0] == SHARED and self.is_shown(offer.place):
            return
        if self._fits(offer.place, offer.size):
            if offer.place in self.newest:
                self.marked.add(offer.place)
            self._store(offer.place, Stored(offer.size, offer.began, self.now))

    def protect(self, on: bool, keep: bool) -> Reply:
        if on and keep:
            self.trusted_from = None
        elif on and not self.is_protected:
            self.trusted_from = self.now + timedelta(seconds=2)
        self.is_protected = on
        return 200, 0

    def sweep(self) -> None:
        """What the hourly sweeps of two days do."""
        self.stored = {place: one for place, one in self.stored.items() if not self.has_expired(place)}
