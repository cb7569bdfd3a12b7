"""The event matches AWS's documentation of payload format 2.0."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.http_event import add_binary_body, build_http_event, size_with_binary_body, with_binary_body


def build(
    *,
    method: str = "PUT",
    raw_query: str = "",
    headers: list[tuple[str, str]] | None = None,
    body: bytes = b"",
    path_parameters: dict[str, str] | None = None,
    leave_out_binary: bool = False,
) -> dict[str, Any]:
    return build_http_event(
        method,
        "/v8/artifacts/abc%20d",
        raw_query,
        headers or [],
        body,
        route_key="PUT /v8/artifacts/{hash}",
        path_parameters=path_parameters or {},
        source_ip="192.0.2.7",
        request_id="JKJaXmPLvHcESHA=",
        now=datetime(2026, 11, 21, 8, 35, tzinfo=UTC),
        domain_name="abc.execute-api.example",
        leave_out_binary=leave_out_binary,
    )


def test_describes_the_request_and_its_context() -> None:
    event = build(headers=[("User-Agent", "turbo 2.11.11")])
    assert event["version"] == "2.0"
    assert event["routeKey"] == "PUT /v8/artifacts/{hash}"
    assert event["rawPath"] == "/v8/artifacts/abc%20d"
    context = event["requestContext"]
    assert context["http"] == {
        "method": "PUT",
        "path": "/v8/artifacts/abc%20d",
        "protocol": "HTTP/1.1",
        "sourceIp": "192.0.2.7",
        "userAgent": "turbo 2.11.11",
    }
    assert context["requestId"] == "JKJaXmPLvHcESHA="
    assert context["stage"] == "$default"
    assert context["domainPrefix"] == "abc"
    assert context["time"] == "21/Nov/2026:08:35:00 +0000"
    assert context["timeEpoch"] == 1_795_250_100_000


def test_omits_empty_keys() -> None:
    event = build()
    assert event["rawQueryString"] == ""
    assert event["isBase64Encoded"] is False
    assert not {"body", "cookies", "queryStringParameters", "pathParameters"} & event.keys()


def test_joins_repeated_headers_and_lowers_their_names() -> None:
    event = build(headers=[("X-Artifact-Duration", "1"), ("x-artifact-duration", "2")])
    assert event["headers"] == {"x-artifact-duration": "1,2"}


def test_moves_cookies_out_of_the_headers() -> None:
    event = build(headers=[("Cookie", "a=1; b=2"), ("cookie", "c=3")])
    assert event["cookies"] == ["a=1", "b=2", "c=3"]
    assert "cookie" not in event["headers"]


def test_decodes_the_query_once_and_joins_repeated_parameters() -> None:
    event = build(raw_query="slug=a%2520b&slug=c+d&teamId=&flag")
    assert event["queryStringParameters"] == {"slug": "a%20b,c d", "teamId": "", "flag": ""}
    assert event["rawQueryString"] == "slug=a%2520b&slug=c+d&teamId=&flag"


def test_decodes_path_parameters_once() -> None:
    event = build(path_parameters={"hash": "a%252Fb%2Fc"})
    assert event["pathParameters"] == {"hash": "a%2Fb/c"}


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json", "Application/JSON; charset=utf-8", "text/plain", "application/xml",
        "application/javascript",
    ],
)  # fmt: skip
def test_passes_text_unchanged(content_type: str) -> None:
    event = build(headers=[("content-type", content_type)], body='{"a":"ü"}'.encode())
    assert (event["body"], event["isBase64Encoded"]) == ('{"a":"ü"}', False)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/octet-stream", "application/x-www-form-urlencoded", "image/png", "application/problem+json",
        "image/svg+xml", None,
    ],
)  # fmt: skip
def test_encodes_every_other_body(content_type: str | None) -> None:
    event = build(headers=[("content-type", content_type)] if content_type else [], body=b"a=1")
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"a=1"


def test_encodes_a_body_that_only_claims_to_be_text() -> None:
    event = build(headers=[("content-type", "application/json")], body=b"\xff\xfe")
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"\xff\xfe"


@pytest.mark.parametrize("size", range(1, 5))
def test_a_binary_body_that_was_left_out_and_added_makes_the_same_event(size: int) -> None:
    body = b"\xff" * size
    whole, parts = build(body=body), build(body=body, leave_out_binary=True)
    assert "body" not in parts
    payload = json.dumps(parts).encode()
    assert with_binary_body(payload, body) == json.dumps(whole).encode()
    assert size_with_binary_body(payload, body) == len(json.dumps(whole))
    add_binary_body(parts, body)
    assert list(parts.items()) == list(whole.items())


def test_without_a_binary_body_nothing_is_added() -> None:
    text = build(headers=[("content-type", "text/plain")], body=b"text", leave_out_binary=True)
    payload = json.dumps(text).encode()
    assert with_binary_body(payload, b"") == payload
    assert size_with_binary_body(payload, b"") == len(payload)
