"""Connections that are kept for a moment, with the certificates and proxies of this computer."""

from __future__ import annotations

import binascii
import io
import math
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress

from larder_proxy.address import Address
from larder_proxy.messages import Malformed, Raw, Sent, body_of, head, limit, read_head
from larder_proxy.proxies import proxy_for
from larder_proxy.spool import Body

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from larder_proxy.messages import Lines

IDLE_SECONDS = 3
"""A connection that was idle for longer may be closed at the other end, which only the next request would notice."""

_READ_AT_ONCE = 65_536
"""Each read of a connection lets other threads go first. A small artifact and its head need one."""

SLOWEST = 10_000
"""The bytes a second that an answer must have on average, after `Limits.answer`."""

_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?")
_NO_TARGET = re.compile(r"[^!-~]")
_UNTIL_CLOSED = sys.maxsize


class Limits:
    """How long the network may take, in seconds. What takes longer fails, and is not tried again.

    So a build waits for a download that hangs for `answer` and one `silence` at most, and for an upload for `connect`
    and `upload`.
    """

    def __init__(
        self, connect: float = 5, answer: float = 20, silence: float = 8, upload: float = 20
    ) -> None:
        self.connect = connect
        """Until a connection is open, with its proxy and TLS."""
        self.answer = answer
        """Until an answer begins, with all tries and redirects."""
        self.silence = silence
        """Without a byte. ccache gives up after ten, and would ask for the next entry before anyone knows."""
        self.upload = upload
        """The same in uploads: storage answers when it has kept all bytes."""


LIMITS = Limits()


class Connection:
    """A socket, and the bytes that are read from it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.raw = Raw(sock)
        self.file = io.BufferedReader(self.raw, _READ_AT_ONCE)

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
        # Chunks can have other bytes than a length next to them says.
        self.length = int(length) if length.isdecimal() and body.left is not None else None

    def header(self, name: str) -> str:
        return self._headers.get(name, "")

    def headers(self, prefix: str) -> dict[str, str]:
        """The headers whose names begin with a prefix in lower case."""
        return {name: value for name, value in self._headers.items() if name.startswith(prefix)}

    def blocks(self) -> Iterator[bytes]:
        """What is left of the body. Ends early, or raises OSError or ValueError, if the answer is cut or too slow."""
        seconds, size, before = 0.0, 0, time.monotonic()
        for block in self._body:
            size += len(block)
            seconds += time.monotonic() - before
            if seconds > self._pool.limits.answer + size / SLOWEST:
                raise socket.timeout("too slow")
            yield block
            before = time.monotonic()

    def read(self, most: int = 10_000) -> bytes:
        """The body, and `close`. No more than about `most` bytes.

        Raises OSError or ValueError if the answer is cut.
        """
        found, size = [], 0
        try:
            for block in self.blocks():
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

    def __init__(self, environment: Mapping[str, str], limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._environment = environment
        self._own_certificates = environment.get("NODE_EXTRA_CA_CERTS")
        self._lock = threading.Lock()
        self._idle: dict[str, deque[tuple[float, Connection]]] = {}
        self._is_closed = False
        self._context: ssl.SSLContext | None = None

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None = None,
        *,
        until: float = math.inf,
    ) -> Reply:
        """Send a request, whose answer must begin by the time (time.monotonic) `until`.

        A kept connection that has died is replaced once. Raises OSError or ValueError, and socket.timeout for a limit.
        """
        to = Address(url)
        kept = self._take(to.origin) if body is None or body.is_whole else None
        if kept is not None:
            try:
                return self._send(kept, to, method, headers, body, until)
            except socket.timeout:
                raise
            except OSError:
                pass
        connection = Connection(self._open(to, until))
        return self._send(connection, to, method, headers, body, until)

    def connect(self, url: str) -> None:
        """Open a connection for a request that is about to come. Raises OSError or ValueError."""
        to = Address(url)
        self.keep(to.origin, Connection(self._open(to, math.inf)))

    def open(self, url: str) -> socket.socket:
        """A connection of the caller's own, which is not kept. Raises OSError or ValueError."""
        return self._open(Address(url), math.inf)

    def _send(
        self,
        connection: Connection,
        to: Address,
        method: str,
        headers: Mapping[str, str],
        body: Body | None,
        until: float,
    ) -> Reply:
        sent = {"Host": to.name, **headers}
        if body is not None:
            sent["Content-Length"] = str(body.size)
        try:
            if _NO_TARGET.search(to.target):
                raise Malformed("the address has characters that no address has")
            sock = connection.sock
            silence = self.limits.upload if method == "PUT" else self.limits.silence
            limit(sock, min(silence, until - time.monotonic()))
            start = head(f"{method} {to.target} HTTP/1.1", sent)
            # Small bodies share a packet with their head.
            blocks = iter(()) if body is None else body.blocks()
            sock.sendall(start + next(blocks, b""))
            for block in blocks:
                sock.sendall(block)
            # All of the head, however slowly it comes.
            connection.raw.until = min(time.monotonic() + self.limits.answer, until)
            status, found = _read_status(connection.file)
            connection.raw.until = math.inf
            limit(sock, silence)
            if method == "HEAD" or status in (204, 304):
                answer = Sent(connection.file, 0)
            else:
                answer = body_of(connection.file, found, without_length=_UNTIL_CLOSED)
        except BaseException:
            connection.close()
            raise
        return Reply(self, to.origin, connection, status, found, answer)

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
            if not self._is_closed:
                self._idle.setdefault(origin, deque()).append((time.monotonic(), connection))
                return
        connection.close()

    def _open(self, to: Address, until: float) -> socket.socket:
        until = min(until, time.monotonic() + self.limits.connect)
        # Plain HTTP is for loopback and private networks.
        is_tls = to.scheme == "https"
        proxy = proxy_for(self._environment, to) if is_tls else ""
        sock = self._tunnel(proxy, to, until) if proxy else _connected(to, until)
        return self._encrypted(sock, to.host, until) if is_tls else sock

    def _encrypted(self, sock: socket.socket, host: str, until: float) -> socket.socket:
        """TLS on a connection, which is closed if that fails."""
        try:
            limit(sock, until - time.monotonic())
            context = self._tls()
            if not hasattr(sock, "server_hostname"):
                return context.wrap_socket(sock, server_hostname=host)
            from larder_proxy.tls import Inner

            return Inner(sock, context, host)  # type: ignore[return-value]
        except BaseException:
            sock.close()
            raise

    def _tunnel(self, proxy: str, to: Address, until: float) -> socket.socket:
        """A connection through a proxy. Its errors name HTTPS_PROXY."""
        try:
            host = f"[{to.host}]" if ":" in to.host else to.host
            return self._through(proxy, f"{host}:{to.port}", until)
        except (OSError, Malformed) as error:
            if getattr(error, "reason", "") == "WRONG_VERSION_NUMBER":
                raise Malformed(
                    "the proxy has no TLS: HTTPS_PROXY must begin with http://"
                ) from error
            if getattr(error, "verify_code", 0):
                raise
            *before, text = error.args or ("",)
            raise type(error)(*before, f"{text} (HTTPS_PROXY)") from error

    def _through(self, proxy: str, name: str, until: float) -> socket.socket:
        by = Address(proxy if "//" in proxy else f"//{proxy}")
        sock = _connected(by, until)
        if by.scheme == "https":
            sock = self._encrypted(sock, by.host, until)
        try:
            limit(sock, until - time.monotonic())
            sock.sendall(head(f"CONNECT {name} HTTP/1.1", {"Host": name, **_proxy_headers(by)}))
            # Not a byte more than the answer.
            raw = Raw(sock)
            raw.until = until
            status, _ = _read_status(raw)
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
                if self._own_certificates:
                    # A file that cannot be read changes nothing, as in Node.
                    with suppress(OSError):
                        self._context.load_verify_locations(self._own_certificates)
            return self._context

    def close(self) -> None:
        """Close what is kept now, and what is about to be kept."""
        with self._lock:
            self._is_closed = True
            for kept in self._idle.values():
                for _, connection in kept:
                    connection.close()
            self._idle.clear()


def _connected(to: Address, until: float) -> socket.socket:
    """A connection to the first address of a host that answers. All of them share the time."""
    found = socket.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
    addresses = [str(one[4][0]) for one in found]
    while True:
        seconds = (until - time.monotonic()) / len(addresses)
        if seconds <= 0:
            raise socket.timeout("no connection in time")
        try:
            sock = socket.create_connection((addresses.pop(0), to.port), seconds)
        except OSError:
            if not addresses:
                raise
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock


def _read_status(file: Lines) -> tuple[int, dict[str, str]]:
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


def _proxy_headers(proxy: Address) -> dict[str, str]:
    if not proxy.user:
        return {}
    from urllib.parse import unquote

    name, _, password = proxy.user.partition(":")
    pair = f"{unquote(name)}:{unquote(password)}".encode()
    return {"Proxy-Authorization": f"Basic {binascii.b2a_base64(pair, newline=False).decode()}"}
