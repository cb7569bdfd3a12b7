"""The limits of API Gateway and Lambda, and their error messages.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
"""

from __future__ import annotations

from typing import NamedTuple

MAX_BODY_BYTES = 10 * 1000 * 1000
MAX_HEADER_BYTES = 10_240
MAX_EVENT_BYTES = 6 * 1024 * 1024 + 100
"""Lambda's limit for a synchronous payload, each way. It rejects 6,291,557 bytes and more."""
INTEGRATION_TIMEOUT_S = 30.0


class Refusal(NamedTuple):
    """An error that the gateway itself returns."""

    status: int
    message: str


FOREIGN_HOST = Refusal(
    403,
    "the Host header does not name this machine: use localhost, or start the local cloud with PUBLIC_HOST set to the"
    " name that you use",
)
NOT_FOUND = Refusal(404, "Not Found")
TOO_LARGE = Refusal(413, "Request Entity Too Large")
HEADERS_TOO_LARGE = Refusal(431, "Request Header Fields Too Large")
FUNCTION_FAILED = Refusal(500, "Internal Server Error")
TOOK_TOO_LONG = Refusal(503, "Service Unavailable")
THROTTLED = Refusal(429, "Too Many Requests")
# Lambda refuses to start another function. An HTTP API returns 503, where a REST API would return 500.
TOO_MANY_FUNCTIONS = Refusal(503, "Service Unavailable")


def header_bytes(headers: list[tuple[bytes, bytes]]) -> int:
    """The size of request headers on the wire: `name: value` and the line ending."""
    return sum(len(name) + len(value) + 4 for name, value in headers)
