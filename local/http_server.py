"""The uvicorn configuration for all servers of the local cloud. Each gets a bound socket, and its owner stops it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import uvicorn
import uvloop

_GRACE_S = 1

T = TypeVar("T")


class Server(uvicorn.Server):
    """A server that handles no signals. Set `should_exit` to stop it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
            http="httptools",
            backlog=512,
            # Clients keep connections for a whole build; turbo's pool waits longer than uvicorn's 5 s.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, any free port when `port` is 0. Raises OSError (EADDRINUSE, EACCES, ...)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm, which costs 40 ms a request, only if the protocol is explicit.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Allows a restart to bind the port while old connections linger. Two servers still cannot share a port.
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
