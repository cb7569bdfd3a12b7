"""JSON bodies, and pydantic's errors as messages for the client."""

import base64
import json
from typing import TYPE_CHECKING

from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request

if TYPE_CHECKING:
    # Endpoints that read a body but check none of it start without pydantic.
    from pydantic import ValidationError


def sent_bytes(request: Request) -> bytes:
    """The gateway hands over text types as text and all others in base64."""
    event = request.resolved_event
    text = event.body
    if not text:
        return b""
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()


def sent_json(request: Request) -> object:
    return parsed_bytes(sent_bytes(request))


def parsed_bytes(body: bytes) -> object:
    """The body as JSON in UTF-8. Rejects NaN and Infinity, which Python's parser accepts but JSON does not have."""
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidRequest("body", "must be JSON") from None


def broken_rules(error: "ValidationError") -> list[tuple[str, str]]:
    """Every field that breaks a rule, with the rule. There is at least one."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    return [
        (printable(".".join(map(str, error["loc"])) or "body"), error["msg"]) for error in errors
    ]


def printable(field: str) -> str:
    """Shorten a property's name and replace control characters, because the name comes from the client."""
    return "".join(c if c.isprintable() else "?" for c in field[:100])


def _no_constant(name: str) -> None:
    raise ValueError(name)
