"""Whether a request comes from this machine. Pages of `/_local` with secrets answer no other.

A tunnel or a reverse proxy on this machine connects from here for people elsewhere. It sends their `Host`, or a header
about them, or speaks HTTP/1.0, as nginx does by default. Clients on this machine do none of these.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from starlette.types import Scope

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_OF_PROXIES = re.compile(
    r"x-forwarded-.+|x-original-.+|x-envoy-.+|cf-.+|fly-.+|ngrok-.+|tailscale-.+"
    r"|forwarded|via|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|fastly-client-ip"
)
_DEFAULT_PORT = 80


def is_from_this_machine(scope: Scope) -> bool:
    if not (scope.get("client") and scope.get("server")):
        return False  # The client has disconnected.
    client, (server, port) = scope["client"][0], scope["server"]
    if client != server and not ip_address(client).is_loopback:
        return False
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    if scope["http_version"] == "1.0" or any(_OF_PROXIES.fullmatch(name) for name, _ in headers):
        return False
    hosts = [value.lower() for name, value in headers if name == "host"]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None or int(match["port"] or _DEFAULT_PORT) != (port or _DEFAULT_PORT):
        return False
    name = match["name"].strip("[]")
    # The address of the connection, because the service may listen on no other.
    return name in ("localhost", server) or is_loopback(name)


def is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
