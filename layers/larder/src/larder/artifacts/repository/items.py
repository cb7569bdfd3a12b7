"""What the items of several kinds in the artifacts table have in common."""

import zlib
from typing import TYPE_CHECKING

from larder.artifacts.models import Writer
from larder.tables import Item, Write

if TYPE_CHECKING:
    from larder.audit.models import Entry

SWEEP_SHARDS = 8
"""Partitions of the index that the sweep reads, so that its writes are not bound by one."""


def audit_puts(entry: "Entry | None") -> list[Write]:
    """What keeps the entry of the audit, if there is one, in the transaction of what it tells of."""
    if entry is None:
        return []
    # Imported here: requests of builds start faster without it.
    from larder.audit.repository import put

    return [put(entry)]


def shard(text: str) -> str:
    """The partition in which the sweep finds an item."""
    return str(zlib.crc32(text.encode()) % SWEEP_SHARDS)


def writer_attributes(writer: Writer | None) -> Item:
    return {} if writer is None else {"writer": writer.id, "user_id": writer.user_id}


def writer_of(item: Item) -> Writer | None:
    return Writer(item["writer"], item.get("user_id")) if "writer" in item else None
