"""Check the totals of an owner: add up the index, correct them, and store in `#storage` what takes the space."""

from collections.abc import Callable, Sequence
from datetime import date, datetime

from larder.actor import Actor
from larder.artifacts.models import Totals, parse_index_key
from larder.artifacts.records import Breakdown, IndexSum, Part, Seen
from larder.artifacts.repository.index import last_used
from larder.artifacts.repository.partitions import query_each
from larder.artifacts.repository.table import writer_attributes, writer_of
from larder.artifacts.repository.totals import UPLOADED_BYTES, UPLOADS, totals_change, totals_key
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import equals, exists, missing
from larder.tables import ARTIFACTS, Item, Key, commit
from larder.usage.uploads import Stored

_ITEMS_PER_TIME_CHECK = 1000

_SUMMED = ("hash", "size_bytes", "last_used_at", "uploaded_at")


class OutOfTime(Exception):
    """Time ran out before everything was read."""


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


def sum_index(
    owner: str,
    *,
    has_time: Callable[[], bool] = lambda: True,
    see: Callable[[Item], None] = lambda _item: None,
    seen: Sequence[str] = (),
) -> IndexSum:
    """Add up the owner's artifacts in the index. Raises OutOfTime when `has_time` returns False.

    Calls `see` with the item of each, which has the attributes `seen`, too. Reads all of them, one page at a time. For
    background work and the operator, never on a request.
    """
    items = query_each(owner, only=list(dict.fromkeys([*_SUMMED, *seen])))
    size_bytes = artifacts = unlisted = undated = 0
    scopes: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(items):
        if number % _ITEMS_PER_TIME_CHECK == 0 and not has_time():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
            undated += "uploaded_at" not in item
            _, scope = parse_index_key(item["hash"])
            if scope is not None:
                bytes_before, artifacts_before = scopes.get(scope, (0, 0))
                scopes[scope] = (bytes_before + item["size_bytes"], artifacts_before + 1)
            see(item)
    scoped_bytes = sum(of_scope for of_scope, _ in scopes.values())
    totals = Totals(size_bytes=size_bytes, artifacts=artifacts, scoped_bytes=scoped_bytes)
    return IndexSum(totals=totals, unlisted=unlisted, undated=undated, scopes=scopes)


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
        never_read=_stored(item["never_read"]) if "never_read" in item else None,
        largest=[_largest(artifact) for artifact in item["largest"]],
    )
