"""Asynchronous invocations between functions, caught before they are sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from larder import aws
from tests.hooks import hooked
from tests.rehearsal.acting import rehearsing


@contextmanager
def handed_over(function: str) -> Iterator[list[dict[str, Any]]]:
    """Record asynchronous invocations of this function without running it. Yields their payloads."""
    payloads: list[dict[str, Any]] = []

    def take(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if params["url_path"] != f"/2015-03-31/functions/{function}/invocations":
            return None
        assert params["headers"]["X-Amz-Invocation-Type"] == "Event"
        payloads.append(json.loads(params["body"]))
        if rehearsing():
            # A dry run, which only checks the permission.
            params["headers"]["X-Amz-Invocation-Type"] = "DryRun"
            return None
        return SimpleNamespace(status_code=202), {"StatusCode": 202, "ResponseMetadata": {}}

    with hooked("before-call.lambda.Invoke", take, aws.lambda_()):
        yield payloads
