"""The events of the functions, and the checks that CloudFront makes of what they return.

Sources: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/functions-event-structure.html and
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/edge-function-restrictions-all.html
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

Event = dict[str, Any]
Headers = list[tuple[str, str]]

_READ_ONLY = ("content-length", "host", "transfer-encoding", "via")
"""Headers of a request that a function can read, but not change."""
_READ_ONLY_IN_REPLY = ("via", "warning")
_HIDDEN = frozenset({"connection", "expect", "keep-alive", "trailer", "upgrade"})
_HIDDEN_PREFIXES = ("proxy-", "x-accel-", "x-amz-cf-", "x-cache", "x-edge-", "x-forwarded-proto")
_COOKIE = "cookie"


class Refused(Exception):
    """CloudFront refuses what the function returned, and replies 502."""


def request_event(
    method: str, path: str, query: str, headers: Headers, viewer: str = "127.0.0.1"
) -> Event:
    shown = [(name, value) for name, value in headers if not _is_hidden(name) and name != _COOKIE]
    # As CloudFront does, with the values as the client encoded them.
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return {
        "version": "1.0",
        "context": _context("viewer-request"),
        "viewer": {"ip": viewer},
        "request": {
            "method": method,
            "uri": path,
            "querystring": _by_name((name, value) for name, _, value in pairs),
            "headers": _by_name(shown),
            "cookies": {},
        },
    }


def response_event(request: Event, status: int, headers: Headers) -> Event:
    shown = [(name, value) for name, value in headers if not _is_hidden(name)]
    return {
        "version": "1.0",
        "context": _context("viewer-response"),
        "viewer": {"ip": "127.0.0.1"},
        "request": request,
        "response": {
            "statusCode": status,
            "headers": _by_name(shown),
            "cookies": {},
        },
    }


def check_request(before: Event, after: Event) -> None:
    """Raises Refused if the function changed what it must not."""
    if after.get("method") != before["method"]:
        raise Refused("a function cannot change the method")
    if not str(after.get("uri", "")).startswith("/"):
        raise Refused("the path must begin with a slash")
    _check_headers(before["headers"], after["headers"], _READ_ONLY)


def check_response(before: Event, after: Event) -> None:
    """Raises Refused if the function changed what it must not."""
    _check_headers(before["headers"], after["headers"], _READ_ONLY_IN_REPLY)


def header_list(headers: Event) -> Headers:
    """The headers of an event as a list."""
    return [
        (name, one["value"])
        for name, header in headers.items()
        for one in header.get("multiValue", [header])
    ]


def query_string(parameters: Event) -> str:
    return "&".join(
        f"{quote(name, safe='-_.~')}={one['value']}"
        for name, parameter in sorted(parameters.items())
        for one in parameter.get("multiValue", [parameter])
    )


def _context(kind: str) -> Event:
    return {
        "distributionDomainName": "d111111abcdef8.cloudfront.net",
        "distributionId": "EDFDVBD6EXAMPLE",
        "eventType": kind,
        "requestId": uuid.uuid4().hex,
    }


def _by_name(pairs: Iterable[tuple[str, str]]) -> Event:
    found: Event = {}
    for name, value in pairs:
        if name not in found:
            found[name] = {"value": value}
            continue
        found[name].setdefault("multiValue", [{"value": found[name]["value"]}])
        found[name]["multiValue"].append({"value": value})
    return found


def _is_hidden(name: str) -> bool:
    return name in _HIDDEN or name.startswith(_HIDDEN_PREFIXES)


def _check_headers(before: Event, after: Event, read_only: Iterable[str]) -> None:
    for name in after:
        if name != name.lower():
            raise Refused(f"{name} must be in lower case")
        if _is_hidden(name):
            raise Refused(f"a function cannot add {name}")
        if not isinstance(after[name].get("value"), str):
            raise Refused(f"{name} must be a text")
    for name in read_only:
        if before.get(name) != after.get(name):
            raise Refused(f"a function cannot change {name}")
