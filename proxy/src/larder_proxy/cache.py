"""Lookups and uploads of entries. A miss is remembered, and uploads run behind the build."""

from __future__ import annotations

import json
import queue
import threading
import time
import zlib
from collections.abc import Mapping
from typing import Callable, NamedTuple

from larder_proxy.clients import Entry
from larder_proxy.messages import BEGINS_GZIP, BLOCK
from larder_proxy.prefetch import Prefetch
from larder_proxy.spool import Body, Spool
from larder_proxy.transfers import Answer, Download, Upload, fetched
from larder_proxy.turbo import STATUS
from larder_proxy.upstream import Upstream

REMEMBERED_SECONDS = 60
"""How long a miss is remembered. Some tools ask for the same entry hundreds of times."""

UPLOADERS = 8
EVENTS = "/v8/artifacts/events"
EVENTS_AT_ONCE = 80
EVENT_SECONDS = 5.0
"""How long the last figures may take, also if nobody waits for uploads."""
_MOST_REMEMBERED = 100_000
_DURATION = "x-artifact-duration"
GZIP = zlib.MAX_WBITS | 16
"""zlib's number for the format."""


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
    headers: dict[str, str]


class Cache:
    """The entries of all tools, in one deployment."""

    def __init__(self, upstream: Upstream, spool: Spool) -> None:
        self._upstream, self._spool = upstream, spool
        self.counts = Counts()
        self.prefetch = Prefetch(upstream, spool)
        self.asked: list[str] = []
        """The artifacts of turbo that it has asked for, in its order."""
        self.saved_ms: dict[str, int] = {}
        """How long the tasks of hits took when they were built, by hash. Without those of unknown times."""
        self._lock = threading.Lock()
        self._missed: dict[tuple[str, str], float] = {}
        self._queue: queue.Queue[_Upload | None] = queue.Queue()
        self._events: list[dict[str, object]] = []
        self._sending: list[threading.Thread] = []
        self._session = ""
        self._status: tuple[threading.Thread, list[Answer | None]] | None = None
        self._uploaders = 0

    @property
    def is_read_only(self) -> bool:
        return self._upstream.is_read_only

    def find(self, entry: Entry) -> Download | None:
        """The entry, or None. Call `hit` or `miss` when the tool has its answer."""
        if self._is_missed(entry):
            return None
        if entry.client.name == "turbo" and not entry.query:
            self.asked.append(entry.hash)
            download = self.prefetch.take(entry.hash)
            if download is not None or self.prefetch.lacks(entry.hash):
                return download
        return self._upstream.find(entry.hash, entry.query)

    def size(self, entry: Entry) -> int | None:
        """The size of an entry in bytes, None if it is not there. Counts as no lookup."""
        return None if self._is_missed(entry) else self._upstream.size(entry.hash, entry.query)

    def _is_missed(self, entry: Entry) -> bool:
        with self._lock:
            at = self._missed.get((entry.hash, entry.query))
        return at is not None and time.monotonic() - at < REMEMBERED_SECONDS

    def whole(self, download: Download, entry: Entry) -> Body | None:
        """The body of a download, if it is whole and the right one."""
        body = fetched(download, self._spool)
        if body is None or _is_intact(body, entry):
            return body
        body.close()
        self._upstream.tell_damaged()
        return None

    def hit(self, entry: Entry, headers: Mapping[str, str]) -> None:
        """Count a hit. `headers` are those of its download."""
        if not entry.is_lookup:
            return
        self.counts.add(hits=1)
        ms = _duration(headers) if entry.client.times_tasks else 0
        if ms:
            self.saved_ms[entry.hash] = ms
        self._note("HIT", entry, ms)

    def miss(self, entry: Entry) -> None:
        with self._lock:
            key = (entry.hash, entry.query)
            is_new = key not in self._missed
            if len(self._missed) > _MOST_REMEMBERED:
                self._missed.clear()
            now = time.monotonic()
            # Not from each answer on: a tool that keeps asking would never learn that another computer has stored it.
            if now - self._missed.get(key, -REMEMBERED_SECONDS) >= REMEMBERED_SECONDS:
                self._missed[key] = now
        if is_new and entry.is_lookup:
            self.counts.add(misses=1)
            self._note("MISS", entry)

    def store(self, entry: Entry, body: Body, headers: dict[str, str]) -> bool:
        """Upload a body behind the build, and close it. False, without an upload, for other bytes than the entry's.

        `headers` are those with which the tool describes it.
        """
        if entry.digest is not None and not _has_digest(body, entry.digest):
            body.close()
            return False
        with self._lock:
            missed_at = self._missed.pop((entry.hash, entry.query), None)
        self.prefetch.stored(entry.hash)
        if entry.client.times_tasks and missed_at is not None:
            ms = round((time.monotonic() - missed_at) * 1_000)
            headers = {_DURATION: str(ms), **headers}
        self._queue.put(_Upload(entry, body, headers))
        with self._lock:
            is_more = self._uploaders < UPLOADERS
            self._uploaders += is_more
        if is_more:
            threading.Thread(target=self._upload_each, daemon=True).start()
        return True

    def _upload_each(self) -> None:
        for upload in iter(self._queue.get, None):
            try:
                entry, body = upload.entry, upload.body
                outcome = self._upstream.store(entry.hash, body, upload.headers, entry.query)
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
        self.prefetch.close()
        while self.is_uploading and time.monotonic() < ends:
            time.sleep(0.02)
        is_done = not self.is_uploading
        if not is_done:
            self.counts.add(failed=self._queue.unfinished_tasks)
        for _ in range(self._uploaders):
            self._queue.put(None)
        self._send_events()
        with self._lock:
            sending = list(self._sending)
        for thread in sending:
            thread.join(max(EVENT_SECONDS, ends - time.monotonic()))
        return is_done

    def ask_status(self) -> None:
        """Ask for the status of the cache before turbo does: turbo asks for no artifact until it has it."""
        answers: list[Answer | None] = []
        thread = threading.Thread(
            target=lambda: answers.append(self._upstream.pass_on("GET", STATUS)), daemon=True
        )
        self._status = thread, answers
        thread.start()

    def pass_on(self, method: str, path: str, content: bytes | None, query: str) -> Answer | None:
        """Larder's own answer to a request of turbo. None without one."""
        asked = None
        if path == STATUS and not query:
            with self._lock:
                asked, self._status = self._status, None
        if asked is None:
            return self._upstream.pass_on(method, path, content, query=query)
        thread, answers = asked
        thread.join()
        return answers[0] if answers else None

    def forward_events(self, content: bytes, headers: dict[str, str], query: str) -> None:
        """Send what turbo counts, behind the build."""

        self.post_behind(EVENTS, content, headers, query)

    def post_behind(
        self, path: str, content: bytes, headers: dict[str, str] | None = None, query: str = ""
    ) -> None:
        """Send JSON behind the build. `finish` waits for it."""

        def send() -> None:
            self._upstream.pass_on("POST", path, content, headers=headers, query=query)

        self._behind(send)

    def _behind(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        with self._lock:
            self._sending.append(thread)
        thread.start()

    def _note(self, what: str, entry: Entry, ms: int = 0) -> None:
        """Events as turbo sends them, so that usage has the hits of every tool and the time that they saved."""
        if entry.client.name == "turbo":
            return
        if not self._session:
            # turbo does not need it, and the start takes as long as its imports.
            import uuid

            self._session = str(uuid.uuid4())
        event = {
            "sessionId": self._session,
            "source": "REMOTE",
            "event": what,
            "hash": entry.hash,
            "duration": ms,
        }
        with self._lock:
            self._events.append(event)
            is_full = len(self._events) == EVENTS_AT_ONCE
        if is_full:
            self._behind(self._send_events)

    def _send_events(self) -> None:
        with self._lock:
            events, self._events = self._events, []
        for at in range(0, len(events), EVENTS_AT_ONCE):
            content = json.dumps(events[at : at + EVENTS_AT_ONCE]).encode()
            self._upstream.pass_on("POST", EVENTS, content)


def _duration(headers: Mapping[str, str]) -> int:
    text = headers.get(_DURATION, "")
    return int(text) if text.isdigit() else 0


def _is_intact(body: Body, entry: Entry) -> bool:
    if entry.digest is not None:
        return _has_digest(body, entry.digest)
    return not entry.client.checks_gzip or _is_gzip_intact(body)


def _is_gzip_intact(body: Body) -> bool:
    """Whether the bytes have the checksum of gzip. True for another format, such as of a later version of a tool."""
    if body.open().read(len(BEGINS_GZIP)) != BEGINS_GZIP:
        return True
    file, stream = body.open(), zlib.decompressobj(GZIP)
    try:
        for block in iter(lambda: file.read(BLOCK), b""):
            left = block
            while left and not stream.eof:
                # Some bytes of gzip can become a thousand times as many.
                stream.decompress(left, BLOCK)
                left = stream.unconsumed_tail
    except zlib.error:
        return False
    return stream.eof


def _has_digest(body: Body, digest: str) -> bool:
    # Loads OpenSSL, for which the start of a build would wait.
    import hashlib

    found, file = hashlib.sha256(), body.open()
    for block in iter(lambda: file.read(BLOCK), b""):
        found.update(block)
    return found.hexdigest() == digest
