"""What API Gateway and Lambda refuse, and in which words.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
"""

from __future__ import annotations

from typing import NamedTuple

MAX_BODY_BYTES = 10 * 1000 * 1000
MAX_HEADER_BYTES = 10_240
MAX_EVENT_BYTES = 6 * 1024 * 1024 + 100
"""Lambda's synchronous payload, each way; it refuses from 6,291,557 bytes on."""
INTEGRATION_TIMEOUT_S = 30.0


class Refusal(NamedTuple):
    """An answer that the gateway gives by itself."""

    status: int
    message: str


NOT_FOUND = Refusal(404, "Not Found")
TOO_LARGE = Refusal(413, "Request Entity Too Large")
HEADERS_TOO_LARGE = Refusal(431, "Request Header Fields Too Large")
FUNCTION_FAILED = Refusal(500, "Internal Server Error")
TOOK_TOO_LONG = Refusal(503, "Service Unavailable")


def header_bytes(headers: list[tuple[bytes, bytes]]) -> int:
    """The size of request headers as they were sent: `name: value` and the line's end."""
    return sum(len(name) + len(value) + 4 for name, value in headers)
