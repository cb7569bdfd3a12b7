"""Lambda's Invoke, for asynchronous invocations between functions.

An invocation is written to a file before the reply, and deleted when the function has done it. As with Lambda, it is
delivered at least once, even across a restart.
Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
import re
import socket
import time
import uuid
from pathlib import Path

from larder_cli.files import write_private
from local.function_pool import FunctionPool
from local.lambda_runtime.http import Listener, Request, Response
from local.request_log import RequestLog
from local.retry_queue import RetryQueue, invoke_with_retries
from local.signatures import is_signed
from local.template import Function, function_arn

MAX_PAYLOAD_BYTES = 2**18
"""Lambda's long-standing limit for asynchronous invocations, 256 KB."""

_INVOKE = re.compile(r"/2015-03-31/functions/([^/?]+)/invocations")


class InvokeApi:
    """Accepts invocations after `open`, and delivers them during `run`."""

    def __init__(
        self,
        folder: Path,
        functions: list[Function],
        credentials: tuple[str, str],
        log: RequestLog,
    ) -> None:
        self._folder = folder
        self._functions = {function.name: function for function in functions}
        self._credentials = credentials
        self._log = log
        self._listener = Listener(self._answer, max_body_bytes=MAX_PAYLOAD_BYTES)
        self._queue: RetryQueue | None = None

    async def open(self, on: socket.socket | None = None) -> str:
        """Returns the value of AWS_ENDPOINT_URL_LAMBDA."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return f"http://{await self._listener.open(on)}"

    def close(self) -> None:
        self._listener.close()

    async def run(self, functions: FunctionPool) -> None:
        """Deliver until cancelled."""

        async def deliver(file: bytes) -> bool:
            invocation = json.loads(file)
            function = self._functions.get(invocation["function"])
            # It came from another template, so no function can handle it.
            if function is None:
                return False
            payload = json.dumps(invocation["payload"]).encode("ascii")
            what = f"invocation {invocation['request_id']}"
            return await invoke_with_retries(functions, function, payload, self._log, what=what)

        self._queue = RetryQueue(self._folder, deliver)
        await self._queue.run()

    async def _answer(self, request: Request) -> Response:
        invoke = _INVOKE.fullmatch(request.path)
        if request.method != "POST" or invoke is None:
            return _refusal(
                404, "UnknownOperationException", "The local cloud only supports Invoke"
            )
        if request.size > MAX_PAYLOAD_BYTES:
            return _refusal(
                413, "RequestTooLargeException", f"The payload of {request.size} bytes is too large"
            )
        if not is_signed(
            request.method,
            request.path,
            "",
            request.headers,
            request.body,
            credentials=self._credentials,
        ):
            return _refusal(
                403, "UnrecognizedClientException", "The security token is invalid or missing"
            )
        if invoke[1] not in self._functions:
            message = f"Function not found: {function_arn(invoke[1])}"
            return _refusal(404, "ResourceNotFoundException", message)
        if request.headers.get("x-amz-invocation-type") != "Event":
            message = "The local cloud only supports asynchronous invocations (Event)"
            return _refusal(400, "InvalidParameterValueException", message)
        try:
            payload = json.loads(request.body)
        except ValueError:
            return _refusal(400, "InvalidRequestContentException", "The payload is not JSON")
        request_id = str(uuid.uuid4())
        self._keep({"function": invoke[1], "request_id": request_id, "payload": payload})
        return Response(202, b"", [("x-amzn-requestid", request_id)])

    def _keep(self, invocation: dict[str, object]) -> None:
        # Named by time, so that they are delivered roughly in order of arrival.
        name = f"{time.time_ns():020d}-{invocation['request_id']}.json"
        write_private(self._folder / name, json.dumps(invocation))
        if self._queue:
            self._queue.wake()


def _refusal(status: int, code: str, message: str) -> Response:
    body = json.dumps({"Type": "User", "Message": message}).encode("utf-8")
    headers = [("content-type", "application/json"), ("x-amzn-errortype", code)]
    return Response(status, body, headers)
