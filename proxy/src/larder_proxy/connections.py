"""Connections that are kept for a moment, with the certificates and proxies of this computer."""

from __future__ import annotations

import base64
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

from larder_proxy.messages import BLOCK, Malformed, Sent, Source, body_of, head, read_head

if TYPE_CHECKING:
    import ssl

IDLE_SECONDS = 3
"""A connection that was idle for longer may be closed at the other end, which only the next request would notice."""

CONNECT_SECONDS = 5
FIRST_BYTE_SECONDS = 15
BYTE_SECONDS = 30

_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?")
_NO_TARGET = re.compile(r"[^!-~]")
_UNTIL_CLOSED = sys.maxsize


class Connection:
    """A socket, and the bytes that are read from it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.file = sock.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.sock.close()


class Reply:
    """An answer. `close` must be called at the end, or before it to give up."""

    def __init__(
        self,
        pool: Pool,
        origin: str,
        connection: Connection,
        status: int,
        headers: Mapping[str, str],
        body: Sent,
    ) -> None:
        self._pool, self._origin, self._connection = pool, origin, connection
        self._headers, self._body = headers, body
        self._is_over = False
        self.status = status
        length = headers.get("content-length", "")
        self.length = int(length) if length.isdecimal() else None

    def header(self, name: str) -> str:
        return self._headers.get(name, "")

    def headers(self, prefix: str) -> dict[str, str]:
        """The headers whose names begin with a prefix in lower case."""
        return {name: value for name, value in self._headers.items() if name.startswith(prefix)}

    def blocks(self) -> Iterator[bytes]:
        """What is left of the body. Ends early, or raises OSError or ValueError, if the answer is cut."""
        return iter(self._body)

    def read(self, most: int = 10_000) -> bytes:
        """The body, and `close`. No more than about `most` bytes.

        Raises OSError or ValueError if the answer is cut.
        """
        found, size = [], 0
        try:
            for block in self._body:
                found.append(block)
                size += len(block)
                if size > most:
                    break
            if self._body.left and self.length is not None and size <= most:
                raise Malformed("the answer is cut")
        finally:
            self.close()
        return b"".join(found)[:most]

    def close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._body.left == 0 and self._headers.get("connection", "").lower() != "close":
            self._pool.keep(self._origin, self._connection)
        else:
            self._connection.close()


class Pool:
    """Kept connections, by origin."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._proxy = environment.get("HTTPS_PROXY") or environment.get("https_proxy")
        self._lock = threading.Lock()
        self._idle: dict[str, deque[tuple[float, Connection]]] = {}
        self._context: ssl.SSLContext | None = None

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: BinaryIO | None = None,
        size: int = 0,
    ) -> Reply:
        """Send a request. A kept connection that has died is replaced once. Raises OSError or ValueError."""
        parts = urlsplit(url)
        origin = _origin(parts)
        kept = self._take(origin)
        if kept is not None:
            try:
                return self._send(kept, origin, parts, method, headers, body, size)
            except socket.timeout:
                raise
            except OSError:
                if body is not None:
                    body.seek(0)
        return self._send(self._open(parts), origin, parts, method, headers, body, size)

    def connect(self, url: str) -> None:
        """Open a connection for a request that is about to come. Raises OSError or ValueError."""
        parts = urlsplit(url)
        self.keep(_origin(parts), self._open(parts))

    def _send(
        self,
        connection: Connection,
        origin: str,
        parts: SplitResult,
        method: str,
        headers: Mapping[str, str],
        body: BinaryIO | None,
        size: int,
    ) -> Reply:
        target = parts.path or "/"
        if parts.query:
            target += f"?{parts.query}"
        sent = {"Host": parts.netloc.rpartition("@")[2], **headers}
        if body is not None:
            sent["Content-Length"] = str(size)
        try:
            if _NO_TARGET.search(target):
                raise Malformed("the address has characters that no address has")
            sock = connection.sock
            sock.settimeout(FIRST_BYTE_SECONDS if body is None else BYTE_SECONDS)
            start = head(f"{method} {target} HTTP/1.1", sent)
            # Small bodies share a packet with their head.
            block = body.read(BLOCK) if body is not None else b""
            sock.sendall(start + block)
            while body is not None and block:
                block = body.read(BLOCK)
                sock.sendall(block)
            status, found = _read_status(connection.file)
            sock.settimeout(BYTE_SECONDS)
            if method == "HEAD" or status in (204, 304):
                answer = Sent(connection.file, 0)
            else:
                answer = body_of(connection.file, found, without_length=_UNTIL_CLOSED)
        except BaseException:
            connection.close()
            raise
        return Reply(self, origin, connection, status, found, answer)

    def _take(self, origin: str) -> Connection | None:
        with self._lock:
            kept = self._idle.get(origin)
            while kept:
                # The oldest, so that all are used.
                at, connection = kept.popleft()
                if time.monotonic() - at < IDLE_SECONDS:
                    return connection
                connection.close()
        return None

    def keep(self, origin: str, connection: Connection) -> None:
        with self._lock:
            self._idle.setdefault(origin, deque()).append((time.monotonic(), connection))

    def _open(self, parts: SplitResult) -> Connection:
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        # Plain HTTP is for loopback and private networks.
        if not is_tls:
            return Connection(_connected(host, port))
        if self._proxy:
            # Takes as long as all other imports of the sidecar.
            from urllib.request import proxy_bypass

            sock = _connected(host, port) if proxy_bypass(host) else self._tunnel(host, port)
        else:
            sock = _connected(host, port)
        try:
            return Connection(self._tls().wrap_socket(sock, server_hostname=host))
        except BaseException:
            sock.close()
            raise

    def _tunnel(self, host: str, port: int) -> socket.socket:
        proxy = self._proxy or ""
        by = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        sock = _connected(by.hostname or "", by.port or 443)
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            sock.sendall(head(f"CONNECT {name} HTTP/1.1", {"Host": name, **_proxy_headers(by)}))
            # Not a byte more than the answer.
            with sock.makefile("rb", 0) as file:
                status, _ = _read_status(file)
            if status != 200:
                raise Malformed(f"the proxy answers {status}")
        except BaseException:
            sock.close()
            raise
        return sock

    def _tls(self) -> ssl.SSLContext:
        # Reading the certificates takes 20 ms, once.
        with self._lock:
            if self._context is None:
                import ssl

                # Also reads SSL_CERT_FILE and SSL_CERT_DIR.
                self._context = ssl.create_default_context()
            return self._context

    def close(self) -> None:
        with self._lock:
            for kept in self._idle.values():
                for _, connection in kept:
                    connection.close()
            self._idle.clear()


def _origin(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"


def _connected(host: str, port: int) -> socket.socket:
    sock = socket.create_connection((host, port), CONNECT_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _read_status(file: Source) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer, after those that only announce it. Raises OSError."""
    while True:
        first, headers = read_head(file)
        match = _STATUS.fullmatch(first)
        if match is None:
            raise Malformed("the connection has ended, or does not speak HTTP/1.1")
        if not match[1].startswith("1"):
            # Before 1.1, a connection is kept only if the answer says so.
            kept = {"connection": "close"} if first.startswith("HTTP/1.0") else {}
            return int(match[1]), {**kept, **headers}


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
