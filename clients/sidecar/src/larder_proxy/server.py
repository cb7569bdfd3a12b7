"""The listener on loopback. Only processes that know its token get more than a refusal."""

from __future__ import annotations

import binascii
import io
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial

from larder_proxy import turbo
from larder_proxy.cache import EVENTS, Cache
from larder_proxy.clients import Entry, dropped_at, find_entry
from larder_proxy.listener import HOST, Listener
from larder_proxy.messages import Malformed, Raw, body_of, head, limit, read_head
from larder_proxy.places import in_background
from larder_proxy.spool import NoRoom, Spool
from larder_proxy.transfers import Download, Kept

STATUS = "/larder/status"
_CHECK = "/.sccache_check"
_BINARY = "application/octet-stream"
_PLAIN = "text/plain; charset=utf-8"
_COLLECTION = (
    '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>{path}</D:href><D:propstat><D:prop>'
    "<D:getlastmodified>{date}</D:getlastmodified><D:getcontentlength>0</D:getcontentlength>"
    "<D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>"
    "</D:response></D:multistatus>"
)
_MOST_JSON = 20_000_000
_AGAIN_SECONDS = 0.01
SOON_SECONDS = 0.5
"""A tool sends a request as soon as it has a connection, and its build may fail if the connection ends before."""
MOST_CONNECTIONS = 256
HEAD_SECONDS, IDLE_SECONDS = 5, 300
"""How long a connection without the token may take for a head, and how long one with it may be silent."""

_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_REASONS = {200: "OK", 201: "Created", 202: "Accepted", 207: "Multi-Status", 404: "Not Found"}


class Server:
    """Answers the tools until `stop`, with a thread for each connection."""

    def __init__(
        self, listener: Listener, cache: Cache, spool: Spool, *, team: str, most: int
    ) -> None:
        self._socket = listener.socket
        self.port, self.token = listener.port, listener.token
        self.cache, self.spool, self.team = cache, spool, team
        self._lock = threading.Lock()
        self._open, self._most = 0, min(most, MOST_CONNECTIONS)
        self._waiting: dict[socket.socket, float] = {}
        self._is_stopped = False
        self.was_asked = False
        """Whether a tool has asked for an entry, or stored one. Without a remote cache, turbo asks for the status."""
        self.on_turbo: Callable[[], None] | None = None

    def serve(self) -> None:
        while not self._is_stopped:
            self._serve_next()

    def _serve_next(self) -> None:
        while self._open >= self._most and not self._is_stopped:
            self._end_oldest()
        try:
            connection, _ = self._socket.accept()
        except OSError:
            # The tool went away, or the system has no file for its connection at the moment.
            time.sleep(_AGAIN_SECONDS)
            return
        with self._lock:
            self._open += 1
        while not self._is_stopped and in_background(partial(self._answer, connection)) is None:
            # The tool waits.
            self._end_oldest()

    def _answer(self, connection: socket.socket) -> None:
        # A tool that went away is no error.
        with closing(connection), suppress(Exception):
            Handler(self, connection).handle()
        self.wait(connection, is_over=True)
        with self._lock:
            self._open -= 1

    def _end_oldest(self) -> None:
        """Close the connection that has waited for a request for the longest time, unless that is about to come."""
        with self._lock:
            oldest, since = next(iter(self._waiting.items()), (None, 0.0))
            if oldest is not None and time.monotonic() - since > SOON_SECONDS:
                del self._waiting[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
        time.sleep(_AGAIN_SECONDS)

    def wait(self, connection: socket.socket, *, is_over: bool = False) -> None:
        """Note that a connection waits for a request, or that it has one."""
        with self._lock:
            self._waiting.pop(connection, None)
            if not is_over:
                self._waiting[connection] = time.monotonic()

    @property
    def is_crowded(self) -> bool:
        """Whether connections must end after a request, so that others get their turn."""
        return self._open > self._most / 2

    def stop(self) -> None:
        self._is_stopped = True
        # Linux wakes the thread by this, other systems by the next call.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Handler:
    """A connection of a tool. Its requests come one after another."""

    def __init__(self, server: Server, connection: socket.socket) -> None:
        self.server, self.connection, self.write = server, connection, connection.sendall
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(IDLE_SECONDS)
        self._raw = Raw(connection)
        self.rfile = io.BufferedReader(self._raw, 65_536)

    def handle(self) -> None:
        answers = {
            "GET": self.do_get,
            "HEAD": self.do_get,
            "PUT": self.do_put,
            "POST": self.do_post,
            "OPTIONS": self.do_options,
            "PROPFIND": self.do_propfind,
            "MKCOL": self.do_mkcol,
        }
        self.is_last = self.is_known = False
        while not self.is_last:
            self.server.wait(self.connection)
            if not self.is_known:
                self._raw.until = time.monotonic() + HEAD_SECONDS
            try:
                line, self.headers = read_head(self.rfile)
                if not line:
                    return
                self.command, self.path, version = line.split(" ")
                self.body = body_of(self.rfile, self.headers, without_length=0)
            except (Malformed, ValueError):
                self._refuse(400)
                return
            self.is_known = self._has_token()
            if self.is_known:
                # Others may have to go at any time, also while they send a body.
                self.server.wait(self.connection, is_over=True)
                self._raw.until = math.inf
                limit(self.connection, IDLE_SECONDS)
            kept = self.headers.get("connection", "").lower()
            is_old = version == "HTTP/1.0" and kept != "keep-alive"
            self.is_last = kept == "close" or is_old or self.server.is_crowded
            if self.headers.get("expect", "").lower() == "100-continue":
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            answer = answers.get(self.command)
            if answer is None:
                self._refuse(501)
                return
            answer()

    def _refuse(self, status: int) -> None:
        self.command, self.is_last = "", True
        self._answer(status)

    def do_get(self) -> None:
        entry = self._entry()
        if entry is None:
            return
        if self.path.endswith(_CHECK):
            self._answer(404)
            return
        if self.command == "HEAD":
            self._head(entry)
            return
        started = time.monotonic()
        found = self.server.cache.find(entry)
        most = entry.client.streams_from
        if found is None:
            self._miss(entry, started)
        elif most is None or isinstance(found, Kept) or found.size < most:
            self._send_whole(entry, found, started)
        else:
            self._stream(entry, found, found.blocks, found.close)

    def _head(self, entry: Entry) -> None:
        size = self.server.cache.size(entry)
        if size is None:
            self._answer(404)
        else:
            self.write(self._start(200, size, _BINARY))

    def _send_whole(self, entry: Entry, found: Download | Kept, started: float) -> None:
        """The status follows the whole body, so that a cut download is a miss."""
        try:
            kept = self.server.cache.whole(found, entry)
        except NoRoom as full:
            if entry.client.streams_from is None or entry.digest is not None:
                full.close()
                self._miss(entry, started)
            else:
                self._stream(entry, found, full.blocks, full.close)
            return
        if kept is None:
            self._miss(entry, started)
            return
        try:
            if time.monotonic() - started > entry.client.seconds:
                self._miss(entry, started)
                return
            start = self._start(200, kept.size, _BINARY, kept.headers)
            blocks = kept.body.blocks()
            # A small body shares a packet with its head.
            self.write(start + next(blocks, b""))
            for block in blocks:
                self.write(block)
            self.server.cache.hit(entry, kept.headers)
        finally:
            kept.close()

    def _stream(
        self,
        entry: Entry,
        found: Download | Kept,
        blocks: Iterator[bytes],
        close: Callable[[], None],
    ) -> None:
        """For tools with a time limit for the first byte, or without room for the body. A cut ends the connection."""
        sent = 0
        try:
            self.write(self._start(200, found.size, _BINARY, found.headers))
            for block in blocks:
                self.write(block)
                sent += len(block)
        finally:
            close()
        if sent == found.size:
            self.server.cache.hit(entry, found.headers)
        else:
            self.server.cache.count_miss(entry)
            self.is_last = True

    def _miss(self, entry: Entry, started: float) -> None:
        self.server.cache.miss(entry, started)
        self._answer(404)

    def do_put(self) -> None:
        entry = self._entry()
        if entry is None:
            return
        client, cache = entry.client, self.server.cache
        if self.path.endswith(_CHECK):
            self._drain()
            self._answer(403 if cache.refusal else 200)
            return
        if cache.refusal:
            cache.counts.drop(cache.refusal)
            self._drain()
            self._answer(client.dropped)
            return
        size, headers = self.body.left, turbo.sent_with(self.headers.items())
        try:
            body = self.server.spool.take(self.body, size)
        except NoRoom as full:
            try:
                is_stored = cache.store_through(entry, full, size, headers)
                with suppress(ValueError):
                    for _ in full.blocks:
                        pass
            finally:
                full.close()
            self._answer(client.stored if is_stored else client.dropped)
            return
        except ValueError:
            self.is_last = True
            return
        is_stored = cache.store(entry, body, headers)
        self._answer(client.stored if is_stored else 400)

    def do_propfind(self) -> None:
        """sccache looks for the folder of each entry before it stores it."""
        if not self._is_allowed():
            return
        self._drain()
        path = self.path.replace("&", "&amp;").replace("<", "&lt;")
        text = _COLLECTION.format(path=path, date=time.strftime(_DATE, time.gmtime()))
        self._answer(207, text.encode(), "application/xml")

    def do_mkcol(self) -> None:
        if self._is_allowed():
            self._drain()
            self._answer(201)

    def do_post(self) -> None:
        if not self._is_allowed():
            return
        path, _, query = self.path.partition("?")
        if path == EVENTS:
            content = self._json()
            headers = turbo.sent_with(self.headers.items())
            self.server.cache.forward_events(content, headers, self._other_team(query))
            self._answer(200)
        elif turbo.is_passed("POST", path):
            self._pass_on(path, query, self._json())
        else:
            self._drain()
            self._answer(404)

    def do_options(self) -> None:
        """turbo asks where to send each request. It is here, for every size."""
        if self._is_allowed():
            self._drain()
            allowed = {"Access-Control-Allow-Headers": turbo.ALLOWED_HEADERS}
            self.write(self._start(200, 0, _PLAIN, allowed))

    def _json(self) -> bytes:
        blocks, size = [], 0
        for block in self.body:
            size += len(block)
            if size <= _MOST_JSON:
                blocks.append(block)
        return b"".join(blocks)

    def _pass_on(self, path: str, query: str, content: bytes | None) -> None:
        work, self.server.on_turbo = self.server.on_turbo, None
        if work is not None:
            in_background(work)
        if path in (turbo.STATUS, turbo.QUERY):
            query = self._other_team(query)
        answer = self.server.cache.pass_on(self.command, path, content, query)
        if path in (turbo.STATUS, turbo.QUERY) and (answer is None or answer.status != 200):
            answer = turbo.without_larder(path, content or b"")
        answer = answer or turbo.without_larder(path, content or b"")
        self._answer(answer.status, answer.content, "application/json")

    def _other_team(self, query: str) -> str:
        return turbo.other_team(query, self.server.team)

    def _entry(self) -> Entry | None:
        """The entry of the path. None if the request is answered already."""
        if not self._is_allowed():
            return None
        path, _, query = self.path.partition("?")
        if self.command == "GET" and turbo.is_passed("GET", path):
            self._pass_on(path, query, None)
            return None
        if path in ("/moon/status", STATUS):
            counts = self.server.cache.status if path == STATUS else {}
            self._answer(200, json.dumps(counts).encode(), "application/json")
            return None
        entry = turbo.find_entry(path, query, self.server.team) or find_entry(
            "/sccache/check" if path.endswith(_CHECK) else path
        )
        if entry is None:
            self._drain()
            dropped = dropped_at(path) if self.command == "PUT" else None
            if dropped is not None:
                self.server.cache.counts.drop("unknown path")
            self._answer(dropped or 404)
        else:
            self.server.was_asked = True
        return entry

    def _is_allowed(self) -> bool:
        """Whether the request has the token, and comes from no page of a browser. Answers others."""
        hosts = (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}")
        if self.headers.get("host") not in hosts or self.headers.get("origin") is not None:
            status, text = 403, "larder proxy answers programs of this computer only.\n"
        elif not self.is_known:
            status, text = 401, "The token of larder proxy is wrong. `larder proxy env` shows it.\n"
        else:
            return True
        self._drain()
        self._answer(status, text.encode(), _PLAIN)
        return False

    def _has_token(self) -> bool:
        # Loads OpenSSL, for which the start of a build would wait.
        import hmac

        return hmac.compare_digest(self._sent_token().encode(), self.server.token.encode())

    def _sent_token(self) -> str:
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                return binascii.a2b_base64(value).decode().partition(":")[2]
            except ValueError:
                return ""
        return value.strip() if kind.lower() == "bearer" else ""

    def _drain(self) -> None:
        """Read a body that nobody needs. A tool that could not send all of it would fail, whatever the answer is."""
        self.body.drain()

    def _start(
        self, status: int, size: int, kind: str, headers: Mapping[str, str] | None = None
    ) -> bytes:
        fields = {"Content-Type": kind, "Content-Length": str(size), **(headers or {})}
        if self.is_last:
            fields["Connection"] = "close"
        return head(f"HTTP/1.1 {status} {_REASONS.get(status, 'Refused')}", fields)

    def _answer(self, status: int, content: bytes = b"", kind: str = _PLAIN) -> None:
        start = self._start(status, len(content), kind)
        self.write(start if self.command == "HEAD" else start + content)
