"""The HTTP front of the tables: signatures and the supported operations."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from local.signatures import is_signed

READS = frozenset(
    {
        "BatchGetItem",
        "DescribeEndpoints",
        "DescribeLimits",
        "DescribeTable",
        "GetItem",
        "ListTables",
        "Query",
        "Scan",
        "TransactGetItems",
    }
)
WRITES = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""

_MAX_BODY_BYTES = 17 * 2**20  # BatchWriteItem takes 16 MB


def refusal(code: str, message: str, status: int = 400) -> Reply:
    body = json.dumps(
        {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
    ).encode()
    return status, {"content-type": "application/x-amz-json-1.0"}, body


async def _read_body(receive: Receive) -> bytes | None:
    """The body, or None if it is larger than the limit."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


class Front:
    """The ASGI application in front of the tables.

    `answer` runs an operation (`PutItem`) with the body of its request. `credentials` are the only valid ones: id and
    secret.
    """

    def __init__(
        self, answer: Callable[[str, bytes], Awaitable[Reply]], credentials: tuple[str, str]
    ) -> None:
        self._answer = answer
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _read_body(receive)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        status, reply_headers, reply = await self._reply(scope, headers, body)
        raw = [
            (name.lower().encode("ascii"), str(value).encode("ascii"))
            for name, value in reply_headers.items()
        ]
        raw = [pair for pair in raw if pair[0] != b"content-length"]
        raw.append((b"content-length", str(len(reply)).encode("ascii")))
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": reply})

    async def _reply(self, scope: Scope, headers: dict[str, str], body: bytes | None) -> Reply:
        if body is None:
            return refusal("ValidationException", "The request is too large")
        path, query = scope["path"], scope["query_string"].decode("latin-1")
        if not is_signed(
            scope["method"], path, query, headers, body, credentials=self._credentials
        ):
            return refusal(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            )
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in READS and action not in WRITES:
            # An operation that is not journalled must fail, not appear to work.
            return refusal(
                "UnknownOperationException",
                f"The local cloud does not support {action or 'an operation without a name'}",
            )
        return await self._answer(action, body)
