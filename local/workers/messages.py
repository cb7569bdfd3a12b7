"""The messages between parent and worker: a head (a small JSON object) and a body (JSON bytes), with their lengths.

The body is passed on as bytes, so that an event of 6 MB is encoded only once.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

_LENGTHS = struct.Struct("!II")
_LARGE_BYTES = 2**16


class Gone(Exception):
    """The other side has closed the connection."""


def pack(head: dict[str, Any], body: bytes) -> tuple[bytes, ...]:
    """The bytes of one message. A small one is in one piece, so that its reader wakes up only once."""
    encoded = json.dumps(head).encode("utf-8")
    start = _LENGTHS.pack(len(encoded), len(body)) + encoded
    return (start + body,) if len(body) < _LARGE_BYTES else (start, body)


def send(connection: socket.socket, head: dict[str, Any], body: bytes) -> None:
    for piece in pack(head, body):
        connection.sendall(piece)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The next message. Raises Gone."""
    head_length, body_length = _LENGTHS.unpack(_read_exactly(connection, _LENGTHS.size))
    head: dict[str, Any] = json.loads(_read_exactly(connection, head_length))
    return head, _read_exactly(connection, body_length)


async def receive_async(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """The next message. Raises Gone."""
    try:
        head_length, body_length = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        head: dict[str, Any] = json.loads(await reader.readexactly(head_length))
        return head, await reader.readexactly(body_length)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise Gone from error


def _read_exactly(connection: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    view, filled = memoryview(buffer), 0
    while filled < length:
        count = connection.recv_into(view[filled:])
        if count == 0:
            raise Gone
        filled += count
    return bytes(buffer)
