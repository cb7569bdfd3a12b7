"""Attributes that several kinds of items in the artifacts table share."""

import zlib
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.tables import Item, Write

if TYPE_CHECKING:
    from larder.audit.models import Entry

SWEEP_SHARDS = 8
"""Partitions of the index `by_sweep`. With one, its write capacity would limit all writes."""


def audit_puts(entry: "Entry | None") -> list[Write]:
    """The write that stores the audit entry, if there is one, for the transaction of the recorded action."""
    if entry is None:
        return []
    # Imported here because cache requests start faster without it.
    from larder.audit.repository import put

    return [put(entry)]


def shard(text: str) -> str:
    """The partition of the index `by_sweep` for an item."""
    return str(zlib.crc32(text.encode()) % SWEEP_SHARDS)


def writer_attributes(writer: Actor | None) -> Item:
    return {} if writer is None else {"writer": writer.credential_id, "user_id": writer.holder_id}


def writer_of(item: Item) -> Actor | None:
    return Actor.of(item["writer"], item.get("user_id")) if "writer" in item else None
