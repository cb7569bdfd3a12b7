"""uvicorn as every part of the local cloud runs it: on a socket that is already bound, stopped by its owner."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

_GRACE_S = 1


class Server(uvicorn.Server):
    """A server that leaves signals to the process it runs in: set `should_exit` to stop it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
    listener = socket.socket(family, socket.SOCK_STREAM)
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
