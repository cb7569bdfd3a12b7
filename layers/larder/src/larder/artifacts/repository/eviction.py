"""Eviction: artifacts by their last use, and how some of them leave the index and the totals at once."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from larder import aws
from larder.artifacts.models import ArtifactHash, Unused, Upload
from larder.artifacts.repository.index import discarded_put
from larder.artifacts.repository.items import write
from larder.artifacts.repository.totals import totals_key
from larder.clock import to_ms
from larder.concurrency import wait_before_retry
from larder.errors import TryAgain
from larder.settings import settings

_ATTEMPTS = 8


class RoomMade(Exception):
    """Others have evicted enough already."""


def least_recently_used(owner: str, *, page: int) -> Iterator[Unused]:
    """The owner's artifacts, from the one that was used longest ago on, in pages that are read as they are needed.

    The index follows the table by some milliseconds: what is done with one has to hold when it is written, too.
    """
    items = aws.query(
        settings().artifacts_table,
        "#owner = :owner",
        {":owner": owner},
        IndexName="by_last_use",
        ExpressionAttributeNames={"#owner": "owner"},
        PaginationConfig={"PageSize": page},
    )
    for item in items:
        yield Unused(
            upload=Upload(owner=owner, hash=ArtifactHash(item["hash"]), id=item["upload_id"]),
            size_bytes=item["size_bytes"],
            last_used_ms=item["last_used_at"],
        )


def evict(
    owner: str, unused: Sequence[Unused], *, above_bytes: int, now: datetime
) -> frozenset[Upload]:
    """Take these artifacts out and count them out, in one transaction: all of them, or none.

    Returns those that kept it from being done because they have been used, replaced or removed meanwhile; none when it
    is done. Raises RoomMade when the owner no longer stores more than `above_bytes`, and TryAgain.
    """
    freed = sum(one.size_bytes for one in unused)
    count = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "ADD size_bytes :bytes, artifacts :artifacts",
        "ConditionExpression": "size_bytes > :above",
        "ExpressionAttributeValues": aws.serialize(
            {":bytes": -freed, ":artifacts": -len(unused), ":above": above_bytes}
        ),
    }
    items: list[dict[str, Any]] = [{"Update": count}]
    for one in unused:
        items.append({"Delete": _still_unused(one)})
        items.append({"Put": discarded_put(one.upload, now)})
    for attempt in range(_ATTEMPTS):
        try:
            aws.dynamodb().transact_write_items(TransactItems=items)  # type: ignore[arg-type]
        except aws.ClientError as error:
            if aws.error_code(error) != "TransactionCanceledException":
                raise
            counting, *others = _failed_conditions(error, len(items))
            if counting:
                raise RoomMade from error
            if any(others):
                return frozenset(
                    one.upload for one, failed in zip(unused, others[::2], strict=True) if failed
                )
            wait_before_retry(attempt)
        else:
            return frozenset()
    raise TryAgain


def _still_unused(unused: Unused) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": unused.upload.owner, "hash": unused.upload.hash}),
        "ConditionExpression": "upload_id = :upload AND last_used_at = :used",
        "ExpressionAttributeValues": aws.serialize(
            {":upload": unused.upload.id, ":used": unused.last_used_ms}
        ),
    }


def _failed_conditions(error: aws.ClientError, count: int) -> list[bool]:
    """Which of a transaction's items failed their condition."""
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    failed = [reason.get("Code") == "ConditionalCheckFailed" for reason in reasons]
    return failed + [False] * (count - len(failed))


def claim_eviction(owner: str, *, now: datetime, until: datetime) -> bool:
    """Whether it is the caller's to have room made: at most one is until `until`, or until the eviction is over."""
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "SET evicting_until = :until",
        "ConditionExpression": "attribute_not_exists(evicting_until) OR evicting_until <= :now",
        "ExpressionAttributeValues": aws.serialize({":until": to_ms(until), ":now": to_ms(now)}),
    }
    return write([{"Update": update}])


def end_eviction(owner: str) -> None:
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "REMOVE evicting_until",
        "ConditionExpression": "attribute_exists(evicting_until)",
    }
    write([{"Update": update}])
