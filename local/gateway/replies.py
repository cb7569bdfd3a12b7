"""A function's reply as an HTTP response: payload format 2.0."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from local.gateway.limits import Refusal

# The gateway sets these itself and drops them from a function's reply.
_SET_BY_THE_GATEWAY = frozenset({"content-length", "connection", "transfer-encoding", "date"})
_BODYLESS = frozenset({204, 304})
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

RawHeaders = list[tuple[bytes, bytes]]


class InvalidReply(Exception):
    """The function's return value is not an HTTP response."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. `headers` contains Content-Length only if there is no body to derive it from."""

    status: int
    headers: RawHeaders
    body: bytes

    def header(self, name: bytes) -> str | None:
        for known, value in self.headers:
            if known == name:
                return value.decode("latin-1")
        return None


def refusal(reason: Refusal) -> Reply:
    body = json.dumps({"message": reason.message}, separators=(",", ":")).encode("ascii")
    return Reply(reason.status, [(b"content-type", b"application/json")], body)


def parse_reply(payload: bytes, method: str) -> Reply:
    """The response for a function's return value. Raises InvalidReply."""
    try:
        value = json.loads(payload)
        if not isinstance(value, dict) or "statusCode" not in value:
            # Format 2.0: anything else is the body of a 200.
            body = value if isinstance(value, str) else json.dumps(value)
            return Reply(200, [(b"content-type", b"application/json")], body.encode("utf-8"))
        return _structured(value, method)
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidReply(f"is not a valid response: {error}") from error


def _structured(value: dict[str, Any], method: str) -> Reply:
    status = int(value["statusCode"])
    if not 200 <= status <= 599:
        raise ValueError(f"status {status}")
    text = value.get("body") or ""
    body = (
        base64.b64decode(text, validate=True)
        if value.get("isBase64Encoded")
        else str(text).encode("utf-8")
    )
    headers: RawHeaders = []
    length = None
    for name, content in (value.get("headers") or {}).items():
        lower = str(name).lower()
        if lower == "content-length":
            length = str(content)
        if lower not in _SET_BY_THE_GATEWAY:
            headers.append((lower.encode("ascii"), _header_text(content)))
    headers.extend((b"set-cookie", _header_text(cookie)) for cookie in value.get("cookies") or [])
    if not any(name == b"content-type" for name, _ in headers) and status not in _BODYLESS:
        headers.append((b"content-type", b"text/plain;charset=UTF-8"))
    if method == "HEAD" and length is not None and length.isdecimal():
        # The length that a GET would return, which only the function knows.
        headers.append((b"content-length", length.encode("ascii")))
    return Reply(status, headers, b"" if status in _BODYLESS else body)


def _header_text(value: Any) -> bytes:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _CONTROL_CHARACTER.search(text):
        raise ValueError("a header contains a control character")
    return text.encode("utf-8")
