"""Read the outbox through the layer's own services. Runs in a worker, which has their environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from larder.clock import to_iso
from larder.mail import service
from larder.mail.models import StoredMessage


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any] | None:
    """Takes `{"id": ...}` and returns that message or null, or takes `{"before": ...}` and returns a page."""
    now = datetime.now(tz=UTC)
    if "id" in event:
        stored = service.find_message(event["id"], now=now)
        return None if stored is None else _record(stored)
    page = service.read_outbox(before=event["before"], now=now)
    return {
        "messages": [_record(stored) for stored in page.messages],
        "next_before": page.next_before,
    }


def _record(stored: StoredMessage) -> dict[str, Any]:
    return {
        "id": stored.id,
        "sent_at": to_iso(stored.sent_at),
        "to": stored.message.to,
        "subject": stored.message.subject,
        "text": stored.message.text,
        "html": stored.message.html,
    }
