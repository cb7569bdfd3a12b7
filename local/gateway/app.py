"""Handle a request as API Gateway does."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from starlette.types import Receive, Scope, Send

from local.function_pool import FunctionFailed, FunctionPool
from local.gateway import limits
from local.gateway.replies import InvalidReply, Reply, parse_reply, refusal
from local.gateway.routing import Routes
from local.gateway.throttle import UNLIMITED, Limits
from local.http_event import build_http_event, size_with_binary_body
from local.request_log import RequestLog
from local.template import Function, Route

# The gateway ends connections, and sets the others itself.
_NOT_FORWARDED = frozenset(
    {
        b"connection",
        b"expect",
        b"transfer-encoding",
        b"x-amzn-trace-id",
        b"x-forwarded-for",
        b"x-forwarded-port",
        b"x-forwarded-proto",
    }
)
_ARTIFACT_UPLOAD = re.compile(r"/v8/artifacts/[^/]+")
_PREFLIGHT_REMARK = (
    "too large to pass through the API: run turbo with --preflight to upload straight to storage"
)


class BodyTooLarge(Exception):
    """The body is larger than the gateway's limit. `size` is its announced size, or how much was read."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class Gateway:
    """The ASGI application."""

    def __init__(
        self,
        routes: list[Route],
        functions: FunctionPool,
        log: RequestLog,
        *,
        timeout_s: float = limits.INTEGRATION_TIMEOUT_S,
        limited: Limits = UNLIMITED,
    ) -> None:
        self._routes = Routes(routes)
        self._timeout_s = timeout_s
        self._functions = functions
        self._log = log
        self._bucket = limited.bucket()
        self._concurrency = limited.concurrency
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        method, path = scope["method"], _path(scope)
        request_id = secrets.token_urlsafe(11) + "="
        try:
            reply, received, remark = await self._handle(scope, receive, method, path, request_id)
        except ClientGone:
            self._log.note(
                f"{method} {path}: the client disconnected before its request was complete"
            )
            return
        await _send(send, reply, request_id, method)
        self._log.request(
            method,
            path,
            reply.status,
            took_ms=(time.perf_counter() - started) * 1000,
            received_bytes=received,
            sent_bytes=len(reply.body),
            location=reply.header(b"location"),
            remark=remark,
        )

    async def _handle(
        self, scope: Scope, receive: Receive, method: str, path: str, request_id: str
    ) -> tuple[Reply, int, str | None]:
        """The reply, the number of bytes received, and a remark for the log."""
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        if limits.header_bytes(headers) > limits.MAX_HEADER_BYTES:
            return refusal(limits.HEADERS_TOO_LARGE), 0, None
        route = self._routes.find(method, path)
        if route is None:
            return refusal(limits.NOT_FOUND), 0, None
        if self._bucket and not self._bucket.take(time.monotonic()):
            return refusal(limits.THROTTLED), 0, "throttled by THROTTLE"
        function, route_key, parameters = route
        is_upload = method == "PUT" and _ARTIFACT_UPLOAD.fullmatch(path)
        too_large = _PREFLIGHT_REMARK if is_upload else None
        try:
            body = await _read_body(receive, _announced_length(headers))
        except BodyTooLarge as error:
            return refusal(limits.TOO_LARGE), error.size, too_large
        event = build_http_event(
            method,
            path,
            scope["query_string"].decode("latin-1"),
            _gateway_headers(headers, scope),
            body,
            route_key=route_key,
            path_parameters=parameters,
            source_ip=_client_address(scope),
            request_id=request_id,
            now=datetime.now(tz=UTC),
            domain_name=_host(headers),
            leave_out_binary=True,
        )
        payload = json.dumps(event, ensure_ascii=False).encode("utf-8")
        binary = body if event["isBase64Encoded"] else b""
        if size_with_binary_body(payload, binary) > limits.MAX_EVENT_BYTES:
            return refusal(limits.TOO_LARGE), len(body), too_large
        if self._concurrency is not None and self._running >= self._concurrency:
            return refusal(limits.TOO_MANY_FUNCTIONS), len(body), "no function left of CONCURRENCY"
        self._running += 1
        try:
            reply = await self._invoke(function, payload, request_id, method, binary)
        finally:
            self._running -= 1
        return reply, len(body), None

    async def _invoke(
        self, function: Function, payload: bytes, request_id: str, method: str, binary: bytes
    ) -> Reply:
        try:
            # Not wait_for, which starts a task for every request.
            async with asyncio.timeout(self._timeout_s):
                result = await self._functions.invoke(function, payload, request_id, binary)
            if len(result) > limits.MAX_EVENT_BYTES:
                raise InvalidReply(f"is {len(result)} bytes, and Lambda returns at most 6 MB")
            return parse_reply(result, method)
        except TimeoutError:
            self._log.note(
                f"{function.logical_id} did not respond within {self._timeout_s:.0f} s (request {request_id})"
            )
            return refusal(limits.TOOK_TOO_LONG)
        except FunctionFailed as error:
            self._log.note(f"{function.logical_id} failed: {error} (request {request_id})")
        except InvalidReply as error:
            self._log.note(f"{function.logical_id}: its reply {error} (request {request_id})")
        return refusal(limits.FUNCTION_FAILED)


def _path(scope: Scope) -> str:
    raw: str = scope["raw_path"].decode("latin-1")
    # If TURBO_API ends with a slash, turbo sends `//v8/...`.
    return "/" + raw.lstrip("/") if raw.startswith("//") else raw


def _announced_length(headers: list[tuple[bytes, bytes]]) -> int:
    return max((int(value) for name, value in headers if name == b"content-length"), default=0)


async def _read_body(receive: Receive, announced: int) -> bytes:
    """The entire body. Raises BodyTooLarge without keeping more than the limit.

    The server drains the rest, because some clients read the response only after sending everything. Closing the
    connection would reset it.
    """
    if announced > limits.MAX_BODY_BYTES:
        raise BodyTooLarge(announced)
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > limits.MAX_BODY_BYTES:
            raise BodyTooLarge(size)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _gateway_headers(headers: list[tuple[bytes, bytes]], scope: Scope) -> list[tuple[str, str]]:
    """The headers for the function: the client's without connection headers, and those that the gateway adds."""
    seen = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name not in _NOT_FORWARDED
    ]
    forwarded = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return [
        *seen,
        ("x-forwarded-for", ", ".join([*forwarded, _client_address(scope)])),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", str((scope.get("server") or ("", 80))[1])),
        ("x-amzn-trace-id", f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)}"),
    ]


def _client_address(scope: Scope) -> str:
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else "127.0.0.1"


def _host(headers: list[tuple[bytes, bytes]]) -> str:
    """The Host header, which `OwnHosts` has checked."""
    for name, value in headers:
        if name == b"host":
            return value.decode("latin-1")
    return "localhost"


async def _send(send: Send, reply: Reply, request_id: str, method: str) -> None:
    headers: list[tuple[bytes, bytes]] = [
        *reply.headers,
        (b"apigw-requestid", request_id.encode("ascii")),
    ]
    if reply.status not in (204, 304) and reply.header(b"content-length") is None:
        headers.append((b"content-length", str(len(reply.body)).encode("ascii")))
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": reply.status,
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else reply.body})
