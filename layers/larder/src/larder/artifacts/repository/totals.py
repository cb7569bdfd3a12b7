"""The totals of an owner: what is stored, counted beside the index, and the uploads of the last days."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any

from larder import aws
from larder.artifacts.models import IndexSum, Totals
from larder.artifacts.repository.items import read_items, shard, write
from larder.clock import to_epoch_seconds
from larder.concurrency import wait_before_retry
from larder.errors import TryAgain
from larder.settings import settings
from larder.usage.uploads import Uploads

TOTALS = "#totals"

_ATTEMPTS = 8
_SUMMED_BETWEEN_LOOKS = 1000

_UPLOADS = "uploads#"
_UPLOADED_BYTES = "uploaded_bytes#"


class OutOfTime(Exception):
    """There was no time for all that was to be read."""


def totals_key(owner: str) -> aws.Item:
    return {"owner": owner, "hash": TOTALS}


def parse_totals(items: Iterable[aws.Item]) -> Totals:
    for item in items:
        if item["hash"] == TOTALS:
            return Totals(
                size_bytes=item["size_bytes"], artifacts=item["artifacts"], uploads=_uploads(item)
            )
    return Totals()


def _uploads(totals: aws.Item) -> dict[date, Uploads]:
    days = [name.removeprefix(_UPLOADS) for name in totals if name.startswith(_UPLOADS)]
    return {
        date.fromisoformat(day): Uploads(
            count=totals[_UPLOADS + day], size_bytes=totals[_UPLOADED_BYTES + day]
        )
        for day in days
    }


def read_totals(owner: str) -> Totals:
    return parse_totals(read_items([totals_key(owner)]))


def read_totals_of(owners: Sequence[str]) -> dict[str, Totals]:
    """The totals of each of many owners: for the operator, never on a request."""
    found: dict[str, Totals] = dict.fromkeys(owners, Totals())
    for batch in aws.in_batches([totals_key(owner) for owner in owners]):
        for item in read_items(batch):
            found[item["owner"]] = parse_totals([item])
    return found


def add_to_totals(
    owner: str,
    size_bytes: int,
    artifacts: int,
    *,
    quota_bytes: int | None,
    uploaded: tuple[date, Uploads] | None = None,
) -> Totals | None:
    """Count bytes, artifacts and what was uploaded on a day in (or, negative, out).

    Returns what it comes to then; None, and nothing done, when the bytes would pass the quota. Raises TryAgain.
    """
    more: dict[str, Any] = {}
    values = {":bytes": size_bytes, ":artifacts": artifacts}
    added = "size_bytes :bytes, artifacts :artifacts"
    if uploaded is not None:
        day, uploads = uploaded
        added += ", #uploads :uploads, #uploaded_bytes :uploaded_bytes"
        more["ExpressionAttributeNames"] = _names_of_uploads(day)
        values |= {":uploads": uploads.count, ":uploaded_bytes": uploads.size_bytes}
    if quota_bytes is not None and size_bytes > 0:
        if size_bytes > quota_bytes:
            return None
        values[":room"] = quota_bytes - size_bytes
        more["ConditionExpression"] = "attribute_not_exists(size_bytes) OR size_bytes <= :room"
    for attempt in range(_ATTEMPTS):
        try:
            reply = aws.dynamodb().update_item(
                TableName=settings().artifacts_table,
                Key=aws.serialize(totals_key(owner)),
                # New totals are due to be checked at once; then the sweep says when again.
                UpdateExpression=f"ADD {added} "
                "SET sweep_shard = if_not_exists(sweep_shard, :shard), "
                "sweep_at = if_not_exists(sweep_at, :due)",
                ExpressionAttributeValues=aws.serialize(
                    {**values, ":shard": shard(owner), ":due": 0}
                ),
                ReturnValues="ALL_NEW",
                **more,
            )
        except aws.ClientError as error:
            if aws.error_code(error) == "ConditionalCheckFailedException":
                return None
            if not aws.is_conflict(error):
                raise
            # An eviction counts out at this moment.
            wait_before_retry(attempt)
        else:
            return parse_totals([aws.deserialize(reply["Attributes"])])
    raise TryAgain


def forget_totals(owner: str) -> bool:
    """Delete the totals of an owner who stores nothing; False when they tell of something."""
    try:
        aws.dynamodb().delete_item(
            TableName=settings().artifacts_table,
            Key=aws.serialize(totals_key(owner)),
            ConditionExpression="attribute_not_exists(size_bytes) OR (size_bytes = :none AND artifacts = :none)",
            ExpressionAttributeValues=aws.serialize({":none": 0}),
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def forget_uploads(owner: str, day: date) -> None:
    """The usage table has the day's uploads: the totals need not keep them."""
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "REMOVE #uploads, #uploaded_bytes",
        "ConditionExpression": "attribute_exists(size_bytes)",
        "ExpressionAttributeNames": _names_of_uploads(day),
    }
    write([{"Update": update}])


def _names_of_uploads(day: date) -> dict[str, str]:
    return {"#uploads": f"{_UPLOADS}{day}", "#uploaded_bytes": f"{_UPLOADED_BYTES}{day}"}


def replace_totals(owner: str, totals: Totals, *, was: Totals) -> bool:
    """Set the owner's totals. False when they are no longer what they were."""
    values = {
        ":bytes": totals.size_bytes,
        ":artifacts": totals.artifacts,
        ":was_bytes": was.size_bytes,
        ":was_artifacts": was.artifacts,
    }
    condition = "size_bytes = :was_bytes AND artifacts = :was_artifacts"
    if was == Totals():
        condition = f"attribute_not_exists(size_bytes) OR ({condition})"
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "SET size_bytes = :bytes, artifacts = :artifacts",
        "ConditionExpression": condition,
        "ExpressionAttributeValues": aws.serialize(values),
    }
    return write([{"Update": update}])


def sum_index(owner: str, *, may_go_on: Callable[[], bool] = lambda: True) -> IndexSum:
    """What the owner's items in the index come to. Raises OutOfTime when `may_go_on` says so.

    Reads all of them, however many, and keeps none: for background work and the operator, never on a request.
    """
    items = aws.query(
        settings().artifacts_table,
        "#owner = :owner",
        {":owner": owner},
        ProjectionExpression="#hash, size_bytes, last_used_at",
        ExpressionAttributeNames={"#owner": "owner", "#hash": "hash"},
        ConsistentRead=True,
    )
    size_bytes = artifacts = unlisted = 0
    for number, item in enumerate(items):
        if number % _SUMMED_BETWEEN_LOOKS == 0 and not may_go_on():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
    return IndexSum(totals=Totals(size_bytes=size_bytes, artifacts=artifacts), unlisted=unlisted)


def check_totals(owner: str, *, correct: bool, drift: Totals, next_at: datetime) -> bool:
    """Note what a check of the totals found: `drift` beyond the index, taken off when `correct`, else remembered.

    False, and nothing noted, when an eviction counted out at that moment.
    """
    remembered = Totals() if correct else drift
    values = {
        ":bytes": -drift.size_bytes if correct else 0,
        ":artifacts": -drift.artifacts if correct else 0,
        ":drift_bytes": remembered.size_bytes,
        ":drift_artifacts": remembered.artifacts,
        ":next": to_epoch_seconds(next_at),
    }
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "ADD size_bytes :bytes, artifacts :artifacts SET sweep_at = :next, "
        "drift_bytes = :drift_bytes, drift_artifacts = :drift_artifacts",
        "ExpressionAttributeValues": aws.serialize(values),
    }
    return write([{"Update": update}])
