"""Attributes that several kinds of items in the artifacts table share, and the partitions of an owner."""

import zlib
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.artifacts.models import parse_index_key
from larder.tables import Item, Write
from larder.teams.models import ID_LENGTH, PARTITIONED_PREFIX

if TYPE_CHECKING:
    from larder.audit.models import Entry

SWEEP_SHARDS = 8
"""Partitions of the index `by_sweep`. With one, its write capacity would limit all writes."""

_PARTITIONS = 8
"""Each has the capacity of one partition of DynamoDB, from the first upload of a team on."""


def _is_partitioned(owner: str) -> bool:
    """Whether the owner's index has several partitions. The id says so, so no request has to read it.

    Teams of versions up to 0.2.0, and users without a team, have one.
    """
    return owner.startswith(PARTITIONED_PREFIX) and len(owner) == ID_LENGTH


def partitions(owner: str) -> list[str]:
    """The partition keys of the owner's index. What is stored once for each owner has the owner itself as key."""
    if not _is_partitioned(owner):
        return [owner]
    return [f"{owner}.{number}" for number in range(_PARTITIONS)]


def partition_of(owner: str, key: str) -> str:
    """The partition key for what the index has of a hash, in all scopes. `key` is an `index_key`."""
    if not _is_partitioned(owner):
        return owner
    hash, _ = parse_index_key(key)
    return f"{owner}.{zlib.crc32(hash.encode()) % _PARTITIONS}"


def owner_of(partition: str) -> str:
    return partition.partition(".")[0]


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
