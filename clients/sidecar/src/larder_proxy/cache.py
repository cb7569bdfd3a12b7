"""Lookups and uploads of entries. A miss is remembered, and uploads run behind the build."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping

from larder_proxy import turbo
from larder_proxy.clients import Entry
from larder_proxy.memory import Memory, Upload
from larder_proxy.messages import BEGINS_GZIP, BLOCK, GZIP
from larder_proxy.places import in_background
from larder_proxy.prefetch import Prefetch
from larder_proxy.spool import Body, NoRoom, Passing, Spool
from larder_proxy.transfers import Answer, Download, Kept
from larder_proxy.turbo import QUERY, STATUS
from larder_proxy.upstream import Upstream

UPLOADERS = 8
EVENTS = "/v8/artifacts/events"
EVENTS_AT_ONCE = 80
EVENT_SECONDS = 5.0
"""How long the last figures may take, also if nobody waits for uploads."""
_DURATION = "x-artifact-duration"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The SHA-256 of nothing, which Larder does not store."""

_COUNTING = threading.Lock()


class Counts:
    """What the tools got. Added up by several threads. `not_stored` has uploads by the reason."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.stored = 0
        self.stored_bytes = 0
        self.not_stored: Counter[str] = Counter()

    def add(self, **counts: int) -> None:
        with _COUNTING:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def drop(self, reason: str, count: int = 1) -> None:
        with _COUNTING:
            self.not_stored[reason] += count


class Cache:
    """The entries of all tools, in one deployment."""

    def __init__(self, upstream: Upstream, spool: Spool) -> None:
        self._upstream, self._spool = upstream, spool
        self.counts = Counts()
        self.memory = Memory()
        # Uploads would wait for what turbo may never ask for.
        spool.on_full = self.memory.drop_held
        self.prefetch = Prefetch(upstream, spool, self.memory)
        self.asked: list[str] = []
        """The artifacts of turbo that it has asked for, in its order."""
        self.saved_ms: dict[str, int] = {}
        """How long the tasks of hits took when they were built, by hash. Without those of unknown times."""
        self._lock = threading.Lock()
        self._queue: deque[Entry] = deque()
        self._events: list[dict[str, object]] = []
        self._sending: list[threading.Thread] = []
        self._session = ""
        self._status: tuple[threading.Thread, list[Answer | None]] | None = None
        self._is_status_asked = False
        self._uploaders = 0

    @property
    def refusal(self) -> str:
        """Why nothing is stored, `""` if it is."""
        return self._upstream.refusal

    @property
    def off(self) -> str:
        return self._upstream.off

    @property
    def status(self) -> dict[str, object]:
        """What it has done, has said in the last minute, and why it asks Larder for nothing now, `""` if it does."""
        return {**vars(self.counts), "off": self.off, "said": self._upstream.said}

    def find(self, entry: Entry) -> Download | Kept | None:
        """The entry, or None. Call `hit` or `miss` when the tool has its answer."""
        is_own = entry.client.name == "turbo" and not entry.query
        if is_own:
            self.asked.append(entry.hash)
        if entry.digest == EMPTY:
            return Kept(Body(), {})
        upload = self.memory.uploading(entry.key)
        if upload is not None:
            return Kept(upload.body, upload.headers)
        found = self.prefetch.take(entry.hash) if is_own else None
        if found is not None or self.memory.is_missing(entry.key):
            return found
        return self._upstream.find(entry.hash, entry.query)

    def size(self, entry: Entry) -> int | None:
        """The size of an entry in bytes, None if it is not there. Counts as no lookup."""
        upload = self.memory.uploading(entry.key)
        if upload is not None:
            upload.body.close()
            return upload.body.size
        if entry.digest == EMPTY:
            return 0
        if self.memory.is_missing(entry.key):
            return None
        return self._upstream.size(entry.hash, entry.query)

    def whole(self, found: Download | Kept, entry: Entry) -> Kept | None:
        """A hit, if its body is whole and the right one. Raises NoRoom."""
        kept = found.kept(self._spool) if isinstance(found, Download) else found
        if kept is None or _is_intact(kept.body, entry):
            return kept
        kept.close()
        self._upstream.tell_damaged()
        return None

    def hit(self, entry: Entry, headers: Mapping[str, str]) -> None:
        """Count a hit. `headers` are those of its download."""
        if not entry.is_lookup:
            return
        self.counts.add(hits=1)
        is_known = entry.client.times_tasks or entry.client.name == "turbo"
        ms = _duration(headers) if is_known else 0
        if ms:
            self.saved_ms[entry.hash] = ms
        self._note("HIT", entry, ms)

    def miss(self, entry: Entry, asked_at: float) -> None:
        """Count a miss. `asked_at` is the time (time.monotonic) of the lookup."""
        if self.memory.miss(entry.key, asked_at):
            self.count_miss(entry)

    def count_miss(self, entry: Entry) -> None:
        """Count a miss that is not remembered, such as a download that was cut while the tool read it."""
        if entry.is_lookup:
            self.counts.add(misses=1)
            self._note("MISS", entry)

    def store(self, entry: Entry, body: Body, headers: dict[str, str]) -> bool:
        """Upload a body behind the build, and close it. False, without an upload, for other bytes than the entry's.

        `headers` are those with which the tool describes it.
        """
        is_right = entry.digest is None or _has_digest(body, entry.digest)
        if not is_right or not body.size:
            body.close()
            if is_right and entry.digest is None:
                self.counts.drop("empty")
            return is_right
        missed_at = self.memory.missed_at(entry.key)
        if entry.client.times_tasks and missed_at is not None:
            ms = round((time.monotonic() - missed_at) * 1_000)
            headers = {_DURATION: str(ms), **headers}
        if self.memory.upload(entry.key, Upload(body, headers)):
            with self._lock:
                self._queue.append(entry)
                is_more = self._uploaders < UPLOADERS
                self._uploaders += is_more
            if is_more and in_background(self._upload_each) is None:
                # The tool waits.
                self._upload_each()
        return True

    def store_through(
        self, entry: Entry, full: NoRoom, size: int | None, headers: dict[str, str]
    ) -> bool:
        """Upload a body that has no room while the tool waits. False if that is not possible, or fails."""
        self._upstream.say_once("room", f"{full}: the build waits for uploads")
        older = self.memory.uploading(entry.key)
        if older is not None:
            # It would replace this one later.
            older.body.close()
        if size is None or entry.digest is not None or older is not None:
            self.counts.drop(str(full))
            return False
        self.memory.forget(entry.key)
        reason = self._upstream.store(entry.hash, Passing(full.blocks, size), headers, entry.query)
        self.memory.forget(entry.key)
        self._count(reason, size)
        return not reason

    def _count(self, reason: str, size: int) -> None:
        if reason:
            self.counts.drop(reason)
        else:
            self.counts.add(stored=1, stored_bytes=size)

    def _upload_each(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._uploaders -= 1
                    return
                entry = self._queue.popleft()
            self._upload(entry)

    def _upload(self, entry: Entry) -> None:
        """Upload an entry, and what replaces it meanwhile."""
        upload = self.memory.uploading(entry.key)
        while upload is not None:
            try:
                reason = self._upstream.store(entry.hash, upload.body, upload.headers, entry.query)
            except OSError as error:
                # Of the spool.
                reason = error.strerror or "no room"
            self._count(reason, upload.body.size)
            upload.body.close()
            is_over = self.memory.uploaded(entry.key, upload)
            upload = None if is_over else self.memory.uploading(entry.key)

    @property
    def is_uploading(self) -> bool:
        return self.memory.uploads > 0

    def finish(self, seconds: float) -> bool:
        """Wait for the uploads, and send the last events. False if time ran out."""
        ends = time.monotonic() + seconds
        self.prefetch.close()
        while self.is_uploading and time.monotonic() < ends:
            time.sleep(0.02)
        is_done = not self.is_uploading
        if not is_done:
            self.counts.drop("no time left", self.memory.uploads)
        self._send_events()
        with self._lock:
            sending = list(self._sending)
        for thread in sending:
            thread.join(max(EVENT_SECONDS, ends - time.monotonic()))
        return is_done

    def ask_status(self) -> None:
        """Ask for the status of the cache before turbo does: turbo asks for no artifact until it has it."""
        if self._is_status_asked:
            return
        answers: list[Answer | None] = []
        thread = in_background(lambda: answers.append(self._upstream.pass_on("GET", STATUS)))
        if thread is not None:
            self._status = thread, answers

    def pass_on(self, method: str, path: str, content: bytes | None, query: str) -> Answer | None:
        """Larder's own answer to a request of turbo. None without one."""
        asked = None
        if path == STATUS and not query:
            with self._lock:
                asked, self._status = self._status, None
                self._is_status_asked = True
        if asked is None:
            answer = self._upstream.pass_on(method, path, content, query=query)
            if path == QUERY and content is not None:
                return self._with_uploads(answer or turbo.without_larder(path, content), query)
            return answer
        thread, answers = asked
        thread.join()
        return answers[0] if answers else None

    def _with_uploads(self, answer: Answer, query: str) -> Answer:
        """The answer to a query of turbo, also with artifacts that are uploading."""
        if answer.status != 200 or not self.is_uploading:
            return answer
        try:
            found = json.loads(answer.content)
            for hash in [hash for hash, one in found.items() if one is None]:
                upload = self.memory.uploading((hash, query))
                if upload is not None:
                    ms = _duration(upload.headers)
                    found[hash] = {"size": upload.body.size, "taskDurationMs": ms}
                    upload.body.close()
        except (ValueError, AttributeError):
            return answer
        return Answer(200, json.dumps(found).encode())

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
        thread = in_background(work)
        if thread is None:
            work()
            return
        with self._lock:
            self._sending.append(thread)

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
    if not next(body.blocks(), b"").startswith(BEGINS_GZIP):
        return True
    stream = zlib.decompressobj(GZIP)
    try:
        for block in body.blocks():
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

    found = hashlib.sha256()
    for block in body.blocks():
        found.update(block)
    return found.hexdigest() == digest
