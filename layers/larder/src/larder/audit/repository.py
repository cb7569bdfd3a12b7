"""The audit table: `(owner, id)` is one entry, in the order of time. Nothing here changes or deletes one."""

from datetime import datetime, timedelta
from typing import Any

from larder import aws
from larder.audit.models import Action, Actor, Entry, Page
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.settings import settings


def put(entry: Entry) -> dict[str, Any]:
    """The entry as one part of a transaction: it is kept if, and only if, what it tells is done."""
    return {"Put": _put_arguments(entry)}


def add(entry: Entry) -> None:
    aws.dynamodb().put_item(**_put_arguments(entry))


def read_page(owner: str, *, before: str | None, limit: int, now: datetime) -> Page:
    """Entries of the owner whose time is not over, newest first; `before` is `next_before` of the page before."""
    start: dict[str, Any] = {}
    if before is not None:
        start["ExclusiveStartKey"] = aws.serialize({"owner": owner, "id": before})
    reply = aws.dynamodb().query(
        TableName=settings().audit_table,
        KeyConditionExpression="#owner = :owner",
        ExpressionAttributeNames={"#owner": "owner"},
        ExpressionAttributeValues=aws.serialize({":owner": owner}),
        ConsistentRead=True,
        ScanIndexForward=False,
        Limit=limit,
        **start,
    )
    last = reply.get("LastEvaluatedKey")
    items = [aws.deserialize(item) for item in reply["Items"]]
    # Time to live deletes them, up to two days late.
    kept = [item for item in items if item["expires_at"] > to_epoch_seconds(now)]
    return Page(
        entries=tuple(_entry(item) for item in kept),
        next_before=None if last is None else str(aws.deserialize(last)["id"]),
    )


def _put_arguments(entry: Entry) -> dict[str, Any]:
    kept = timedelta(days=settings().audit_retention_days)
    item = {
        "owner": entry.owner,
        "id": entry.id,
        "at": to_ms(entry.at),
        "action": entry.action.value,
        "subject": entry.subject,
        "user_id": entry.actor.user_id,
        "credential_id": entry.actor.credential_id,
        "artifacts": entry.artifacts,
        "size_bytes": entry.size_bytes,
        "expires_at": to_epoch_seconds(entry.at + kept),
    }
    return {"TableName": settings().audit_table, "Item": aws.serialize(item)}


def _entry(item: aws.Item) -> Entry:
    return Entry(
        id=item["id"],
        owner=item["owner"],
        at=from_ms(item["at"]),
        action=Action(item["action"]),
        subject=item["subject"],
        actor=Actor(user_id=item.get("user_id"), credential_id=item.get("credential_id")),
        artifacts=item["artifacts"],
        size_bytes=item["size_bytes"],
    )
