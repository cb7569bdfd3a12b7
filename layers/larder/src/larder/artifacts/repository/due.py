"""What the sweep sees to: items of every kind whose time has come, and the removals that somebody asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from larder import aws
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
    read_items,
    write,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import TOTALS, parse_totals
from larder.artifacts.retention import expires_at
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.errors import TryAgain
from larder.settings import settings

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
        values = {":shard": shard, ":now": to_epoch_seconds(now)}
        condition = "sweep_shard = :shard AND sweep_at <= :now"
        table = settings().artifacts_table
        for key in aws.query(table, condition, values, IndexName="by_sweep"):
            yield DueItem(key["owner"], key["hash"])


def read_due(due: DueItem) -> Artifact | PendingUpload | Upload | Removal | DueTotals | None:
    """The item as it stands: an artifact, a pending upload, a discarded object, a removal, totals, or None when it is
    gone.
    """
    items = read_items([{"owner": due.owner, "hash": due.sort_key}])
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
    key = {"owner": upload.owner, "hash": upload.hash}
    _postpone(key, upload, until=expires_at(artifact))


def postpone_discarded(upload: Upload, *, until: datetime) -> None:
    """Keep the note for as long as the upload may come, for its event to find."""
    _postpone(discarded_key(upload), upload, until=until)


def _postpone(key: aws.Item, upload: Upload, *, until: datetime) -> None:
    """Have the sweep come later. Nothing, when the item is no longer of this upload."""
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(key),
        "UpdateExpression": "SET sweep_at = :at",
        "ConditionExpression": "upload_id = :upload",
        "ExpressionAttributeValues": aws.serialize(
            {":at": to_epoch_seconds(until), ":upload": upload.id}
        ),
    }
    write([{"Update": update}])


def forget_discarded(upload: Upload) -> None:
    """The object is gone: so may be the note of it."""
    aws.dynamodb().delete_item(
        TableName=settings().artifacts_table, Key=aws.serialize(discarded_key(upload))
    )


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
    put = {"TableName": settings().artifacts_table, "Item": aws.serialize(item)}
    if not write([{"Put": put}, *audit_puts(noting)]):
        raise TryAgain


def read_removal(owner: str, writer: str) -> Removal | None:
    items = read_items([{"owner": owner, "hash": _REMOVAL + writer}])
    return _removal(items[0]) if items else None


def postpone_removal(removal: Removal, *, until: datetime) -> None:
    """Have the sweep look once more. Nothing, when a later removal of the same writer has taken its place."""
    update = {
        **_removal_is(removal),
        "UpdateExpression": "SET sweep_at = :until",
    }
    update["ExpressionAttributeValues"] |= aws.serialize({":until": to_epoch_seconds(until)})
    write([{"Update": update}])


def forget_removal(removal: Removal) -> None:
    """It is done. Nothing, when a later removal of the same writer has taken its place."""
    write([{"Delete": _removal_is(removal)}])


def _removal_is(removal: Removal) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": removal.owner, "hash": _REMOVAL + removal.writer}),
        "ConditionExpression": "asked_at = :asked_at",
        "ExpressionAttributeValues": aws.serialize({":asked_at": to_ms(removal.asked_at)}),
    }


def _removal(item: aws.Item) -> Removal:
    return Removal(
        owner=item["owner"],
        writer=item["hash"].removeprefix(_REMOVAL),
        asked_at=from_ms(item["asked_at"]),
        by=writer_of(item),
    )
