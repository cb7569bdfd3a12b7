"""The application of the edge: from the client's request through the functions to the bucket, and back.

Bodies pass through in the chunks in which they arrive. The bucket is called in the same process, by requests that are
signed as CloudFront's origin access control signs them.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from larder.aws.sigv4 import Signer
from local.edge.engine import EdgeFunction, FunctionError
from local.edge.events import (
    Event,
    Headers,
    Refused,
    check_request,
    check_response,
    header_list,
    query_string,
    request_event,
    response_event,
)
from local.edge.store import Store, UnknownState
from local.template import REGION, EdgeCode

_LONGEST_URL = 8192
_LARGEST_HEADERS = 20_480
_ERRORS_KEPT_S = 10.0
_METADATA = "x-amz-meta-"
_UNSIGNED = "UNSIGNED-PAYLOAD"
_DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
)

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _CachedErrors:
    """The last error of each path, and until when the state `errors-cached` repeats it."""

    until: dict[str, tuple[float, int]] = field(default_factory=dict)

    def status_of(self, path: str) -> int | None:
        until, status = self.until.get(path, (0.0, 0))
        return status if time.monotonic() < until else None

    def keep(self, path: str, status: int) -> None:
        self.until[path] = (time.monotonic() + _ERRORS_KEPT_S, status)


class Edge:
    """ASGI application in front of `origin`, the S3 server."""

    def __init__(self, origin: ASGIApp, bucket: str, code: EdgeCode, store: Store) -> None:
        self._origin = origin
        self._bucket = bucket
        self._store = store
        self._on_request = EdgeFunction(code.request, store.get)
        self._on_response = EdgeFunction(code.response, store.get)
        self._signer = Signer("s3", REGION)
        self._errors = _CachedErrors()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        method = scope["method"]
        path = scope["raw_path"].decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        if too_large(path, query, headers):
            await _reply(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        if method in ("GET", "HEAD") and _has_body(headers):
            await _reply(send, HTTPStatus.FORBIDDEN)
            return
        try:
            states = self._store.states()
            event = request_event(method, path, query, headers, scope["client"][0])
            request = self._admitted(event, states)
        except (FunctionError, Refused, UnknownState) as error:
            await self._fail(send, error)
            return
        if "statusCode" in request:
            await _reply_of_function(send, request, method)
            return
        if "errors-cached" in states and method != "PUT":
            cached = self._errors.status_of(path)
            if cached is not None:
                await _reply(send, cached, _DENIED, xml=True)
                return
        await self._forward(request, states, scope, receive, send)

    def _admitted(self, event: Event, states: frozenset[str]) -> Event:
        """What the function returns: a request for the bucket, or a reply. Raises FunctionError, Refused."""
        if "no-content-length" in states:
            event["request"]["headers"].pop("content-length", None)
        result = self._on_request(event)
        if "statusCode" not in result:
            check_request(event["request"], result)
        return result

    async def _forward(
        self, request: Event, states: frozenset[str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = self._headers_for_origin(request, states, scope)
        refusal = _refusal_of_bucket(request["method"], headers, states)
        if refusal is not None:
            await _reply(send, refusal, _DENIED, xml=True)
            return
        path = f"/{self._bucket}{request['uri']}"
        query = query_string(request["querystring"])
        self._signer.sign(
            request["method"],
            path,
            query,
            signed := _to_sign(headers),
            signed["x-amz-content-sha256"],
        )
        headers |= signed
        forwarded = {
            **scope,
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
            ],
            # What the application of the client's request has put here is not the bucket's.
            "state": {},
        }
        await self._origin(forwarded, receive, self._returned(request, states, send))

    def _headers_for_origin(
        self, request: Event, states: frozenset[str], scope: Scope
    ) -> dict[str, str]:
        headers = dict(header_list(request["headers"]))
        if "no-content-length" in states:
            # Only the function does not see it.
            headers |= {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in scope["headers"]
                if name == b"content-length"
            }
        if "once-dropped" in states:
            headers.pop("if-none-match", None)
        return headers

    def _returned(self, request: Event, states: frozenset[str], send: Send) -> Send:
        """A `send` that passes the bucket's reply on to the client."""
        replaced = False

        async def send_on(message: Message) -> None:
            nonlocal replaced
            if message["type"] != "http.response.start":
                if not replaced:
                    await send(message)
                return
            status: int = message["status"]
            if status == HTTPStatus.NOT_FOUND:
                # CloudFront has no permission to list the bucket, so S3 does not say what is missing.
                status, replaced = int(HTTPStatus.FORBIDDEN), True
            if request["method"] != "PUT" and _is_kept(status):
                self._errors.keep(request["uri"], status)
            if replaced:
                await _reply(send, status, _DENIED, xml=True, method=request["method"])
                return
            headers = [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in message["headers"]
            ]
            if status < HTTPStatus.BAD_REQUEST:
                try:
                    headers = self._headers_for_client(request, status, headers, states)
                except (FunctionError, Refused) as error:
                    replaced = True
                    await self._fail(send, error)
                    return
            await send({**message, "status": status, "headers": _encoded(headers)})

        return send_on

    def _headers_for_client(
        self, request: Event, status: int, headers: Headers, states: frozenset[str]
    ) -> Headers:
        if "meta-hidden" in states:
            headers = [(name, value) for name, value in headers if not name.startswith(_METADATA)]
        event = response_event(request, status, headers)
        response = self._on_response(event)
        check_response(event["response"], response)
        return header_list(response["headers"])

    async def _fail(self, send: Send, error: Exception) -> None:
        _logger.warning("%s: %s", type(error).__name__, error)
        is_function = isinstance(error, FunctionError)
        status = HTTPStatus.SERVICE_UNAVAILABLE if is_function else HTTPStatus.BAD_GATEWAY
        await _reply(send, status)


def too_large(path: str, query: str, headers: Headers) -> bool:
    url = len(path) + len(query) + 1
    return (
        url > _LONGEST_URL or url + sum(len(n) + len(v) + 4 for n, v in headers) > _LARGEST_HEADERS
    )


def _has_body(headers: Headers) -> bool:
    return any(
        name == "transfer-encoding" or (name == "content-length" and value != "0")
        for name, value in headers
    )


def _refusal_of_bucket(method: str, headers: dict[str, str], states: frozenset[str]) -> int | None:
    """The status with which S3 refuses an upload in these states."""
    if method != "PUT":
        return None
    lacks_digest = "needs-sha256" in states and "x-amz-content-sha256" not in headers
    has_metadata = any(name.startswith(_METADATA) for name in headers)
    if lacks_digest or ("meta-unsigned" in states and has_metadata):
        return int(HTTPStatus.FORBIDDEN)
    return None


def _to_sign(headers: dict[str, str]) -> dict[str, str]:
    """The headers that the signature covers: the host, and all of S3's own."""
    signed = {name: value for name, value in headers.items() if name.startswith("x-amz-")}
    return {"x-amz-content-sha256": _UNSIGNED, **signed, "host": headers["host"]}


def _is_kept(status: int) -> bool:
    return status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND) or status >= 500


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _reply_of_function(send: Send, result: Event, method: str) -> None:
    body: dict[str, Any] = result.get("body", {})
    content = str(body.get("data", "")).encode()
    await _send(send, result["statusCode"], header_list(result["headers"]), content, method)


async def _reply(
    send: Send, status: int, body: bytes | None = None, *, xml: bool = False, method: str = "GET"
) -> None:
    """CloudFront's or S3's own reply."""
    content = json.dumps({"status": int(status)}).encode() if body is None else body
    kind = "application/xml" if xml else "application/json"
    await _send(send, status, [("content-type", kind)], content, method)


async def _send(send: Send, status: int, headers: Headers, content: bytes, method: str) -> None:
    headers = [*headers, ("content-length", str(len(content)))]
    await send({"type": "http.response.start", "status": int(status), "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})
