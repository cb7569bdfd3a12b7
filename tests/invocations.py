"""Asynchronous invocations between functions, caught before they are sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from larder.aws import boto
from tests.hooks import registered
from tests.moto_sockets import taking


@contextmanager
def handed_over(function: str) -> Iterator[list[dict[str, Any]]]:
    """Record asynchronous invocations of this function without running it. Yields their payloads."""
    payloads: list[dict[str, Any]] = []
    path = f"/2015-03-31/functions/{function}/invocations"

    def take_by_wire(target: str, headers: Any, body: bytes) -> int | None:
        if target != path:
            return None
        assert headers["X-Amz-Invocation-Type"] == "Event"
        payloads.append(json.loads(body))
        return 202

    def take(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if params["url_path"] != path:
            return None
        assert params["headers"]["X-Amz-Invocation-Type"] == "Event"
        payloads.append(json.loads(params["body"]))
        return SimpleNamespace(status_code=202), {"StatusCode": 202, "ResponseMetadata": {}}

    by_boto3 = registered("before-call.lambda.Invoke", take, boto.client("lambda"))
    with by_boto3, taking(take_by_wire):
        yield payloads
