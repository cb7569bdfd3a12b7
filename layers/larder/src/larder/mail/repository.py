"""The outbox table: `(OUTBOX, <id>)` is a message. Ids sort by time; messages end by time to live."""

from datetime import datetime

from larder import aws
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.mail.models import Message, StoredMessage
from larder.settings import settings

_OUTBOX = "outbox"
"""One partition takes a thousand messages a second: more than anybody sends who has no SES."""


def add(stored: StoredMessage, *, expires_at: datetime) -> None:
    item = {
        "box": _OUTBOX,
        "id": stored.id,
        "sent_at": to_ms(stored.sent_at),
        "expires_at": to_epoch_seconds(expires_at),
        "recipient": stored.message.to,
        "subject": stored.message.subject,
        "text": stored.message.text,
        "html": stored.message.html,
    }
    aws.dynamodb().put_item(TableName=settings().outbox_table, Item=aws.serialize(item))


def get(message_id: str, *, now: datetime) -> StoredMessage | None:
    item = aws.get_item(settings().outbox_table, {"box": _OUTBOX, "id": message_id})
    return None if item is None or _is_over(item, now) else _stored(item)


def newest(
    limit: int, *, before: str | None, now: datetime
) -> tuple[list[StoredMessage], str | None]:
    """At most `limit` messages older than the one with the id `before`, and the last id when there may be more."""
    # Sorts behind every id: they are hexadecimal.
    values = {":box": _OUTBOX, ":before": "~" if before is None else before}
    reply = aws.dynamodb().query(
        TableName=settings().outbox_table,
        KeyConditionExpression="box = :box AND id < :before",
        ExpressionAttributeValues=aws.serialize(values),
        ScanIndexForward=False,
        ConsistentRead=True,
        Limit=limit,
    )
    items = [aws.deserialize(item) for item in reply["Items"]]
    more = items[-1]["id"] if items and reply.get("LastEvaluatedKey") else None
    return [_stored(item) for item in items if not _is_over(item, now)], more


def _is_over(item: aws.Item, now: datetime) -> bool:
    return bool(item["expires_at"] <= to_epoch_seconds(now))


def _stored(item: aws.Item) -> StoredMessage:
    return StoredMessage(
        id=item["id"],
        sent_at=from_ms(item["sent_at"]),
        message=Message(
            to=item["recipient"], subject=item["subject"], text=item["text"], html=item["html"]
        ),
    )
