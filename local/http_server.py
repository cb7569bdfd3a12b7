"""uvicorn as every part of the local cloud runs it: on a socket that is already bound, stopped by its owner."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_GRACE_S = 1
_ANSWER = b"HTTP/1.1 "

T = TypeVar("T")


class Server(uvicorn.Server):
    """A server that leaves signals to the process it runs in: set `should_exit` to stop it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _OnePiece:
    """A transport on which the head of an answer waits for the first of its body, until the event loop's next round.

    uvicorn sends them one after the other: twice the work for both sides, and whoever waits wakes up for a head alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes | memoryview) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif data[: len(_ANSWER)] == _ANSWER:
            self._head = bytes(data)
            self._loop.call_soon(self._send_head)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def _send_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Protocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_OnePiece(transport, self.loop))  # type: ignore[arg-type]


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on the faster event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def http_server(app: Any) -> Server:
    """A server for an ASGI application; `await server.serve(sockets=[...])` runs it."""
    return Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http=_Protocol,
            backlog=512,
            # Clients keep connections for a whole build; turbo's pool waits longer than uvicorn's 5 s.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, any free port when `port` is 0. Raises OSError (EADDRINUSE, EACCES, ...)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only where the protocol is spelt out; it costs 40 ms a request.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Lets a restart take the port while old connections linger; two servers on one port stay impossible.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def url(host: str, port: int) -> str:
    """`http://host:port`, with brackets around an IPv6 address."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
