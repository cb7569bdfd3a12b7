"""What the sweep sees to: items of every kind whose time has come, and the removals that somebody asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from larder.artifacts.models import (
    Artifact,
    ArtifactHash,
    PendingUpload,
    Removal,
    Totals,
    Upload,
)
from larder.artifacts.repository.index import DISCARDED, discarded_key, parse_stored
from larder.artifacts.repository.items import (
    SWEEP_SHARDS,
    audit_puts,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import TOTALS, parse_totals
from larder.artifacts.retention import expires_at
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import Condition, at_most, equals
from larder.tables import ARTIFACTS, Item, Key, commit

if TYPE_CHECKING:
    from larder.audit.models import Entry

_REMOVAL = "#removal#"
_REMOVALS_SHARD = "removals"
"""One more shard, which the sweep reads first: what somebody asked for goes before what only tidies."""


@dataclass(frozen=True, slots=True)
class DueItem:
    """The key of an item whose time to be swept has come."""

    owner: str
    sort_key: str


@dataclass(frozen=True, slots=True)
class DueTotals:
    """An owner's totals that are to be checked, and the drift that the last check saw."""

    owner: str
    totals: Totals
    drift_before: Totals


def due_items(*, now: datetime) -> Iterator[DueItem]:
    """What is to be swept, oldest first within each shard. The index it comes from may lag: read before acting."""
    for shard in (_REMOVALS_SHARD, *map(str, range(SWEEP_SHARDS))):
        due = equals(sweep_shard=shard) & at_most(sweep_at=to_epoch_seconds(now))
        for key in ARTIFACTS.query(due, index="by_sweep"):
            yield DueItem(key["owner"], key["hash"])


def read_due(due: DueItem) -> Artifact | PendingUpload | Upload | Removal | DueTotals | None:
    """The item as it stands: an artifact, a pending upload, a discarded object, a removal, totals, or None when it is
    gone.
    """
    items = ARTIFACTS.get_many([(due.owner, due.sort_key)])
    if not items:
        return None
    item = items[0]
    if due.sort_key == TOTALS:
        drift = Totals(
            size_bytes=item.get("drift_bytes", 0), artifacts=item.get("drift_artifacts", 0)
        )
        return DueTotals(due.owner, parse_totals(items), drift)
    if due.sort_key.startswith(_REMOVAL):
        return _removal(item)
    if due.sort_key.startswith(DISCARDED):
        return Upload(owner=due.owner, hash=ArtifactHash(item["of"]), id=item["upload_id"])
    return parse_stored(item)


def postpone_sweep(artifact: Artifact) -> None:
    """The retention has been lengthened since the item was written: sweep it when it really expires."""
    upload = artifact.upload
    _postpone((upload.owner, upload.hash), upload, until=expires_at(artifact))


def postpone_discarded(upload: Upload, *, until: datetime) -> None:
    """Keep the note for as long as the upload may come, for its event to find."""
    _postpone(discarded_key(upload), upload, until=until)


def _postpone(key: Key, upload: Upload, *, until: datetime) -> None:
    """Have the sweep come later. Nothing, when the item is no longer of this upload."""
    later = {"sweep_at": to_epoch_seconds(until)}
    commit(ARTIFACTS.update(*key, set=later, when=equals(upload_id=upload.id)))


def forget_discarded(upload: Upload) -> None:
    """The object is gone: so may be the note of it."""
    commit(ARTIFACTS.delete(*discarded_key(upload)))


def add_removal(removal: Removal, *, noting: "Entry", due_at: datetime) -> None:
    """Note a removal, and with it the entry of the audit. It takes the place of an earlier one of the same writer.

    The sweep sees to it from `due_at` on, should nobody else have done it.
    """
    item = {
        "owner": removal.owner,
        "hash": _REMOVAL + removal.writer,
        "asked_at": to_ms(removal.asked_at),
        **writer_attributes(removal.by),
        "sweep_shard": _REMOVALS_SHARD,
        "sweep_at": to_epoch_seconds(due_at),
    }
    commit(ARTIFACTS.put(item), *audit_puts(noting))


def read_removal(owner: str, writer: str) -> Removal | None:
    items = ARTIFACTS.get_many([(owner, _REMOVAL + writer)])
    return _removal(items[0]) if items else None


def postpone_removal(removal: Removal, *, until: datetime) -> None:
    """Have the sweep look once more. Nothing, when a later removal of the same writer has taken its place."""
    later = {"sweep_at": to_epoch_seconds(until)}
    commit(ARTIFACTS.update(*_removal_key(removal), set=later, when=_is_same(removal)))


def forget_removal(removal: Removal) -> None:
    """It is done. Nothing, when a later removal of the same writer has taken its place."""
    commit(ARTIFACTS.delete(*_removal_key(removal), when=_is_same(removal)))


def _removal_key(removal: Removal) -> Key:
    return removal.owner, _REMOVAL + removal.writer


def _is_same(removal: Removal) -> Condition:
    return equals(asked_at=to_ms(removal.asked_at))


def _removal(item: Item) -> Removal:
    return Removal(
        owner=item["owner"],
        writer=item["hash"].removeprefix(_REMOVAL),
        asked_at=from_ms(item["asked_at"]),
        by=writer_of(item),
    )
