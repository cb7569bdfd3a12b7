"""The outbox table: `("outbox", <id>)` is a message. Ids sort by time. A time to live deletes messages.

Text and HTML are encrypted, because their links sign users in: a copy of the table must not
(docs/decisions/accounts.md#mail).
"""

import json
from collections.abc import Iterator
from datetime import datetime

from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import begins_with, below, equals
from larder.mail.models import Message, StoredMessage
from larder.signing import InvalidToken, seal, unseal
from larder.tables import OUTBOX, Item, commit

_UNREADABLE = (
    "This message cannot be decrypted, because the signing secret has changed twice since it was sent. Its link no "
    "longer works. Ask for a new one."
)
_OUTBOX = "outbox"
"""All messages are in one partition. A thousand writes per second are far more than a deployment without SES needs."""


def add(stored: StoredMessage, *, expires_at: datetime) -> None:
    item = {
        "box": _OUTBOX,
        "id": stored.id,
        "sent_at": to_ms(stored.sent_at),
        "expires_at": to_epoch_seconds(expires_at),
        "recipient": stored.message.to,
        "subject": stored.message.subject,
        "sealed": seal(
            json.dumps([stored.message.text, stored.message.html]), purpose=_purpose(stored.id)
        ),
    }
    commit(OUTBOX.put(item))


def get(message_id: str, *, now: datetime) -> StoredMessage | None:
    item = OUTBOX.get(_OUTBOX, message_id)
    return None if item is None or _is_expired(item, now) else _stored(item)


def ids_from(beginning: str) -> Iterator[str]:
    """The ids that begin with this, also of expired messages."""
    for item in OUTBOX.query(equals(box=_OUTBOX) & begins_with(id=beginning), only=["id"]):
        yield str(item["id"])


def newest(
    limit: int, *, before: str | None, now: datetime
) -> tuple[list[StoredMessage], str | None]:
    """At most `limit` messages older than the id `before`, and the last id if there may be more."""
    # "~" sorts after every id, because ids are hexadecimal.
    older = below(id="~" if before is None else before)
    items, last = OUTBOX.page(equals(box=_OUTBOX) & older, backwards=True, limit=limit)
    more = items[-1]["id"] if items and last else None
    return [_stored(item) for item in items if not _is_expired(item, now)], more


def _is_expired(item: Item, now: datetime) -> bool:
    return bool(item["expires_at"] <= to_epoch_seconds(now))


def _stored(item: Item) -> StoredMessage:
    text, html = _bodies(item)
    return StoredMessage(
        id=item["id"],
        sent_at=from_ms(item["sent_at"]),
        message=Message(to=item["recipient"], subject=item["subject"], text=text, html=html),
    )


def _bodies(item: Item) -> tuple[str, str]:
    if "sealed" not in item:
        return item["text"], item["html"]  # stored by version 0.1.0
    try:
        text, html = json.loads(unseal(item["sealed"], purpose=_purpose(item["id"])))
    except InvalidToken:
        return _UNREADABLE, f"<p>{_UNREADABLE}</p>"
    return text, html


def _purpose(message_id: str) -> str:
    """Names the message, so that no one can exchange the bodies of two."""
    return f"outbox {message_id}"
