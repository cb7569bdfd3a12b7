"""Artifacts that turbo is about to ask for, fetched many at a time: turbo itself waits for 10 to 20 at once."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from larder_proxy.memory import Memory
from larder_proxy.places import FIRST, NEAR, in_background
from larder_proxy.spool import NoRoom, Spool
from larder_proxy.transfers import Kept
from larder_proxy.upstream import Upstream

LARGEST = 8_000_000
"""The most bytes of an artifact that is fetched before turbo asks for it. Others share the path."""

HELD_BYTES = 200_000_000
"""The most bytes that turbo has not asked for yet."""

QUERIED_AT_ONCE = 100
"""Hashes of a query, as turbo sends them."""


class Prefetch:
    """Nothing is fetched before `expect`."""

    def __init__(self, upstream: Upstream, spool: Spool, memory: Memory) -> None:
        self._upstream, self._spool, self._memory = upstream, spool, memory
        self._freed = memory.freed
        self._work: deque[Callable[[], None]] = deque()
        self._unconfirmed: dict[str, None] = {}
        self._connected = self._threads = 0

    def expect(self, hashes: list[str]) -> None:
        """Fetch these artifacts, in this order, and ask which of them are not there."""
        new = self._memory.expect(hashes)
        with self._freed:
            for at in range(0, len(new), QUERIED_AT_ONCE):
                self._work.append(partial(self._query, new[at : at + QUERIED_AT_ONCE]))
            for hash in new:
                self._work.append(partial(self._fetch, hash))
            for _ in range(min(max(NEAR, self._upstream.places.most), len(new))):
                self._start()

    def expect_if_asked(self, hashes: list[str]) -> None:
        """The same, as soon as turbo asks for one of them. Else they are in turbo's own folder, or out of date."""
        with self._freed:
            self._unconfirmed = dict.fromkeys(hashes)
        self.prepare()

    def prepare(self) -> None:
        """Open the first connections, because turbo is about to ask for something."""
        self._connected += FIRST
        for _ in range(FIRST):
            in_background(self._upstream.connect)

    def take(self, hash: str) -> Kept | None:
        """What was fetched. Waits for it if that has begun. None if the caller has to ask."""
        confirmed: list[str] = []
        with self._freed:
            if hash in self._unconfirmed:
                confirmed, self._unconfirmed = [*self._unconfirmed], {}
        if confirmed:
            self.expect([one for one in confirmed if one != hash])
        self._ask_again(hash)
        return self._memory.take(hash)

    def close(self) -> None:
        with self._freed:
            self._work.clear()
        self._memory.drop_held()

    def _start(self) -> None:
        """Fetch with one more thread. The caller holds the lock."""
        self._threads += 1
        in_background(partial(self._run, self._threads))

    def _run(self, number: int) -> None:
        # Those that wait for a place wait for no handshake afterwards.
        if number > self._connected:
            self._upstream.connect()
        while True:
            with self._freed:
                while self._work and self._memory.held_bytes > HELD_BYTES:
                    self._freed.wait()
                if not self._work:
                    return
                work = self._work.popleft()
                if self._work and self._threads < self._upstream.places.most:
                    self._start()
            work()

    def _query(self, hashes: list[str]) -> None:
        asked_at = time.monotonic()
        for hash, size in self._sizes(hashes, is_urgent=False).items():
            if size is None:
                self._memory.miss((hash, ""), asked_at, is_answer=False)
            elif size > LARGEST:
                self._memory.begin(hash, is_wanted=False)

    def _ask_again(self, hash: str) -> None:
        """Ask with one request for what was missing a moment ago, and what turbo asks for next."""
        hashes, asked_at = self._memory.begin_again(hash), time.monotonic()
        if not hashes:
            return
        sizes: dict[str, int | None] = {}
        try:
            sizes = self._sizes(hashes)
        finally:
            for one in hashes:
                is_missing = one in sizes and sizes[one] is None
                self._memory.hold(one, None, asked_at if is_missing else None)

    def _sizes(self, hashes: list[str], *, is_urgent: bool = True) -> dict[str, int | None]:
        """The bytes of each artifact, None for one that is not there. Empty without an answer."""
        content = json.dumps({"hashes": hashes}).encode()
        answer = self._upstream.pass_on("POST", "/v8/artifacts", content, is_urgent=is_urgent)
        if answer is None or answer.status != 200:
            return {}
        try:
            known = json.loads(answer.content)
            return {hash: known[hash] and int(known[hash]["size"]) for hash in hashes}
        except (ValueError, KeyError, TypeError):
            return {}

    def _fetch(self, hash: str) -> None:
        if not self._memory.begin(hash):
            return
        asked_at = time.monotonic()
        found: Kept | None = None
        missing_since: float | None = None
        try:
            download = self._upstream.find(hash, is_urgent=False)
            if download is not None and download.size > LARGEST:
                # A request that waits for it asks again.
                download.close()
            else:
                found = None if download is None else download.kept(self._spool)
                # If it was cut, turbo may have waited for it already.
                missing_since = asked_at if found is None else None
        except NoRoom as full:
            full.close()
        finally:
            self._memory.hold(hash, found, missing_since)
