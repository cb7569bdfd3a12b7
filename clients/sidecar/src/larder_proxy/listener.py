"""Where build tools find a sidecar: a port of this computer, a token, and the variables that name both."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import closing, suppress

from larder_proxy.clients import CLIENTS

HOST = "127.0.0.1"
TEAM_OF_THE_TOKEN = "larder-run"  # noqa: S105  # a name
"""What turbo gets as its team if nobody has named one. The sidecar then names none, so the token decides."""

_PORTS, _TRIES = 20_000, 100
"""The first of ten thousand ports below those that systems give to outgoing connections."""


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


def variables_for(port: int, token: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What makes the tools use a sidecar, past a proxy of the environment."""
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
        **without_proxy(environment),
    }
    for client in CLIENTS:
        found.update({name: value.format(**known) for name, value in client.variables.items()})
    return found


def without_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """NO_PROXY and no_proxy with this computer: some tools read one of them, some the other."""
    found = {}
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        kept = environment.get(name) or environment.get(other) or ""
        hosts = [one.strip() for one in kept.split(",")]
        added = [] if "*" in hosts else [one for one in (HOST, "localhost") if one not in hosts]
        found[name] = ",".join([*([kept] if kept else []), *added])
    return found


def environment_for(listener: Listener, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a build: what the user has set stays.

    Values of another sidecar get this one's address and token. That one is around this build, or has left them in a
    shell.
    """
    found = variables_for(listener.port, listener.token, environment)
    address, token = (environment.get(name, "") for name in ("LARDER_PROXY", "LARDER_PROXY_TOKEN"))
    other = {address.partition("//")[2]: f"{HOST}:{listener.port}", token: listener.token}
    for name, value in environment.items():
        if name not in found:
            found[name] = value
        elif name.upper() != "NO_PROXY":
            found[name] = value
            for old, new in other.items():
                found[name] = found[name].replace(old, new) if old else found[name]
    return found


def _free_port() -> int:
    """One that the system gives to no other program, also after this: sccache binds it later. 0 if all are taken."""
    for number in memoryview(os.urandom(2 * _TRIES)).cast("H"):
        port = _PORTS + number % 10_000
        with closing(socket.socket()) as one, suppress(OSError):
            one.bind((HOST, port))
            return port
    return 0
