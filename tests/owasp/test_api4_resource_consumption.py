"""API4: Unrestricted resource consumption. Expensive requests are limited and refused early."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from local.gateway.app import Gateway
from local.request_log import RequestLog
from tests.catalogue import valid
from tests.conftest import SetOption
from tests.default_template import template
from tests.owasp.conftest import Person, operations
from tests.requests import Sender

DEEP = {
    "lists": b"[" * 100_000,
    "objects": b'{"a":' * 100_000,
    "closed": b"[" * 50_000 + b"]" * 50_000,
    "a long number": b'{"hashes": ' + b"9" * 100_000 + b"}",
    "many names": json.dumps(dict.fromkeys(map(str, range(20_000)), 0)).encode(),
}
WITH_BODY = [one for one, operation in operations().items() if "requestBody" in operation]


@pytest.mark.parametrize("deep", DEEP)
def test_a_body_that_is_slow_to_parse_is_refused_quickly(deep: str, ada: Person) -> None:
    began = time.process_time()
    for method, path in WITH_BODY:
        if path == "/v8/artifacts/{hash}":
            continue
        request = valid(f"{method} {path}", ada.names)
        headers = {**request.headers, "content-type": "application/json"}
        reply = replace(request, json=None, body=DEEP[deep], headers=headers)(ada.by_session)
        # A body with only unknown properties is accepted and changes nothing.
        assert reply.status in (200, 400, 403, 404), (method, path, reply.status)
    assert time.process_time() - began < 0.5 * len(WITH_BODY)


def test_compressed_data_is_stored_unchanged_and_never_decompressed(ada: Person) -> None:
    packed = gzip.compress(bytes(10_000_000))
    headers = {"content-encoding": "gzip"}
    assert ada.by_key("PUT", "/v8/artifacts/bomb", body=packed, headers=headers).status == 202
    assert ada.by_key("GET", "/v8/artifacts/bomb").body == packed


@pytest.mark.usefixtures("refusing")
def test_a_quota_holds_for_any_number_of_requests(ada: Person, option: SetOption) -> None:
    option("personal_quota_bytes", 1000)
    statuses = [ada.by_key("PUT", f"/v8/artifacts/part{number}", body=b"x" * 300).status for number in range(8)]
    assert statuses.count(202) == 3
    # The next sweep deletes the refused uploads. Until then no one can read them.
    assert ada.by_key("GET", "/v1/usage").json["storedBytes"] <= 1000


def test_another_x_forwarded_for_does_not_allow_more_attempts(ada: Person, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    body = {"email": ada.user.email, "password": "not the right one"}
    statuses = [
        Sender(None)(
            "POST",
            "/api/auth/sign-in/email",
            json_body=body,
            headers={"x-forwarded-for": f"198.51.100.{number}", "x-real-ip": f"10.0.0.{number}"},
        ).status
        for number in range(8)
    ]
    # A window can end in between.
    assert statuses.count(429) >= 2


class Silent:
    """A client that starts a body and then sends nothing."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()

    async def __call__(self) -> dict[str, Any]:
        self.waiting.set()
        await asyncio.Event().wait()
        raise AssertionError


def test_a_slow_body_does_not_occupy_a_function() -> None:
    invoked: list[str] = []

    class Functions:
        async def invoke(self, function: Any, *_: object) -> bytes:
            invoked.append(function.logical_id)
            return b'{"statusCode": 204}'

    async def at_once() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def run() -> int:
        gateway = Gateway(template().routes, Functions(), RequestLog(StringIO()))  # type: ignore[arg-type]
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(dict(message))

        slow = [Silent() for _ in range(200)]
        waiting = [asyncio.create_task(gateway(_scope("/v8/artifacts/events"), one, send)) for one in slow]
        await asyncio.gather(*(one.waiting.wait() for one in slow))
        assert invoked == []
        await gateway(_scope("/v8/artifacts"), at_once, send)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return int(sent[0]["status"])

    assert asyncio.run(run()) == 204
    assert invoked == ["QueryArtifacts"]


def _scope(path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"cache.example")],
        "client": ("192.0.2.1", 1),
        "server": ("127.0.0.1", 3000),
    }
