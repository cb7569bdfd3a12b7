"""The breakdown of what an owner stores, as the last check of the totals found it: the item `#storage`."""

from larder.actor import Actor
from larder.artifacts.models import parse_index_key
from larder.artifacts.records import Breakdown, Part, Seen
from larder.artifacts.repository.index import last_used
from larder.artifacts.repository.table import writer_attributes, writer_of
from larder.clock import from_ms, to_ms
from larder.tables import ARTIFACTS, Item, Key, commit
from larder.usage.uploads import Stored

ATTRIBUTES = ("hash", "size_bytes", "created_at", "last_used_at", "writer", "user_id", "ci")
"""What `seen` reads of an artifact's item."""


def seen(item: Item) -> Seen:
    hash, scope = parse_index_key(item["hash"])
    created_at, used_at = from_ms(item["created_at"]), last_used(item)
    return Seen(
        hash=hash,
        scope=scope,
        size_bytes=item["size_bytes"],
        created_at=created_at,
        writer=writer_of(item),
        ci=item.get("ci"),
        is_read=None if used_at is None else used_at > created_at,
    )


def set_breakdown(owner: str, breakdown: Breakdown) -> None:
    item = {
        **dict(zip(("owner", "hash"), _key(owner), strict=True)),
        "at": to_ms(breakdown.at),
        "stored": _stored_item(breakdown.stored),
        "ages": [_stored_item(age) for age in breakdown.ages],
        "writers": [_part_item(part) for part in breakdown.writers],
        "vendors": [_part_item(part) for part in breakdown.vendors],
        "never_read": breakdown.never_read and _stored_item(breakdown.never_read),
        "largest": [
            {
                "hash": one.hash,
                "scope": one.scope,
                "size_bytes": one.size_bytes,
                "created_at": to_ms(one.created_at),
                **writer_attributes(one.writer),
                "ci": one.ci,
            }
            for one in breakdown.largest
        ],
    }
    commit(ARTIFACTS.put(item))


def read_breakdown(owner: str) -> Breakdown | None:
    """None if no check has been complete."""
    items = ARTIFACTS.get_many([_key(owner)])
    return _breakdown(items[0]) if items else None


def delete_breakdown(owner: str) -> None:
    commit(ARTIFACTS.delete(*_key(owner)))


def _key(owner: str) -> Key:
    return owner, "#storage"


def _stored_item(stored: Stored) -> Item:
    return {
        "size_bytes": stored.size_bytes,
        "artifacts": stored.artifacts,
        "scoped_bytes": stored.scoped_bytes,
    }


def _part_item(part: Part) -> Item:
    return {"name": part.name, **_stored_item(part.stored)}


def _stored(item: Item) -> Stored:
    return Stored(
        size_bytes=item["size_bytes"],
        artifacts=item["artifacts"],
        scoped_bytes=item["scoped_bytes"],
    )


def _part(item: Item) -> Part:
    return Part(name=item["name"], stored=_stored(item))


def _largest(item: Item) -> Seen:
    writer = item.get("writer")
    return Seen(
        hash=item["hash"],
        scope=item["scope"],
        size_bytes=item["size_bytes"],
        created_at=from_ms(item["created_at"]),
        writer=None if writer is None else Actor.of(writer, item.get("user_id")),
        ci=item["ci"],
        is_read=None,
    )


def _breakdown(item: Item) -> Breakdown:
    return Breakdown(
        at=from_ms(item["at"]),
        stored=_stored(item["stored"]),
        ages=[_stored(age) for age in item["ages"]],
        writers=[_part(part) for part in item["writers"]],
        vendors=[_part(part) for part in item["vendors"]],
        never_read=_stored(item["never_read"]) if "never_read" in item else None,
        largest=[_largest(one) for one in item["largest"]],
    )
