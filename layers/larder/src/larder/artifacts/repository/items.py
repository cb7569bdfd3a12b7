"""Items of the artifacts table: how they are read and written, and what those of several kinds have alike."""

import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from larder import aws
from larder.artifacts.models import Writer
from larder.settings import settings

if TYPE_CHECKING:
    from larder.audit.models import Entry

SWEEP_SHARDS = 8
"""Partitions of the index that the sweep reads, so that its writes are not bound by one."""


def read_items(keys: Sequence[aws.Item]) -> list[aws.Item]:
    table = settings().artifacts_table
    return aws.batch_get({table: keys})[table]


def write(items: Sequence[dict[str, Any]]) -> bool:
    """One conditional write, or one transaction. False when a condition failed or another transaction was first."""
    client = aws.dynamodb()
    try:
        if len(items) > 1:
            client.transact_write_items(TransactItems=items)  # type: ignore[arg-type]
            return True
        ((action, arguments),) = items[0].items()
        if action == "Put":
            client.put_item(**arguments)
        elif action == "Delete":
            client.delete_item(**arguments)
        else:
            client.update_item(**arguments)
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        if aws.error_code(error) == "TransactionConflictException":
            return False
        if aws.error_code(error) == "TransactionCanceledException" and _raced(error):
            return False
        raise
    return True


def _raced(error: aws.ClientError) -> bool:
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    codes = {reason.get("Code") for reason in reasons}
    return bool(codes & {"ConditionalCheckFailed", "TransactionConflict"})


def audit_puts(entry: "Entry | None") -> list[dict[str, Any]]:
    """What keeps the entry of the audit, if there is one, in the transaction of what it tells of."""
    if entry is None:
        return []
    # Imported here: requests of builds start faster without it.
    from larder.audit.repository import put

    return [put(entry)]


def shard(text: str) -> str:
    """The partition in which the sweep finds an item."""
    return str(zlib.crc32(text.encode()) % SWEEP_SHARDS)


def writer_attributes(writer: Writer | None) -> aws.Item:
    return {} if writer is None else {"writer": writer.id, "user_id": writer.user_id}


def writer_of(item: aws.Item) -> Writer | None:
    return Writer(item["writer"], item.get("user_id")) if "writer" in item else None
