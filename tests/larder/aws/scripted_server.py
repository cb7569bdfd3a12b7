"""A server on loopback that records requests and replies by a script, also with broken replies."""

import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import parse_headers
from io import BufferedReader
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Scripted:
    """A reply. `sent` is how many bytes of the body are sent before the connection ends; None sends all of them.

    It waits at `waits_for` until as many requests have come.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    sent: int | None = None
    closes: bool = False
    waits_for: threading.Barrier | None = None


LOST = Scripted(0)
"""The connection ends without a reply."""
RESET = Scripted(-1)
"""The connection is reset."""


def damaged(reply: Scripted) -> Scripted:
    """The reply with the checksum of another one, as DynamoDB has it."""
    checksum = str(zlib.crc32(reply.body + b"x"))
    return Scripted(reply.status, reply.body, (*reply.headers, ("x-amz-crc32", checksum)))


@dataclass(frozen=True)
class Recorded:
    """A request. The names of its headers are in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(repr=False)
class ScriptedServer:
    """Replies to one request after the other as `script` says; its last reply is repeated."""

    port: int
    script: list[Scripted] = field(default_factory=list)
    requests: list[Recorded] = field(default_factory=list, repr=False)
    _connections: list[socket.socket] = field(default_factory=list, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plays(self, *script: Scripted) -> None:
        self.script, self.requests = list(script), []

    def close_connections(self) -> None:
        """End the idle connections, as a service does after some seconds."""
        for connection in self._connections:
            connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def received(self, number: int) -> None:
        """Wait until this many requests have come. Fails if more have, or fewer within 30 seconds."""
        ends = time.monotonic() + 30
        while len(self.requests) < number and time.monotonic() < ends:
            time.sleep(0.01)
        assert len(self.requests) == number

    def serve(self, connection: socket.socket) -> None:
        self._connections.append(connection)
        number = len(self._connections)
        with connection, connection.makefile("rb") as reader:
            while (request := _read(reader, number)) is not None:
                self.requests.append(request)
                reply = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                if reply.waits_for is not None:
                    reply.waits_for.wait(timeout=30)
                if not _send(connection, request, reply):
                    return


def _read(reader: BufferedReader, number: int) -> Recorded | None:
    try:
        line = reader.readline().decode()
    except OSError:
        return None
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    parts = urlsplit(target)
    headers = {name.lower(): value for name, value in parse_headers(reader).items()}
    body = reader.read(int(headers.get("content-length", "0")))
    return Recorded(method, parts.path, parse_qs(parts.query), headers, body, number)


def _send(connection: socket.socket, request: Recorded, reply: Scripted) -> bool:
    """Returns whether the connection stays open."""
    if reply == RESET:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if reply.status <= 0:
        return False
    named = dict(reply.headers)
    if not any(name.lower() == "content-length" for name in named):
        named["Content-Length"] = str(len(reply.body))
    if reply.closes:
        named["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    body = b"" if request.method == "HEAD" else reply.body[: reply.sent]
    connection.sendall(f"HTTP/1.1 {reply.status} Some reason\r\n{lines}\r\n".encode() + body)
    return reply.sent is None and not reply.closes


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ScriptedServer(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=server.serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def json_reply(status: int, body: Any) -> Scripted:
    return Scripted(status, json.dumps(body).encode(), (("Content-Type", "application/x-amz-json-1.0"),))
