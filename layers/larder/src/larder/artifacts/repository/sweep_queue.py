"""Items that are due for the sweep, of every kind, and requested removals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from larder.artifacts.expiry import expires_at
from larder.artifacts.models import Artifact, PendingUpload, Totals, Upload
from larder.artifacts.records import Discarded, Removal, RemovalPage
from larder.artifacts.repository.index import (
    DISCARDED,
    PENDING,
    artifact_key,
    delete_body,
    discarded_key,
    parse_stored,
    parse_upload,
    swept_at,
)
from larder.artifacts.repository.table import (
    SWEEP_SHARDS,
    audit_puts,
    owner_of,
    partition_of,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import TOTALS, parse_totals
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import Condition, at_most, between, equals
from larder.tables import ARTIFACTS, BATCH_KEYS, Item, Key, commit

if TYPE_CHECKING:
    from larder.audit.models import Entry

_REMOVAL = "#removal#"
_REMOVALS_SHARD = "removals"
"""One more shard, which the sweep reads first: requested removals take precedence over routine work."""
SHARDS = (_REMOVALS_SHARD, *map(str, range(SWEEP_SHARDS)))


@dataclass(frozen=True, slots=True)
class DueItem:
    """The key of an item that is due for the sweep."""

    partition: str
    sort_key: str


@dataclass(frozen=True, slots=True)
class DueTotals:
    """An owner's totals that are due for a check, and the drift that the last check found."""

    owner: str
    totals: Totals
    drift_before: Totals


Due = Artifact | PendingUpload | Discarded | Removal | DueTotals


def due_items(*shards: str, now: datetime) -> Iterator[DueItem]:
    """Items that are due, oldest first within each shard. The index can lag, so read the item before you act."""
    for shard in shards or SHARDS:
        due = equals(sweep_shard=shard) & at_most(sweep_at=to_epoch_seconds(now))
        for key in ARTIFACTS.query(due, index="by_sweep"):
            yield DueItem(key["owner"], key["hash"])


def owners_with_totals(*, now: datetime) -> Iterator[str]:
    """Every owner with totals. These are checked every day, so they are due by tomorrow."""
    tomorrow = now + timedelta(days=1, hours=1)
    return (due.partition for due in due_items(now=tomorrow) if due.sort_key == TOTALS)


def due_batches(shard: str, *, now: datetime) -> Iterator[Sequence[DueItem]]:
    """The same, by the hundred."""
    items = due_items(shard, now=now)
    while batch := list(islice(items, BATCH_KEYS)):
        yield batch


def read_due(due: Sequence[DueItem]) -> list[Due]:
    """Read up to a hundred items with one call. Those that are gone are left out."""
    items = ARTIFACTS.get_many([(each.partition, each.sort_key) for each in due])
    misplaced = [item for item in items if item["owner"] != _right_partition(item)]
    for item in misplaced:
        # A version up to 0.2.0 stored it, while the deployment had gone back to it. No reader finds it.
        commit(ARTIFACTS.delete(item["owner"], item["hash"]))
    return [_due(item) for item in items if item not in misplaced]


def _due(item: Item) -> Due:
    partition, sort_key = item["owner"], item["hash"]
    if sort_key == TOTALS:
        drift = Totals(
            size_bytes=item.get("drift_bytes", 0),
            artifacts=item.get("drift_artifacts", 0),
            scoped_bytes=item.get("drift_scoped_bytes", 0),
        )
        return DueTotals(partition, parse_totals([item]), drift)
    if sort_key.startswith(_REMOVAL):
        return _removal(item)
    if sort_key.startswith(DISCARDED):
        upload = parse_upload(partition, item["of"], item["upload_id"])
        return Discarded(upload, item.get("version"), item.get("held", False))
    return parse_stored(item)


def _right_partition(item: Item) -> str:
    owner, sort_key = owner_of(item["owner"]), item["hash"]
    if sort_key == TOTALS or sort_key.startswith(_REMOVAL):
        return owner
    return partition_of(owner, str(item.get("of", sort_key)).removesuffix(PENDING))


def postpone_sweep(artifact: Artifact, *, now: datetime) -> None:
    """Sweep the artifact later: it was used, or the retention was extended, after the item was written."""
    upload = artifact.upload
    until = swept_at(artifact)
    if until <= now:
        # The object needs no copy for the rest of the time.
        until = expires_at(artifact)
    _postpone(artifact_key(upload), upload, until=until)


def postpone_discarded(upload: Upload, *, until: datetime) -> None:
    """Keep the item while the upload can still arrive, so that its S3 event finds it."""
    _postpone(discarded_key(upload), upload, until=until)


def _postpone(key: Key, upload: Upload, *, until: datetime) -> None:
    """Set a later time for the sweep, unless the item belongs to another upload by now."""
    later = {"sweep_at": to_epoch_seconds(until)}
    commit(ARTIFACTS.update(*key, set=later, when=equals(upload_id=upload.id)))


def delete_discarded(discarded: Discarded) -> bool:
    """Delete the item of a discarded object that is deleted, and its body if that is next to the index."""
    if discarded.held or discarded.version is None:
        delete_body(discarded.upload)
    return commit(ARTIFACTS.delete(*discarded_key(discarded.upload)))


def delete_discarded_if_published(upload: Upload) -> bool:
    """Delete the item of an upload whose object readers need. False if the upload is not published any more."""
    is_published = equals(upload_id=upload.id)
    return commit(
        ARTIFACTS.delete(*discarded_key(upload)),
        ARTIFACTS.check(*artifact_key(upload), when=is_published),
    )


def add_removal(removal: Removal, *, noting: "Entry", due_at: datetime) -> None:
    """Store a removal together with its audit entry. Replaces an earlier removal of the same target.

    From `due_at` on, the sweep carries it out if the function has not.
    """
    item = {
        "owner": removal.owner,
        "hash": _REMOVAL + removal.target,
        "asked_at": to_ms(removal.asked_at),
        **writer_attributes(removal.by),
        "sweep_shard": _REMOVALS_SHARD,
        "sweep_at": to_epoch_seconds(due_at),
    }
    commit(ARTIFACTS.put(item), *audit_puts(noting))


def read_removal(owner: str, target: str) -> Removal | None:
    items = ARTIFACTS.get_many([(owner, _REMOVAL + target)])
    return _removal(items[0]) if items else None


def read_removals(owner: str, *, after: str, limit: int) -> RemovalPage:
    """A page of the owner's removals, by target. `after` is empty, or `following` of the last page."""
    first, end = _REMOVAL + after + "\0", _REMOVAL + "~"
    where = equals(owner=owner) & between("hash", first, end)
    items, last = ARTIFACTS.page(where, limit=limit)
    return RemovalPage(
        removals=tuple(_removal(item) for item in items),
        following=None if last is None else str(last["hash"]).removeprefix(_REMOVAL),
    )


def add_removed(removal: Removal, *, artifacts: int, size_bytes: int) -> None:
    """Count what the removal has deleted, unless a later one of the same target has replaced it."""
    removed = {"artifacts": artifacts, "size_bytes": size_bytes}
    commit(ARTIFACTS.update(*_removal_key(removal), add=removed, when=_is_same(removal)))


def postpone_removal(removal: Removal, *, until: datetime, passed_at: datetime) -> None:
    """Schedule another pass, unless a later removal of the same target has replaced this one."""
    later = {"sweep_at": to_epoch_seconds(until), "passed_at": to_ms(passed_at)}
    commit(ARTIFACTS.update(*_removal_key(removal), set=later, when=_is_same(removal)))


def delete_removal(removal: Removal) -> None:
    """Delete a finished removal, unless a later one of the same target has replaced it."""
    commit(ARTIFACTS.delete(*_removal_key(removal), when=_is_same(removal)))


def _removal_key(removal: Removal) -> Key:
    return removal.owner, _REMOVAL + removal.target


def _is_same(removal: Removal) -> Condition:
    return equals(asked_at=to_ms(removal.asked_at))


def _removal(item: Item) -> Removal:
    return Removal(
        owner=item["owner"],
        target=item["hash"].removeprefix(_REMOVAL),
        asked_at=from_ms(item["asked_at"]),
        by=writer_of(item),
        artifacts=item.get("artifacts", 0),
        size_bytes=item.get("size_bytes", 0),
        passed_at=from_ms(item["passed_at"]) if "passed_at" in item else None,
    )
