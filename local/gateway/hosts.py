"""Refuse requests under a host name that is not this machine's.

Links in mail contain the name of the host that a request came to. Without this check, anyone who can reach the local
cloud could put another site's name into a password reset link. AWS refuses unknown hosts in the same way.
"""

from __future__ import annotations

import re

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.gateway.limits import FOREIGN_HOST
from local.gateway.replies import refusal
from local.request_log import RequestLog
from local.this_machine import is_loopback

_HOST = re.compile(rb"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


class OwnHosts:
    """ASGI middleware: accepts loopback names, the address of the connection and `public_host`. Others get 403."""

    def __init__(self, app: ASGIApp, public_host: str, log: RequestLog) -> None:
        self._app = app
        self._public_host = public_host.lower()
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_own(scope):
            await self._app(scope, receive, send)
            return
        status, message = FOREIGN_HOST
        self._log.note(f"{scope['method']} {scope['path']}  {status}  {message}")
        reply = refusal(FOREIGN_HOST)
        response = Response(reply.body, reply.status, media_type="application/json")
        await response(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if not hosts:
            return True  # HTTP/1.0. The links then name localhost.
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None:
            return False
        name = match["name"].decode().lower().strip("[]")
        server = scope.get("server")
        if name in ("localhost", self._public_host, server and server[0]):
            return True
        return name.endswith(".localhost") or is_loopback(name)
