"""Connections that are kept for a moment, with the certificates and proxies of this computer."""

from __future__ import annotations

import base64
import http.client
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from typing import BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

IDLE_SECONDS = 3
"""A connection that was idle for longer may be closed at the other end, which only the next request would notice."""

CONNECT_SECONDS = 5
FIRST_BYTE_SECONDS = 15
BYTE_SECONDS = 30

_BLOCK = 262_144

Connection = http.client.HTTPConnection


class Reply:
    """An answer. `read` gives the next bytes, and `close` must be called at the end, or before it to give up."""

    def __init__(
        self, pool: Pool, origin: str, connection: Connection, answer: http.client.HTTPResponse
    ) -> None:
        self._pool, self._origin, self._connection = pool, origin, connection
        self._answer = answer
        self._is_over = False
        self.status = answer.status
        length = answer.getheader("content-length")
        self.length = int(length) if length and length.isdigit() else None

    def header(self, name: str) -> str:
        return self._answer.getheader(name) or ""

    def headers(self, prefix: str) -> dict[str, str]:
        """The headers whose names begin with a prefix in lower case."""
        found = ((name.lower(), value) for name, value in self._answer.getheaders())
        return {name: value for name, value in found if name.startswith(prefix)}

    def read(self, size: int) -> bytes:
        """Raises OSError or http.client.HTTPException if the answer is cut."""
        return self._answer.read(size)

    def text(self, most: int = 10_000) -> str:
        return self._answer.read(most).decode(errors="replace")

    def close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._answer.isclosed() and not self._answer.will_close:
            self._pool.keep(self._origin, self._connection)
        else:
            # The answer has a file of its own on the socket.
            self._answer.close()
            self._connection.close()


class Pool:
    """Kept connections, by origin."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._proxy = environment.get("HTTPS_PROXY") or environment.get("https_proxy")
        self._lock = threading.Lock()
        self._idle: dict[str, list[tuple[float, Connection]]] = {}
        self._context: ssl.SSLContext | None = None

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: BinaryIO | None = None,
        size: int = 0,
    ) -> Reply:
        """Send a request. A kept connection that has died is replaced once.

        Raises OSError or http.client.HTTPException.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        kept = self._take(origin)
        if kept is not None:
            try:
                return self._send(kept, origin, parts, method, headers, body, size)
            except (ConnectionError, http.client.RemoteDisconnected, ssl.SSLError):
                kept.close()
                if body is not None:
                    body.seek(0)
        return self._send(self._open(parts), origin, parts, method, headers, body, size)

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
        try:
            if connection.sock is not None:
                connection.sock.settimeout(FIRST_BYTE_SECONDS)
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(size))
            connection.endheaders()
            if connection.sock is not None:
                connection.sock.settimeout(BYTE_SECONDS if body else FIRST_BYTE_SECONDS)
            if body is not None:
                for block in iter(lambda: body.read(_BLOCK), b""):
                    connection.send(block)
            answer = connection.getresponse()
            if connection.sock is not None:
                connection.sock.settimeout(BYTE_SECONDS)
        except BaseException:
            connection.close()
            raise
        return Reply(self, origin, connection, answer)

    def _take(self, origin: str) -> Connection | None:
        with self._lock:
            kept = self._idle.get(origin, [])
            while kept:
                at, connection = kept.pop()
                if time.monotonic() - at < IDLE_SECONDS:
                    return connection
                connection.close()
        return None

    def keep(self, origin: str, connection: Connection) -> None:
        with self._lock:
            self._idle.setdefault(origin, []).append((time.monotonic(), connection))

    def _open(self, parts: SplitResult) -> Connection:
        host, port = parts.hostname or "", parts.port
        # Plain HTTP is for loopback and private networks.
        if parts.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        if not self._proxy or urllib.request.proxy_bypass(host):
            return http.client.HTTPSConnection(
                host, port, timeout=CONNECT_SECONDS, context=self._tls()
            )
        by = urlsplit(self._proxy if "//" in self._proxy else f"//{self._proxy}")
        connection = http.client.HTTPSConnection(
            by.hostname or "", by.port, timeout=CONNECT_SECONDS, context=self._tls()
        )
        connection.set_tunnel(host, port or 443, _proxy_headers(by))
        return connection

    def _tls(self) -> ssl.SSLContext:
        # Reading the certificates takes 20 ms, once.
        with self._lock:
            if self._context is None:
                # Also reads SSL_CERT_FILE and SSL_CERT_DIR.
                self._context = ssl.create_default_context()
            return self._context

    def close(self) -> None:
        with self._lock:
            for kept in self._idle.values():
                for _, connection in kept:
                    connection.close()
            self._idle.clear()


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
