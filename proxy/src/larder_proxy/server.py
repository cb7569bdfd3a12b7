"""The listener on loopback. Only processes that know its token get more than a refusal."""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import shutil
import socketserver
import time
from collections.abc import Iterator
from email.utils import formatdate
from io import BufferedIOBase, BytesIO

from larder_proxy.cache import Cache
from larder_proxy.clients import Entry, find_entry
from larder_proxy.spool import Spool, SpoolFull
from larder_proxy.upstream import Download

HOST = "127.0.0.1"
STATUS = "/larder/status"
_BLOCK = 262_144
_CHECK = "/.sccache_check"
_BINARY = "application/octet-stream"
_PLAIN = "text/plain; charset=utf-8"
_COLLECTION = (
    '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>{path}</D:href><D:propstat><D:prop>'
    "<D:getlastmodified>{date}</D:getlastmodified><D:getcontentlength>0</D:getcontentlength>"
    "<D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>"
    "</D:response></D:multistatus>"
)
_MOST_CHUNK_LINE = 1_000


class _Sent:
    """A body on its connection. `left` bytes are not read yet."""

    def __init__(self, file: BufferedIOBase, left: int) -> None:
        self._file, self.left = file, left

    def __iter__(self) -> Iterator[bytes]:
        """What is left, in blocks. They end early if the body is cut."""
        while self.left:
            block = self._file.read(min(_BLOCK, self.left))
            if not block:
                return
            self.left -= len(block)
            yield block

    def drain(self) -> None:
        for _ in self:
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers the tools until `shutdown`. `port` 0 takes a free one."""

    daemon_threads = True
    # Nx opens a hundred connections at once.
    request_queue_size = 512

    def __init__(self, port: int, token: str, cache: Cache, spool: Spool) -> None:
        super().__init__((HOST, port), Handler)
        self.token, self.cache, self.spool = token, cache, spool

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """A tool that went away is no error."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300
    server: Server

    def do_GET(self) -> None:
        entry = self._entry()
        if entry is None:
            return
        if self.path.endswith(_CHECK):
            self._answer(404)
            return
        started = time.monotonic()
        download = self.server.cache.find(entry)
        if download is None:
            self._miss(entry)
        elif self.command == "HEAD":
            self._head(download)
        elif entry.client.streams_from is None or download.size < entry.client.streams_from:
            self._send_whole(entry, download, started)
        else:
            self._stream(entry, download)

    do_HEAD = do_GET  # noqa: N815  # the name of http.server

    def _head(self, download: Download) -> None:
        download.close()
        self._start(200, download.size, _BINARY)

    def _send_whole(self, entry: Entry, download: Download, started: float) -> None:
        """The status follows the whole body, so that a cut download is a miss."""
        body = self.server.cache.whole(download, entry)
        if body is None or time.monotonic() - started > entry.client.seconds:
            self._miss(entry)
            return
        try:
            self._start(200, body.size, _BINARY)
            shutil.copyfileobj(body.open(), self.wfile, _BLOCK)
            self.server.cache.hit(entry)
        finally:
            body.close()

    def _stream(self, entry: Entry, download: Download) -> None:
        """For tools with a time limit for the first byte. A cut ends the connection."""
        self._start(200, download.size, _BINARY)
        sent = 0
        try:
            for block in download.blocks:
                self.wfile.write(block)
                sent += len(block)
        finally:
            download.close()
        if sent == download.size:
            self.server.cache.hit(entry)
        else:
            self.close_connection = True

    def _miss(self, entry: Entry) -> None:
        self.server.cache.miss(entry)
        self._answer(404)

    def do_PUT(self) -> None:
        entry = self._entry()
        if entry is None:
            return
        client, cache = entry.client, self.server.cache
        if self.path.endswith(_CHECK):
            self._drain()
            self._answer(403 if cache.is_read_only else 200)
            return
        if cache.is_read_only:
            self._drain()
            self._answer(client.dropped)
            return
        source = self._body()
        try:
            body = self.server.spool.take(source, source.left)
        except SpoolFull:
            source.drain()
            self._answer(client.dropped)
            return
        except ValueError:
            self.close_connection = True
            return
        self._answer(client.stored if cache.store(entry, body) else 400)

    def do_PROPFIND(self) -> None:
        """sccache looks for the folder of each entry before it stores it."""
        if not self._is_allowed():
            return
        self._drain()
        path = self.path.replace("&", "&amp;").replace("<", "&lt;")
        text = _COLLECTION.format(path=path, date=formatdate(usegmt=True))
        self._answer(207, text.encode(), "application/xml")

    def do_MKCOL(self) -> None:
        if self._is_allowed():
            self._drain()
            self._answer(201)

    def do_POST(self) -> None:
        if self._is_allowed():
            self._drain()
            self._answer(404)

    def _entry(self) -> Entry | None:
        """The entry of the path. None if the request is answered already."""
        if not self._is_allowed():
            return None
        path = self.path.partition("?")[0]
        if path in ("/moon/status", STATUS):
            counts = vars(self.server.cache.counts) if path == STATUS else {}
            self._answer(200, json.dumps(counts).encode(), "application/json")
            return None
        entry = find_entry("/sccache/check" if path.endswith(_CHECK) else path)
        if entry is None:
            self._drain()
            self._answer(404)
        return entry

    def _is_allowed(self) -> bool:
        """Whether the request has the token, and comes from no page of a browser. Answers others."""
        hosts = (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}")
        if self.headers.get("host") not in hosts or self.headers.get("origin") is not None:
            status, text = 403, "larder proxy answers programs of this computer only.\n"
        elif not hmac.compare_digest(self._sent_token().encode(), self.server.token.encode()):
            status, text = 401, "The token of larder proxy is wrong. `larder proxy env` shows it.\n"
        else:
            return True
        self._drain()
        self._answer(status, text.encode(), _PLAIN)
        return False

    def _sent_token(self) -> str:
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                return base64.b64decode(value).decode().partition(":")[2]
            except ValueError:
                return ""
        return value.strip() if kind.lower() == "bearer" else ""

    def _body(self) -> _Sent:
        """The body of a request. One in chunks is read first."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            content = self._chunks()
            return _Sent(BytesIO(content), len(content))
        text = self.headers.get("content-length", "0")
        return _Sent(self.rfile, int(text) if text.isdigit() else 0)

    def _chunks(self) -> bytes:
        found: list[bytes] = []
        while True:
            line = self.rfile.readline(_MOST_CHUNK_LINE)
            size = int(line.split(b";")[0] or b"0", 16)
            if size == 0:
                while self.rfile.readline(_MOST_CHUNK_LINE).strip():
                    pass
                return b"".join(found)
            found.append(self.rfile.read(size))
            self.rfile.readline(_MOST_CHUNK_LINE)

    def _drain(self) -> None:
        """Read a body that nobody needs. A tool that could not send all of it would fail, whatever the answer is."""
        self._body().drain()

    def _start(self, status: int, size: int, kind: str) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _answer(self, status: int, content: bytes = b"", kind: str = _PLAIN) -> None:
        self._start(status, len(content), kind)
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is logged: the tools say what they need."""
