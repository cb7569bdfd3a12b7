"""`/_local/outbox` in front of the gateway, only for requests from this machine.

Mail contains links that reset passwords. So the pages only respond to requests from this machine. Listening on every
address opens the cache to other machines, but not the mail. `OwnHosts` in front refuses the names of other sites, which
could otherwise point at this machine.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.function_pool import FunctionFailed, FunctionPool
from local.outbox.markup import body_page, message_page, outbox_page
from local.template import Function
from local.this_machine import is_from_this_machine

_READER = Function("ReadOutbox", "local.outbox.reader.handler", Path(), 30, 512)
_PATH = re.compile(r"/_local/outbox(?:/(?P<id>[0-9a-f]{1,64})(?P<body>\.html)?|(?P<json>\.json))?")
_HEADERS = {
    "cache-control": "no-store",
    # Do not leak the URL of a page with a secret link, and do not allow other sites to frame it.
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'none'"
)
_BODY_POLICY = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none';"
    " style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'; form-action 'none'"
)


class OutboxPages:
    """ASGI middleware: handles `/_local/outbox...` and passes the rest to `app`. `functions` run the reader."""

    def __init__(self, app: ASGIApp, functions: FunctionPool) -> None:
        self._app = app
        self._functions = functions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _match_path(scope)
        if match is None or not is_from_this_machine(scope):
            await self._app(scope, receive, send)
            return
        try:
            response = await self._answer(match, scope)
        except FunctionFailed as error:
            response = PlainTextResponse(f"the outbox cannot be read: {error}\n", 502)
        response.headers.update(_HEADERS)
        await response(scope, receive, send)

    async def _answer(self, match: re.Match[str], scope: Scope) -> Response:
        if match["id"] is None:
            before = parse_qs(scope["query_string"].decode("latin-1")).get("before")
            page = await self._read({"before": before[0][:64] if before else None})
            return JSONResponse(page) if match["json"] else _html(outbox_page(page), _PAGE_POLICY)
        message = await self._read({"id": match["id"]})
        if message is None:
            return PlainTextResponse("there is no such message, or it has expired\n", 404)
        if match["body"]:
            return _html(body_page(message), _BODY_POLICY)
        return _html(message_page(message), _PAGE_POLICY)

    async def _read(self, event: dict[str, Any]) -> Any:
        payload = json.dumps(event).encode("ascii")
        return json.loads(await self._functions.invoke(_READER, payload, str(uuid.uuid4())))


def _match_path(scope: Scope) -> re.Match[str] | None:
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    return _PATH.fullmatch(scope["path"])


def _html(page: str, policy: str) -> Response:
    return HTMLResponse(page, headers={"content-security-policy": policy})
