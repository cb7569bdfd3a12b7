"""Build the event for a function from a request: API Gateway's payload format 2.0.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, unquote_plus

ACCOUNT_ID = "000000000000"
API_ID = "local"

_BODY, _END = b', "body": "', b'"}'
_TEXT_TYPES = frozenset({"application/json", "application/javascript", "application/xml"})
# A list, because strftime's month names depend on the machine's locale.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def build_http_event(
    method: str,
    raw_path: str,
    raw_query: str,
    headers: list[tuple[str, str]],
    body: bytes,
    *,
    route_key: str,
    path_parameters: dict[str, str],
    source_ip: str,
    request_id: str,
    now: datetime,
    domain_name: str,
    leave_out_binary: bool = False,
) -> dict[str, Any]:
    """The event for one request.

    `raw_path`, `raw_query` and the values of `path_parameters` are as they were on the wire; parameters are
    decoded here, once. `headers` may repeat a name; values are the wire's bytes read as Latin-1. As in the
    cloud, keys that would be empty (`cookies`, `queryStringParameters`, `pathParameters`, `body`) are absent.
    With `leave_out_binary`, a body that needs base64 is left out, and `add_binary_body` adds it.
    """
    joined, cookies = _join_headers(headers)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": raw_path,
        "rawQueryString": raw_query,
        "headers": joined,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": API_ID,
            "domainName": domain_name,
            "domainPrefix": domain_name.partition(".")[0],
            "http": {
                "method": method,
                "path": raw_path,
                "protocol": "HTTP/1.1",
                "sourceIp": source_ip,
                "userAgent": joined.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": route_key,
            "stage": "$default",
            "time": _common_log_time(now),
            "timeEpoch": int(now.timestamp() * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query := _query_parameters(raw_query):
        event["queryStringParameters"] = query
    if path_parameters:
        event["pathParameters"] = {name: unquote(value) for name, value in path_parameters.items()}
    if body:
        text = _as_text(body, joined.get("content-type", ""))
        event["isBase64Encoded"] = text is None
        if text is not None:
            event["body"] = text
        elif not leave_out_binary:
            add_binary_body(event, body)
    return event


def add_binary_body(event: dict[str, Any], body: bytes | memoryview) -> None:
    event["body"] = base64.b64encode(body).decode("ascii")


def with_binary_body(event: bytes, body: bytes) -> bytes:
    """The event as JSON with the body that was left out, if there is one."""
    if not body:
        return event
    return b"".join((event[:-1], _BODY, base64.b64encode(body), _END))


def size_with_binary_body(event: bytes, body: bytes) -> int:
    """The length of `with_binary_body`."""
    if not body:
        return len(event)
    return len(event) - 1 + len(_BODY) + 4 * ((len(body) + 2) // 3) + len(_END)


def _join_headers(headers: list[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    joined: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, value in headers:
        name = raw_name.lower()
        if name == "cookie":
            # Format 2.0 moves cookies out of the headers into a list of their own.
            cookies.extend(cookie for part in value.split(";") if (cookie := part.strip()))
        elif name in joined:
            joined[name] = f"{joined[name]},{value}"
        else:
            joined[name] = value
    return joined, cookies


def _query_parameters(raw_query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for pair in raw_query.split("&"):
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name, value = unquote_plus(raw_name), unquote_plus(raw_value)
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return parameters


def _as_text(body: bytes, content_type: str) -> str | None:
    """The body as text when its media type is one of the gateway's text types, else None: it becomes base64.

    A form, `+json`, `+xml` and a body without a type are base64. Bytes that are not UTF-8 become base64 whatever their
    type, so that a handler gets the original bytes. What the gateway does with them is unknown.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type.startswith("text/") or media_type in _TEXT_TYPES:
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return None


def _common_log_time(now: datetime) -> str:
    utc = now.astimezone(UTC)
    return f"{utc.day:02}/{_MONTHS[utc.month - 1]}/{utc.year}:{utc:%H:%M:%S} +0000"
