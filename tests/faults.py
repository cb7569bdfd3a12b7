"""AWS failures: botocore hooks replace the replies of the network."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectTimeoutError

from larder import aws
from tests.hooks import hooked

_CLIENTS: dict[str, Callable[[], Any]] = {
    "dynamodb": aws.dynamodb,
    "lambda": aws.lambda_,
    "s3": aws.s3,
    "secrets-manager": aws.secrets_manager,
    "sesv2": aws.sesv2,
}

Answer = tuple[int, dict[str, Any]]
"""The status and the parsed body."""


def error(code: str, status: int = 400, **more: Any) -> Answer:
    return status, {"Error": {"Code": code, "Message": code}, **more}


def reply(body: dict[str, Any]) -> Answer:
    return 200, body


def about(text: str) -> Callable[[dict[str, Any]], bool]:
    """Selects calls whose body has the text, for `answering`."""
    return lambda request: text.encode() in request["body"]


@contextmanager
def answering(
    service: str,
    operation: str,
    answer: Answer,
    *,
    times: int = 10**9,
    only: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Iterator[list[str]]:
    """Make calls of one operation return `answer` without effect, at most `times` times. Yields those calls.

    `only` selects calls by the request that botocore is about to send.
    """
    calls: list[str] = []

    def instead(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if len(calls) >= times or not only(params):
            return None
        calls.append(operation)
        status, parsed = answer
        return SimpleNamespace(status_code=status), {**parsed, "ResponseMetadata": {}}

    with hooked(f"before-call.{service}.{operation}", instead, _CLIENTS[service]()):
        yield calls


@contextmanager
def refusing(service: str, operation: str, status: int, body: dict[str, Any]) -> Iterator[list[str]]:
    """Like `answering`, but below botocore's retries, so that they happen. Yields the attempts."""
    tries: list[str] = []

    def instead(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        tries.append(operation)
        headers = HTTPHeaders.from_pairs([("content-type", "application/x-amz-json-1.0")])
        return AWSResponse(request.url, status, headers, _Body(json.dumps(body).encode()))

    with hooked(f"before-send.{service}.{operation}", instead, _CLIENTS[service]()):
        yield tries


class _Body(BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


@contextmanager
def unreachable(service: str, operation: str) -> Iterator[None]:
    """Make calls of one operation fail to connect."""

    def no_connection(**_: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="https://aws")

    with hooked(f"before-send.{service}.{operation}", no_connection, _CLIENTS[service]()):
        yield


@contextmanager
def just_before(service: str, operation: str, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` once, right before the next call of the operation is sent."""
    done: list[bool] = []

    def interrupt(**_: Any) -> None:
        if not done:
            done.append(True)
            act()

    with hooked(f"before-call.{service}.{operation}", interrupt, _CLIENTS[service]()):
        yield
    assert done, f"{operation} was never called"
