"""Whether a request comes from this machine. Pages of `/_local` with secrets answer no other."""

from __future__ import annotations

from ipaddress import ip_address

from starlette.types import Scope


def is_from_this_machine(scope: Scope) -> bool:
    if not (scope.get("client") and scope.get("server")):
        return False  # The client has disconnected.
    client, server = scope["client"][0], scope["server"][0]
    return client == server or ip_address(client).is_loopback
