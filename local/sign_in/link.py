"""`/_local/sign-in` in front of the gateway: the link in the banner, which signs a browser in to the console.

The link works once, and only for a browser on this machine. Any other request to it continues at the sign-in page,
which says that the link was used.
"""

from __future__ import annotations

import json
import secrets
import uuid
from pathlib import Path
from urllib.parse import parse_qs

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from local.function_pool import FunctionFailed, FunctionPool
from local.template import Function
from local.this_machine import is_from_this_machine

PATH = "/_local/sign-in"

_COOKIE = "better-auth.session_token"
_STARTER = Function("SignInOperator", "local.sign_in.session.handler", Path(), 30, 512)


class SignInLink:
    """ASGI middleware: handles `/_local/sign-in` and passes the rest to `app`. `functions` start the session."""

    def __init__(self, app: ASGIApp, functions: FunctionPool) -> None:
        self._app = app
        self._functions = functions
        self._token: str | None = secrets.token_urlsafe(24)

    @property
    def path(self) -> str:
        """The path of the link, with its token."""
        return f"{PATH}?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        takes = self._takes(scope)
        path = "/sign-in?next=/console"
        response = RedirectResponse(path if takes else f"{path}&error=link_used", 303)
        response.headers["cache-control"] = "no-store"
        response.headers["referrer-policy"] = "no-referrer"
        if takes and (cookie := await self._session()):
            response.set_cookie(_COOKIE, cookie, httponly=True, samesite="lax")
        await response(scope, receive, send)

    def _takes(self, scope: Scope) -> bool:
        """Whether the request has the token. If so, the token is used up."""
        sent = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is None or not is_from_this_machine(scope):
            return False
        if not secrets.compare_digest(sent.encode(), self._token.encode()):
            return False
        self._token = None
        return True

    async def _session(self) -> str | None:
        """The value of a new session's cookie. None if there is no user, or the tables do not answer."""
        try:
            reply = await self._functions.invoke(_STARTER, b"{}", str(uuid.uuid4()))
        except FunctionFailed:
            return None
        cookie: str | None = json.loads(reply)["cookie"]
        return cookie
