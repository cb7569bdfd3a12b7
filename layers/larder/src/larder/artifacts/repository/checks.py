"""Check the totals of an owner: add up the index, correct them, and store in `#storage` what takes the space."""

import time
from collections.abc import Iterator
from datetime import date, datetime

from larder.actor import Actor
from larder.artifacts.models import Totals, parse_index_key
from larder.artifacts.records import Breakdown, Part, Seen
from larder.artifacts.repository.index import AFTER_NOTES, last_used
from larder.artifacts.repository.table import partitions, writer_attributes, writer_of
from larder.artifacts.repository.totals import UPLOADED_BYTES, UPLOADS, totals_change, totals_key
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import above, equals, exists, missing
from larder.tables import ARTIFACTS, Item, Key, commit
from larder.usage.uploads import Stored

_PAUSE_S = 0.1
"""A page is at most 128 read units, so that a check takes a third of what a partition has."""

_SUMMED = (
    *("hash", "size_bytes", "created_at", "last_used_at", "uploaded_at"),
    *("writer", "user_id", "ci"),
)


def delete_uploads(owner: str, day: date) -> None:
    """Delete the day's uploads from the totals, once the usage table has them."""
    gone = {f"{UPLOADS}{day}": None, f"{UPLOADED_BYTES}{day}": None}
    commit(ARTIFACTS.update(*totals_key(owner), set=gone, when=exists("size_bytes")))


def replace_totals(owner: str, totals: Totals, *, old: Totals) -> bool:
    """Set the owner's totals. False if they are not `old` any more."""
    unchanged = equals(size_bytes=old.size_bytes, artifacts=old.artifacts)
    if old == Totals():
        unchanged = missing("size_bytes") | unchanged
    new = {
        "size_bytes": totals.size_bytes,
        "artifacts": totals.artifacts,
        "scoped_bytes": totals.scoped_bytes or None,
    }
    freed = {"free_bytes": old.size_bytes - totals.size_bytes}
    return commit(ARTIFACTS.update(*totals_key(owner), set=new, add=freed, when=unchanged))


def index_pages(
    owner: str, *, after: Item | None = None, consistent: bool = False
) -> Iterator[tuple[list[Item], Item | None]]:
    """The items of the owner's artifacts, page by page, and where the next page begins: None after the last one.

    Pauses between pages, because builds read the same partition. For background work and the operator, never on a
    request.
    """
    left = partitions(owner)
    if after is not None:
        left = left[left.index(after["owner"]) :]
    while True:
        items, after = ARTIFACTS.page(
            equals(owner=left[0]) & above(hash=AFTER_NOTES),
            consistent=consistent,
            only=_SUMMED,
            after=after if after is not None and "hash" in after else None,
        )
        if after is None and (left := left[1:]):
            after = {"owner": left[0]}
        yield [item for item in items if "#" not in item["hash"]], after
        if after is None:
            return
        if "hash" in after:
            time.sleep(_PAUSE_S)


def check_totals(owner: str, *, correct: bool, drift: Totals, next_at: datetime) -> None:
    """Record a check of the totals. `drift` is their excess over the index: subtracted if `correct`, else recorded."""
    excess, remembered = (drift, Totals()) if correct else (Totals(), drift)
    check = {
        "sweep_at": to_epoch_seconds(next_at),
        "drift_bytes": remembered.size_bytes,
        "drift_artifacts": remembered.artifacts,
        "drift_scoped_bytes": remembered.scoped_bytes or None,
    }
    correction = totals_change(
        -excess.size_bytes, -excess.artifacts, scoped_bytes=-excess.scoped_bytes
    )
    commit(ARTIFACTS.update(*totals_key(owner), set=check, add=correction))


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
        "origins": {
            name: [_part_item(part) for part in parts] for name, parts in breakdown.origins.items()
        },
        "never_read": breakdown.never_read and _stored_item(breakdown.never_read),
        "largest": [
            {
                "hash": artifact.hash,
                "scope": artifact.scope,
                "size_bytes": artifact.size_bytes,
                "created_at": to_ms(artifact.created_at),
                **writer_attributes(artifact.writer),
                "ci": artifact.ci,
            }
            for artifact in breakdown.largest
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
        origins={
            name: [_part(part) for part in parts] for name, parts in item.get("origins", {}).items()
        },
        never_read=_stored(item["never_read"]) if "never_read" in item else None,
        largest=[_largest(artifact) for artifact in item["largest"]],
    )
