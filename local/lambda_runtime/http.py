"""HTTP/1.1 on a loopback port, for processes of this machine.

Each environment has its own port, so that the API knows which environment sends a request. uvicorn cannot add or remove
sockets while it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import h11

from local.http_server import listen

_READ_BYTES = 2**18
_HOST = "127.0.0.1"
_MOST_HEADER_BYTES = 2**21
"""AWS's client sends an error's cause in a header of up to 1 MiB."""

Headers = list[tuple[str, str]]


class Request(NamedTuple):
    """`size` is that of the received body. If it exceeds the limit, `body` is empty. Header names are in lower case."""

    method: str
    path: str
    body: bytes
    size: int
    headers: dict[str, str]


class Response(NamedTuple):
    status: int
    body: bytes
    headers: Headers


Answer = Callable[[Request], Awaitable[Response]]


class Listener:
    """Answers requests on a free port until it is closed."""

    def __init__(self, answer: Answer, *, max_body_bytes: int) -> None:
        self._answer = answer
        self._max_body_bytes = max_body_bytes
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def open(self, on: socket.socket | None = None) -> str:
        """Listen on a free port, or on this socket. Returns `host:port`."""
        listener = on or listen(_HOST, 0)
        self._server = await asyncio.start_server(self._connected, sock=listener)
        host, port = listener.getsockname()[:2]
        return f"{host}:{port}"

    def close(self) -> None:
        """Close the port and the connections."""
        if self._server:
            self._server.close()
        for conversation in self._conversations:
            conversation.cancel()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEADER_BYTES)
        # A killed process does not close its connection properly.
        with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
            try:
                while request := await self._receive(connection, reader):
                    response = await self._answer(request)
                    writer.writelines(_packed(connection, response))
                    await writer.drain()
                    if connection.our_state is h11.MUST_CLOSE:
                        return
                    connection.start_next_cycle()
            finally:
                writer.close()

    async def _receive(
        self, connection: h11.Connection, reader: asyncio.StreamReader
    ) -> Request | None:
        """The next request, or None at the end of the connection."""
        method, path, body, size = "", "", bytearray(), 0
        headers: dict[str, str] = {}
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(_READ_BYTES))
            elif isinstance(event, h11.Request):
                method, path = event.method.decode("ascii"), event.target.decode("ascii")
                headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size <= self._max_body_bytes:
                    body += event.data
                else:
                    body.clear()
            elif isinstance(event, h11.EndOfMessage):
                return Request(method, path, bytes(body), size, headers)
            else:
                return None


def _packed(connection: h11.Connection, response: Response) -> list[bytes]:
    headers = [*response.headers, ("content-length", str(len(response.body)))]
    events: list[h11.Event] = [
        h11.Response(status_code=response.status, headers=headers),
        h11.Data(data=response.body),
        h11.EndOfMessage(),
    ]
    return [connection.send(event) or b"" for event in events]
