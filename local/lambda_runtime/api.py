"""The Runtime API of one environment.

Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from local.function_pool import FunctionFailed
from local.gateway.limits import MAX_EVENT_BYTES
from local.lambda_runtime.http import Headers, Listener, Request, Response
from local.template import Function, function_arn

_ROOT = "/2018-06-01/runtime"
_OUTCOME = re.compile(rf"{_ROOT}/invocation/([^/]+)/(response|error)")
_LAST_FRAMES = 2


class HandlerFailed(FunctionFailed):
    """The handler raised an error. Its environment can still be used."""


class InitFailed(FunctionFailed):
    """The function's module could not be imported; `frames` are the last of the traceback, as Python prints them."""

    def __init__(self, message: str, frames: list[str]) -> None:
        super().__init__(message)
        self.frames = frames


@dataclass(frozen=True, slots=True)
class _Invocation:
    request_id: str
    event: bytes
    headers: Headers
    reply: asyncio.Future[bytes] = field(default_factory=asyncio.Future)


class RuntimeApi:
    """The Runtime API for the environment of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._listener = Listener(self._answer, max_body_bytes=MAX_EVENT_BYTES)
        self._initialized: asyncio.Future[None] = asyncio.Future()
        self._to_hand_out: asyncio.Queue[_Invocation] = asyncio.Queue()
        self._under_way: _Invocation | None = None

    async def open(self) -> str:
        """Returns the value of AWS_LAMBDA_RUNTIME_API."""
        return await self._listener.open()

    def close(self, reason: FunctionFailed) -> None:
        """The environment has ended: fail whatever waits for it with `reason`."""
        self._listener.close()
        if not self._initialized.done():
            self._initialized.set_exception(reason)
            # Nothing waits any more if the start was cancelled.
            self._initialized.exception()
        if self._under_way and not self._under_way.reply.done():
            self._under_way.reply.set_exception(reason)

    async def initialized(self) -> None:
        """Wait until the environment asks for its first event. Raises InitFailed, FunctionFailed."""
        await self._initialized

    async def invoke(self, event: bytes, request_id: str) -> bytes:
        """Pass on an event and wait for the reply. Raises HandlerFailed, FunctionFailed, TimeoutError."""
        invocation = _Invocation(request_id, event, self._headers(request_id))
        self._under_way = invocation
        self._to_hand_out.put_nowait(invocation)
        try:
            async with asyncio.timeout(self._function.timeout_s):
                return await invocation.reply
        finally:
            self._under_way = None

    def _headers(self, request_id: str) -> Headers:
        now_s = time.time()
        trace = f"Root=1-{int(now_s):08x}-{secrets.token_hex(12)};Parent={secrets.token_hex(8)};Sampled=0"
        return [
            ("content-type", "application/json"),
            ("lambda-runtime-aws-request-id", request_id),
            ("lambda-runtime-deadline-ms", str(int((now_s + self._function.timeout_s) * 1000))),
            ("lambda-runtime-invoked-function-arn", function_arn(self._function.logical_id)),
            ("lambda-runtime-trace-id", trace),
        ]

    async def _answer(self, request: Request) -> Response:
        if (request.method, request.path) == ("GET", f"{_ROOT}/invocation/next"):
            if not self._initialized.done():
                self._initialized.set_result(None)
            invocation = await self._to_hand_out.get()
            return Response(200, invocation.event, invocation.headers)
        if (request.method, request.path) == ("POST", f"{_ROOT}/init/error"):
            if not self._initialized.done():
                self._initialized.set_exception(_init_error(request.body))
            return _json_response(202, {"status": "OK"})
        outcome = _OUTCOME.fullmatch(request.path)
        if request.method == "POST" and outcome:
            return self._take_outcome(outcome[1], outcome[2], request)
        return _json_response(404, {"errorType": "NotFound", "errorMessage": request.path})

    def _take_outcome(self, request_id: str, kind: str, request: Request) -> Response:
        invocation = self._under_way
        if not invocation or invocation.request_id != request_id or invocation.reply.done():
            return _json_response(
                400, {"errorType": "InvalidRequestID", "errorMessage": request_id}
            )
        if request.size > MAX_EVENT_BYTES:
            message = f"its reply is {request.size} bytes, and Lambda returns at most 6 MB"
            invocation.reply.set_exception(FunctionFailed(message))
            # The client exits after this response, as in the cloud.
            return _json_response(
                413, {"errorType": "RequestEntityTooLarge", "errorMessage": message}
            )
        if kind == "response":
            invocation.reply.set_result(request.body)
        else:
            invocation.reply.set_exception(HandlerFailed(_error(request.body)[0]))
        return _json_response(202, {"status": "OK"})


def _json_response(status: int, content: dict[str, str]) -> Response:
    body = json.dumps(content).encode("utf-8")
    return Response(status, body, [("content-type", "application/json")])


def _init_error(body: bytes) -> InitFailed:
    message, frames = _error(body)
    return InitFailed(f"could not be initialized: {message}", frames[-_LAST_FRAMES:])


def _error(body: bytes) -> tuple[str, list[str]]:
    """The message, such as `ValueError: a reason`, and the traceback's frames from the client's error object."""
    try:
        error: dict[str, Any] = json.loads(body)
        frames = [str(frame) for frame in error.get("stackTrace") or []]
        return f"{error['errorType']}: {error['errorMessage']}", frames
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.decode("utf-8", "replace") or "an error without a message", []
