"""HTTP/1.1 over kept connections, each of which carries one request at a time.

http.client would do the same, but it imports the package `email` to parse headers, and takes twice as long for a call
(docs/decisions/aws-client.md).
"""

import select
import socket
from functools import cache
from http import HTTPStatus
from io import BufferedReader
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from larder.aws.replies import CONNECT_TIMEOUT_S

if TYPE_CHECKING:
    from ssl import SSLContext

_SMALL_BODY_BYTES = 65_536
"""A body of this size is sent together with the headers. A larger one is not worth a copy."""
_WANT_READ = 2
"""The errno of SSLWantReadError. Its module is not imported without TLS."""
_LONGEST_LINE_BYTES = 65_536


class BrokenReply(OSError):
    """The reply ends early, or is not HTTP/1.1."""


class StaleConnection(ConnectionError):
    """A kept connection had ended: not a byte of a reply came."""


class Connection:
    """A connection to one host. Every method raises OSError if the connection is lost or times out.

    `was_kept` says that it has been kept since its last reply, and that nothing of the next one has come.
    """

    __slots__ = ("_reader", "_socket", "was_kept")

    def __init__(self, host: str, port: int, *, secure: bool, read_timeout_s: float) -> None:
        opened = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket = _tls().wrap_socket(opened, server_hostname=host) if secure else opened
        except BaseException:
            opened.close()
            raise
        self._socket.settimeout(read_timeout_s)
        self._reader: BufferedReader = self._socket.makefile("rb")
        self.was_kept = False

    def is_idle(self) -> bool:
        """Whether a request can be sent. Anything to read is the peer's end of the connection, except for TLS itself.

        With TLS 1.3, a server sends tickets for later sessions after the handshake.
        """
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(0):
            return True
        timeout_s = self._socket.gettimeout()
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except OSError as error:
            return error.errno == _WANT_READ
        finally:
            self._socket.settimeout(timeout_s)
        return False

    def send(self, head: bytes, body: bytes) -> None:
        try:
            if len(body) <= _SMALL_BODY_BYTES:
                self._socket.sendall(head + body)
            else:
                self._socket.sendall(head)
                self._socket.sendall(body)
        except BrokenPipeError:
            # A service may refuse a request before it has read all of it. Then its reply can be read.
            pass

    def read_head(self) -> tuple[int, dict[str, str], bool]:
        """The status, the headers by their names in lower case, and whether the peer keeps the connection."""
        while True:
            version, _, rest = self._line().partition(" ")
            status = rest[:3]
            if not version.startswith("HTTP/1.") or not status.isdecimal():
                raise BrokenReply("not a status line")
            headers: dict[str, str] = {}
            while line := self._line():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            if int(status) != HTTPStatus.CONTINUE:
                closes = headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
                return int(status), headers, not closes

    def read_exactly(self, size: int) -> bytes:
        content = self._reader.read(size)
        if len(content) < size:
            raise BrokenReply("the body is incomplete")
        return content

    def read_chunks(self) -> bytes:
        """A body in chunked transfer coding."""
        chunks = []
        while True:
            try:
                size = int(self._line().partition(";")[0], 16)
            except ValueError:
                raise BrokenReply("not the size of a chunk") from None
            if size == 0:
                break
            chunks.append(self.read_exactly(size))
            self._line()
        while self._line():
            pass
        return b"".join(chunks)

    def read_to_end(self) -> bytes:
        return self._reader.read()

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def _line(self) -> str:
        line = self._reader.readline(_LONGEST_LINE_BYTES)
        if line:
            self.was_kept = False
        if not line.endswith(b"\n"):
            raise BrokenReply("the reply ends in its head")
        return line.rstrip(b"\r\n").decode("latin-1")


class Reply:
    """The reply to a request. Its body is read by `read`, or left out by `close`."""

    __slots__ = ("_connection", "_endpoint", "_has_body", "_is_kept", "headers", "status")

    def __init__(self, endpoint: "Endpoint", connection: Connection, *, has_body: bool) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._has_body = has_body
        self.status, self.headers, self._is_kept = connection.read_head()

    def read(self) -> bytes:
        """Read the whole body, and keep the connection for another request."""
        try:
            body = self._body()
        except BaseException:
            self.close()
            raise
        if self._is_kept:
            self._endpoint.keep(self._connection)
        else:
            self.close()
        return body

    def close(self) -> None:
        self._connection.close()

    def _body(self) -> bytes:
        if not self._has_body or self.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            return b""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return self._connection.read_chunks()
        length = self.headers.get("content-length")
        if length is None:
            self._is_kept = False
            return self._connection.read_to_end()
        if not length.isdecimal():
            raise BrokenReply("not the length of a body")
        return self._connection.read_exactly(int(length))


class Endpoint:
    """A service's address, with the connections that are kept to it."""

    def __init__(self, url: str, *, read_timeout_s: float) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc
        self._secure = parts.scheme == "https"
        self._name = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._read_timeout_s = read_timeout_s
        # Appending and popping are atomic, so threads need no lock.
        self._kept: list[Connection] = []
        self._is_used = True

    def send(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        """Send a request. Raises OSError, and StaleConnection if the next try opens a connection that works."""
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        if method in ("PUT", "POST", "DELETE"):
            lines.append(f"content-length: {len(body)}\r\n")
        head = f"{method} {target} HTTP/1.1\r\n{''.join(lines)}\r\n"
        self._is_used = True
        connection = self._connection()
        try:
            connection.send(head.encode("latin-1"), body)
            return Reply(self, connection, has_body=method != "HEAD")
        except BaseException as error:
            connection.close()
            if connection.was_kept and isinstance(error, ConnectionError | BrokenReply):
                # Lambda freezes an instance between requests. The others were kept as long, and ended as well.
                self.close()
                raise StaleConnection from error
            raise

    def connect(self) -> None:
        """Open a further connection for a request that comes later. Raises OSError."""
        self._is_used = True
        self.keep(self._opened())

    def keep(self, connection: Connection) -> None:
        """Keep the connection of a request that has ended, unless `close` was called meanwhile."""
        connection.was_kept = True
        self._kept.append(connection)
        if not self._is_used:
            self.close()

    def close(self) -> None:
        """Close all connections until the next request. One that a request uses is closed when that ends."""
        self._is_used = False
        while self._kept:
            self._kept.pop().close()

    def _connection(self) -> Connection:
        while self._kept:
            connection = self._kept.pop()
            if connection.is_idle():
                return connection
            connection.close()
        return self._opened()

    def _opened(self) -> Connection:
        return Connection(
            self._name, self._port, secure=self._secure, read_timeout_s=self._read_timeout_s
        )


@cache
def _tls() -> "SSLContext":
    # Imported here, because local services do without.
    from ssl import create_default_context

    return create_default_context()
