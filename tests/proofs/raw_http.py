"""HTTP as an attacker writes it, byte for byte, including requests that no client library sends."""

import contextlib
import http.client
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

TIMEOUT_S = 30
"""The gateway's own limit. A later reply counts as missing."""


@dataclass(frozen=True)
class RawRequest:
    """One request. Only a `content-length` in the headers announces a length, which can be wrong."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def encoded(self) -> bytes:
        lines = [self.method + b" " + self.target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers]
        return b"\r\n".join([*lines, b"connection: close", b"", b""]) + self.body

    @property
    def is_cut_short(self) -> bool:
        """Whether the server waits for more bytes than the request has."""
        lengths = [value for name, value in self.headers if name.lower() == b"content-length"]
        chunked = any(name.lower() == b"transfer-encoding" for name, _ in self.headers)
        return chunked or (lengths != [str(len(self.body)).encode()] and bool(lengths))


@dataclass(frozen=True)
class RawReply:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header. The values of a repeated header are joined."""
        values = [value for known, value in self.headers if known.lower() == name]
        return ", ".join(values) if values else None

    @property
    def everything(self) -> bytes:
        lines = [f"{name}: {value}" for name, value in self.headers]
        return "\n".join(lines).encode("latin-1") + b"\n\n" + self.body


def exchange(server: str, request: RawRequest) -> RawReply | None:
    """The first reply of the server at this URL, or None if it closes the connection. Raises TimeoutError."""
    address = urlsplit(server)
    assert address.hostname is not None
    with socket.create_connection((address.hostname, address.port or 80), TIMEOUT_S) as connection:
        # The server can refuse a request before its end and close the connection.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request.encoded())
            if request.is_cut_short:
                connection.shutdown(socket.SHUT_WR)
        return _read(connection, request.method.decode("latin-1"))


def _read(connection: socket.socket, method: str) -> RawReply | None:
    reply = http.client.HTTPResponse(connection, method=method)
    try:
        reply.begin()
        return RawReply(reply.status, tuple(reply.getheaders()), reply.read())
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return None
    finally:
        reply.close()
