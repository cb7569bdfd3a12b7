"""A request's body as it was on the wire."""

import base64

from aws_lambda_powertools.event_handler import Request


def sent_bytes(request: Request) -> bytes:
    """The gateway hands over text types as text and all others in base64."""
    event = request.resolved_event
    text = event.body
    if not text:
        return b""
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()
