"""What is known of each entry, in one place for prefetches, lookups and uploads."""

from __future__ import annotations

import threading
import time
from collections import deque
from enum import Enum
from itertools import islice

from larder_proxy.spool import Body
from larder_proxy.transfers import Kept

ANSWERED_SECONDS = 60
"""How long a miss counts that was the answer to a tool. Some ask for the same entry hundreds of times."""

AHEAD_SECONDS = 0.5
"""The same from the question on, if it was learned before the tool asked. Another job can be storing the entry."""

ASKED_AGAIN = 100
"""The most artifacts that are asked for again at once."""

_FOR_EACH = 4
"""How many of them for each that turbo has just asked for. It asks for tasks that are ready in any order."""

_MOST = 100_000


class State(Enum):
    """`UNKNOWN` is also what was taken, stored, refused or dropped: Larder is asked again."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    EXPECTED = "expected"
    FETCHING = "fetching"
    HELD = "held"
    UPLOADING = "uploading"


class Upload:
    """A body on its way to Larder, and the headers that describe it."""

    def __init__(self, body: Body, headers: dict[str, str]) -> None:
        self.body, self.headers = body, headers


class _Entry:
    def __init__(self) -> None:
        self.state = State.UNKNOWN
        self.until = self.stored_at = 0.0
        """Until when `MISSING` counts, and when an upload of the entry began or ended."""
        self.missed_at: float | None = None
        """When the tool had this answer for the first time, and whether it had that of now."""
        self.is_answer = False
        self.held: Kept | None = None
        self.upload: Upload | None = None
        self.fetched: threading.Condition
        """Notified at the end of `FETCHING`."""


class Memory:
    """The states of all entries. `freed` is notified when `held_bytes` falls."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.freed = threading.Condition(self._lock)
        self.held_bytes = self.uploads = 0
        """The bytes that turbo has not asked for yet, and the number of entries that are uploading."""
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._ahead: dict[str, None] = {}
        """The artifacts that were missing before turbo asked for them, in the order of the list."""
        self._asked: deque[float] = deque()
        """When turbo asked for an artifact, in the last AHEAD_SECONDS."""

    def _of(self, key: tuple[str, str]) -> _Entry:
        found = self._entries.get(key)
        if found is None:
            if len(self._entries) >= _MOST:
                idle = (State.UNKNOWN, State.MISSING)
                self._entries = {
                    k: one for k, one in self._entries.items() if one.state not in idle
                }
            found = self._entries[key] = _Entry()
        return found

    # Misses -----------------------------------------------------------------------------------------

    def is_missing(self, key: tuple[str, str]) -> bool:
        with self._lock:
            found = self._entries.get(key)
            return (
                found is not None
                and found.state is State.MISSING
                and time.monotonic() < found.until
            )

    def miss(self, key: tuple[str, str], asked_at: float, *, is_answer: bool = True) -> bool:
        """Remember that an entry was not there when Larder was asked. Whether the tool gets it for the first time.

        It does not count if the entry was stored meanwhile. Nor is it remembered from each answer on: a tool that keeps
        asking would never learn that another computer has stored it.
        """
        now = time.monotonic()
        with self._lock:
            one = self._of(key)
            is_known = one.state is State.MISSING and now < one.until
            is_free = one.state in (State.UNKNOWN, State.MISSING, State.EXPECTED)
            if (
                is_free
                and one.stored_at < asked_at
                and not (is_known and one.is_answer >= is_answer)
            ):
                one.state, one.is_answer = State.MISSING, is_answer
                one.until = now + ANSWERED_SECONDS if is_answer else asked_at + AHEAD_SECONDS
                if not is_answer:
                    self._ahead[key[0]] = None
            is_first = is_answer and one.missed_at is None
            if is_first:
                one.missed_at = now
            return is_first

    # Prefetches -------------------------------------------------------------------------------------

    def expect(self, hashes: list[str]) -> list[str]:
        """Those of the artifacts that are worth a prefetch."""
        idle = (State.UNKNOWN, State.MISSING)
        with self._lock:
            found = [hash for hash in dict.fromkeys(hashes) if self._of((hash, "")).state in idle]
            for hash in found:
                self._of((hash, "")).state = State.EXPECTED
        return found

    def begin(self, hash: str, *, is_wanted: bool = True) -> bool:
        """Whether the caller fetches an artifact, which nobody has asked for or stored meanwhile."""
        with self._lock:
            one = self._of((hash, ""))
            if one.state is not State.EXPECTED:
                return False
            one.state = State.FETCHING if is_wanted else State.UNKNOWN
            # Of its own: hundreds of requests of turbo can wait, each for one artifact.
            one.fetched = threading.Condition(self._lock)
            return is_wanted

    def begin_again(self, hash: str) -> list[str]:
        """An artifact that was missing too long ago, and the next such ones. The caller asks for all of them at once.

        How many depends on how many turbo has asked for in the time that an answer counts. A slow build asks for each
        alone.
        """
        now = time.monotonic()
        with self._lock:
            self._asked.append(now)
            while self._asked[0] < now - AHEAD_SECONDS:
                self._asked.popleft()
            if len(self._asked) == 1 or not self._was_missing(hash, now):
                return []
            others = (one for one in self._ahead if one != hash and self._was_missing(one, now))
            most = min(len(self._asked) * _FOR_EACH, ASKED_AGAIN)
            found = [hash, *islice(others, most - 1)]
            for other in found:
                one = self._of((other, ""))
                one.state, one.fetched = State.FETCHING, threading.Condition(self._lock)
        return found

    def _was_missing(self, hash: str, now: float) -> bool:
        """Whether it was missing before turbo asked for it, longer ago than that counts."""
        found = self._entries.get((hash, ""))
        if hash not in self._ahead or found is None or found.state is not State.MISSING:
            return False
        return not found.is_answer and now >= found.until

    def hold(self, hash: str, found: Kept | None, missing_since: float | None = None) -> None:
        """End a fetch, with what was found, or the time when it was asked for and not there."""
        with self._lock:
            one = self._of((hash, ""))
            if one.state is State.FETCHING:
                one.state = State.UNKNOWN if found is None else State.HELD
                one.held, found = found, None
                self.held_bytes += one.held.size if one.held is not None else 0
                one.fetched.notify_all()
            if missing_since is not None:
                self.miss((hash, ""), missing_since, is_answer=False)
        if found is not None:
            found.close()

    def take(self, hash: str) -> Kept | None:
        """What was fetched. Waits for it if that has begun. None if the caller has to ask."""
        with self._lock:
            one = self._of((hash, ""))
            self._ahead.pop(hash, None)
            if one.state is State.EXPECTED:
                one.state = State.UNKNOWN
            while one.state is State.FETCHING:
                one.fetched.wait()
            return self._release(one) if one.state is State.HELD else None

    def _release(self, one: _Entry) -> Kept | None:
        held, one.held = one.held, None
        one.state = State.UNKNOWN
        if held is not None:
            self.held_bytes -= held.size
            self.freed.notify_all()
        return held

    def drop_held(self) -> None:
        """Drop what nobody has asked for yet."""
        with self._lock:
            left = [
                self._release(entry) for entry in self._entries.values() if entry.held is not None
            ]
        for held in left:
            if held is not None:
                held.close()

    # Uploads ----------------------------------------------------------------------------------------

    def missed_at(self, key: tuple[str, str]) -> float | None:
        """When the tool got a miss, since the last upload."""
        with self._lock:
            found = self._entries.get(key)
            return None if found is None else found.missed_at

    def upload(self, key: tuple[str, str], upload: Upload) -> bool:
        """Keep an upload, in place of one that is waiting. False if there was one."""
        with self._lock:
            one = self._of(key)
            held = self._release(one)
            former, one.upload = one.upload, upload
            is_fetching = one.state is State.FETCHING
            one.state, one.stored_at = State.UPLOADING, time.monotonic()
            self.uploads += former is None
            one.missed_at = None
            if is_fetching:
                one.fetched.notify_all()
        for old in (held, former.body if former is not None else None):
            if old is not None:
                old.close()
        return former is None

    def forget(self, key: tuple[str, str]) -> None:
        """Know nothing more of an entry, which another upload replaces."""
        with self._lock:
            one = self._of(key)
            one.stored_at = time.monotonic()
            if one.state is State.MISSING:
                one.state, one.missed_at = State.UNKNOWN, None
            held = self._release(one) if one.state is State.HELD else None
        if held is not None:
            held.close()

    def uploading(self, key: tuple[str, str]) -> Upload | None:
        """The upload of an entry. The caller closes its body."""
        with self._lock:
            found = self._entries.get(key)
            if found is None or found.upload is None:
                return None
            found.upload.body.share()
            return found.upload

    def uploaded(self, key: tuple[str, str], upload: Upload) -> bool:
        """Whether no newer upload of the entry waits."""
        with self._lock:
            one = self._of(key)
            if one.upload is not upload:
                return False
            one.upload, one.state, one.stored_at = None, State.UNKNOWN, time.monotonic()
            self.uploads -= 1
        upload.body.close()
        return True
