"""The messages between parent and worker: a head (a small JSON object), JSON bytes, and bytes, with their lengths.

An event's JSON is passed on as bytes, so that it is encoded only once. A binary body of a request follows it as it is:
JSON with a megabyte of base64 takes longer to encode and decode than the rest of the request.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, cast

Message = tuple[dict[str, Any], bytes, memoryview]

_LENGTHS = struct.Struct("!III")
_LARGE_BYTES = 2**16


class Gone(Exception):
    """The other side has closed the connection."""


def pack(head: dict[str, Any], body: bytes, binary: bytes = b"") -> tuple[bytes, ...]:
    """The bytes of one message. A small one is in one piece, so that its reader wakes up only once."""
    encoded = json.dumps(head).encode("utf-8")
    start = _LENGTHS.pack(len(encoded), len(body), len(binary)) + encoded
    if len(body) + len(binary) < _LARGE_BYTES:
        return (start + body + binary,)
    return start, body, binary


def send(connection: socket.socket, head: dict[str, Any], body: bytes) -> None:
    for piece in pack(head, body):
        connection.sendall(piece)


def receive(connection: socket.socket) -> Message:
    """The next message. Raises Gone."""
    head, body, binary = _LENGTHS.unpack(_read_exactly(connection, _LENGTHS.size))
    # Often all of it at once: the sender writes a small message in one piece.
    rest = memoryview(_read_exactly(connection, head + body + binary))
    return _split(rest, head, body)


class Conversation(asyncio.Protocol):
    """The parent's end of the connection to a worker. Each side sends when it has received."""

    @classmethod
    async def on(cls, connection: socket.socket) -> Conversation:
        loop = asyncio.get_running_loop()
        _, conversation = await loop.create_connection(lambda: cls(connection), sock=connection)
        return conversation

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._wanted = _LENGTHS.size
        self._next: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    async def exchange(self, head: dict[str, Any], body: bytes, binary: bytes) -> Message:
        """Send a message and wait for the next one. Raises Gone."""
        self._next = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            raise Gone
        self._transport.writelines(pack(head, body, binary))
        return await self._next

    async def receive(self) -> Message:
        """The first message. Raises Gone."""
        return await self._next

    def has_ended(self) -> bool:
        """Whether the other side has closed the connection, even if the event loop has not noticed it yet."""
        try:
            return not self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        if self._transport:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < self._wanted:
            return
        head, body, binary = _LENGTHS.unpack_from(self._received)
        start = _LENGTHS.size
        self._wanted = start + head + body + binary
        if len(self._received) < self._wanted:
            return
        rest = memoryview(self._received)[start:]
        self._received, self._wanted = bytearray(), start
        if not self._next.done():
            self._next.set_result(_split(rest, head, body))

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._next.done():
            self._next.set_exception(Gone())


def _split(rest: memoryview, head: int, body: int) -> Message:
    end = head + body
    return json.loads(bytes(rest[:head])), bytes(rest[head:end]), rest[end:]


def _read_exactly(connection: socket.socket, length: int) -> bytearray:
    buffer = bytearray(length)
    view, filled = memoryview(buffer), 0
    while filled < length:
        count = connection.recv_into(view[filled:])
        if count == 0:
            raise Gone
        filled += count
    return buffer
