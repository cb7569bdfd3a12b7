"""Lookups and uploads of entries. A miss is remembered, and uploads run behind the build."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
import time
import uuid
from typing import NamedTuple

from larder_proxy.clients import Entry
from larder_proxy.spool import Body, Spool
from larder_proxy.upstream import Download, Upload, Upstream, fetched

REMEMBERED_SECONDS = 60
"""How long a miss is remembered. Some tools ask for the same entry hundreds of times."""

UPLOADERS = 8
EVENTS_AT_ONCE = 80
_MOST_REMEMBERED = 100_000


_COUNTING = threading.Lock()


class Counts:
    """What the tools got. Added up by several threads."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.stored = 0
        self.stored_bytes = 0
        self.refused = 0
        self.failed = 0

    def add(self, **counts: int) -> None:
        with _COUNTING:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)


class _Upload(NamedTuple):
    entry: Entry
    body: Body
    seconds: float | None


class Cache:
    """The entries of all tools, in one deployment."""

    def __init__(self, upstream: Upstream, spool: Spool) -> None:
        self._upstream, self._spool = upstream, spool
        self.counts = Counts()
        self._lock = threading.Lock()
        self._missed: dict[str, float] = {}
        self._queue: queue.Queue[_Upload | None] = queue.Queue()
        self._events: list[dict[str, object]] = []
        self._session = str(uuid.uuid4())
        self._threads = [
            threading.Thread(target=self._upload_each, daemon=True) for _ in range(UPLOADERS)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_read_only(self) -> bool:
        return self._upstream.is_read_only

    def find(self, entry: Entry) -> Download | None:
        """The entry, or None. Call `hit` or `miss` when the tool has its answer."""
        with self._lock:
            at = self._missed.get(entry.hash)
        if at is not None and time.monotonic() - at < REMEMBERED_SECONDS:
            return None
        return self._upstream.find(entry.hash)

    def whole(self, download: Download, entry: Entry) -> Body | None:
        """The body of a download, if it is whole and the right one."""
        body = fetched(download, self._spool)
        if body is None or entry.digest is None or _has_digest(body, entry.digest):
            return body
        body.close()
        return None

    def hit(self, entry: Entry) -> None:
        self.counts.add(hits=1)
        self._note("HIT", entry)

    def miss(self, entry: Entry) -> None:
        with self._lock:
            is_new = entry.hash not in self._missed
            if len(self._missed) > _MOST_REMEMBERED:
                self._missed.clear()
            self._missed[entry.hash] = time.monotonic()
        if is_new:
            self.counts.add(misses=1)
            self._note("MISS", entry)

    def store(self, entry: Entry, body: Body) -> bool:
        """Upload a body behind the build, and close it. False, without an upload, for other bytes than the entry's."""
        if entry.digest is not None and not _has_digest(body, entry.digest):
            body.close()
            return False
        with self._lock:
            missed_at = self._missed.pop(entry.hash, None)
        seconds = None
        if entry.client.times_tasks and missed_at is not None:
            seconds = time.monotonic() - missed_at
        self._queue.put(_Upload(entry, body, seconds))
        return True

    def _upload_each(self) -> None:
        for upload in iter(self._queue.get, None):
            try:
                entry, body = upload.entry, upload.body
                outcome = self._upstream.store(entry.hash, body, seconds=upload.seconds)
                if outcome is Upload.STORED:
                    self.counts.add(stored=1, stored_bytes=body.size)
                elif outcome is Upload.REFUSED:
                    self.counts.add(refused=1)
                else:
                    self.counts.add(failed=1)
            finally:
                upload.body.close()
                self._queue.task_done()

    @property
    def is_uploading(self) -> bool:
        return self._queue.unfinished_tasks > 0

    def finish(self, seconds: float) -> bool:
        """Wait for the uploads, and send the last events. False if time ran out."""
        ends = time.monotonic() + seconds
        while self.is_uploading and time.monotonic() < ends:
            time.sleep(0.02)
        is_done = not self.is_uploading
        if not is_done:
            self.counts.add(failed=self._queue.unfinished_tasks)
        for _ in self._threads:
            self._queue.put(None)
        self._send_events()
        return is_done

    def _note(self, what: str, entry: Entry) -> None:
        """Events as turbo sends them, so that usage has the hits of every tool."""
        event = {
            "sessionId": self._session,
            "source": "REMOTE",
            "event": what,
            "hash": entry.hash,
            "duration": 0,
        }
        with self._lock:
            self._events.append(event)
            is_full = len(self._events) == EVENTS_AT_ONCE
        if is_full:
            threading.Thread(target=self._send_events, daemon=True).start()

    def _send_events(self) -> None:
        with self._lock:
            events, self._events = self._events, []
        for at in range(0, len(events), EVENTS_AT_ONCE):
            content = json.dumps(events[at : at + EVENTS_AT_ONCE]).encode()
            self._upstream.post("/v8/artifacts/events", content)


def _has_digest(body: Body, digest: str) -> bool:
    found, file = hashlib.sha256(), body.open()
    for block in iter(lambda: file.read(262_144), b""):
        found.update(block)
    return found.hexdigest() == digest
