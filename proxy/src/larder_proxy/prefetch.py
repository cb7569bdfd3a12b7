"""Artifacts that turbo is about to ask for, fetched many at a time: turbo itself waits for 10 to 20 at once."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from functools import partial
from typing import Callable

from larder_proxy.places import FIRST, NEAR
from larder_proxy.spool import IN_MEMORY, Spool
from larder_proxy.transfers import Download, fetched
from larder_proxy.upstream import Upstream

LARGEST = 8_000_000
"""The most bytes of an artifact that is fetched before turbo asks for it. Others share the path."""

HELD_BYTES, HELD_FILES = 24_000_000, 100
"""The most bytes in memory, and the most files, that turbo has not asked for yet."""

QUERIED_AT_ONCE = 100
"""Hashes of a query, as turbo sends them."""

_KNOWN_SECONDS = 60


class _Fetch:
    """`is_begun` until `done`, and `is_off` if turbo asked first, or it is too large."""

    def __init__(self, hash: str) -> None:
        self.hash = hash
        self.is_begun = self.is_off = False
        self.done = threading.Event()
        self.found: Download | None = None


class Prefetch:
    """Nothing is fetched before `expect`."""

    def __init__(self, upstream: Upstream, spool: Spool) -> None:
        self._upstream, self._spool = upstream, spool
        self._changed = threading.Condition()
        self._fetches: dict[str, _Fetch] = {}
        self._work: deque[Callable[[], None]] = deque()
        self._missing: dict[str, float] = {}
        self._unconfirmed: dict[str, None] = {}
        self._connected = self._threads = 0
        self._bytes = self._files = 0
        self._is_closed = False

    def expect(self, hashes: list[str]) -> None:
        """Fetch these artifacts, in this order, and ask which of them are not there."""
        with self._changed:
            new = [hash for hash in dict.fromkeys(hashes) if hash not in self._fetches]
            self._fetches.update((hash, _Fetch(hash)) for hash in new)
            for at in range(0, len(new), QUERIED_AT_ONCE):
                self._work.append(partial(self._query, new[at : at + QUERIED_AT_ONCE]))
            for hash in new:
                self._work.append(partial(self._fetch, self._fetches[hash]))
            for _ in range(min(max(NEAR, self._upstream.places.most), len(new))):
                self._start()

    def expect_if_asked(self, hashes: list[str]) -> None:
        """The same, as soon as turbo asks for one of them. Else they are in turbo's own folder, or out of date."""
        with self._changed:
            self._unconfirmed = dict.fromkeys(hashes)
        self.prepare()

    def prepare(self) -> None:
        """Open the first connections, because turbo is about to ask for something."""
        self._connected += FIRST
        for _ in range(FIRST):
            threading.Thread(target=self._upstream.connect, daemon=True).start()

    def take(self, hash: str) -> Download | None:
        """What was fetched. Waits for it if that has begun. None if the caller has to ask."""
        with self._changed:
            confirmed, fetch = [], self._fetches.pop(hash, None)
            if fetch is None and hash in self._unconfirmed:
                confirmed, self._unconfirmed = [*self._unconfirmed], {}
            if fetch is not None:
                fetch.is_off = not fetch.is_begun
        if confirmed:
            self.expect([one for one in confirmed if one != hash])
        if fetch is None or fetch.is_off:
            return None
        fetch.done.wait()
        if fetch.found is not None:
            self._hold(fetch.found, -1)
        return fetch.found

    def lacks(self, hash: str) -> bool:
        """Whether it was not there a moment ago."""
        with self._changed:
            at = self._missing.get(hash)
        return at is not None and time.monotonic() - at < _KNOWN_SECONDS

    def stored(self, hash: str) -> None:
        with self._changed:
            self._missing.pop(hash, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._work.clear()
            self._changed.notify_all()
            left = [one.found for one in self._fetches.values() if one.found is not None]
        for download in left:
            download.close()

    def _start(self) -> None:
        """Fetch with one more thread. The caller holds the lock."""
        self._threads += 1
        threading.Thread(target=self._run, args=(self._threads,), daemon=True).start()

    def _run(self, number: int) -> None:
        # Those that wait for a place wait for no handshake afterwards.
        if number > self._connected:
            self._upstream.connect()
        while True:
            with self._changed:
                while self._work and (self._bytes > HELD_BYTES or self._files >= HELD_FILES):
                    self._changed.wait()
                if not self._work:
                    return
                work = self._work.popleft()
                if self._work and self._threads < self._upstream.places.most:
                    self._start()
            work()

    def _query(self, hashes: list[str]) -> None:
        content = json.dumps({"hashes": hashes}).encode()
        answer = self._upstream.pass_on("POST", "/v8/artifacts", content, is_urgent=False)
        if answer is None or answer.status != 200:
            return
        try:
            known = json.loads(answer.content)
            sizes = {hash: known[hash] and int(known[hash]["size"]) for hash in hashes}
        except (ValueError, KeyError, TypeError):
            return
        now = time.monotonic()
        with self._changed:
            for hash, size in sizes.items():
                if size is None:
                    self._missing[hash] = now
                fetch = self._fetches.get(hash)
                if fetch is not None and not fetch.is_begun and (size is None or size > LARGEST):
                    fetch.is_off = True

    def _fetch(self, fetch: _Fetch) -> None:
        with self._changed:
            if fetch.is_off:
                return
            fetch.is_begun = True
        try:
            found = self._whole(fetch)
            with self._changed:
                # `close` closes what is found by then.
                if not self._is_closed:
                    fetch.found, found = found, None
            if found is not None:
                found.close()
            elif fetch.found is not None:
                self._hold(fetch.found, 1)
        finally:
            fetch.done.set()

    def _whole(self, fetch: _Fetch) -> Download | None:
        download = self._upstream.find(fetch.hash, is_urgent=False)
        if download is not None and download.size > LARGEST:
            # A request that waits for it asks again.
            download.close()
            return None
        if download is not None:
            download.body = fetched(download, self._spool)
        if download is None or download.body is None:
            # Not there, or cut. turbo may have waited for it already.
            with self._changed:
                self._missing[fetch.hash] = time.monotonic()
            return None
        return download

    def _hold(self, download: Download, sign: int) -> None:
        with self._changed:
            if download.size <= IN_MEMORY:
                self._bytes += sign * download.size
            else:
                self._files += sign
            self._changed.notify_all()
