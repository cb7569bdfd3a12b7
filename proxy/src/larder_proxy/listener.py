"""Where build tools find a sidecar: a port of this computer, a token, and the variables that name both."""

from __future__ import annotations

import os
import socket
from contextlib import closing

from larder_proxy.clients import CLIENTS

HOST = "127.0.0.1"


class Listener:
    """A port that takes connections from now on, and the token of those that get an answer. `port` 0 takes a free one.

    Raises OSError if the port is in use.
    """

    def __init__(self, port: int = 0) -> None:
        # Nx opens a hundred connections at once.
        self.socket = socket.create_server((HOST, port), backlog=512)
        self.port = int(self.socket.getsockname()[1])
        self.token = os.urandom(16).hex()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def turbo_variables(self) -> dict[str, str]:
        """What replaces the variables of turbo, which are also those of the sidecar."""
        return {"TURBO_API": self.url, "TURBO_TOKEN": self.token}


def variables_for(port: int, token: str) -> dict[str, str]:
    """What makes the tools use a sidecar, unless the user has set it."""
    known = {
        "url": f"http://{HOST}:{port}",
        "host": HOST,
        "port": str(port),
        "token": token,
        "free_port": str(_free_port()),
    }
    found = {
        "LARDER_PROXY": known["url"],
        "LARDER_PROXY_TOKEN": token,
        # turbo then describes its runs, which are reported.
        "TURBO_RUN_SUMMARY": "true",
    }
    for client in CLIENTS:
        found.update({name: value.format(**known) for name, value in client.variables.items()})
    return found


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])
