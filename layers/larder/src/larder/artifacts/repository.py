"""The index of stored artifacts.

| hash | holds |
|---|---|
| `<hash>` | the artifact that readers see |
| `<hash>#pending` | the direct upload last offered for the hash |
| `#discarded#<upload id>` | an object that nobody will see again; the sweep deletes it and then this item |
| `#removal#<writer>` | all that this key, session or user wrote is to go |
| `#totals` | bytes and number of the owner's artifacts, what the last check found too much, the last days' uploads |

Every change of what readers see is one conditional write (or one transaction) that names the upload it replaces, so
that each change has exactly one author, and a replaced object is listed as discarded in the same breath.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from larder import aws
from larder.artifacts.models import (
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    ArtifactPage,
    IndexEntry,
    IndexSum,
    PendingUpload,
    Removal,
    Totals,
    Unused,
    Upload,
    Writer,
)
from larder.artifacts.retention import expires_at
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.concurrency import in_background, wait_before_retry
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.models import Membership
from larder.teams.repository import parse_standing, standing_keys
from larder.usage.uploads import Uploads

if TYPE_CHECKING:
    from larder.audit.models import Entry

SWEEP_SHARDS = 8
"""Partitions of the index that the sweep reads, so that its writes are not bound by one."""

_REMOVALS_SHARD = "removals"
"""One more, which it reads first: what somebody asked for goes before what only tidies."""

PENDING_LIFETIME = timedelta(hours=24)
"""How long an offered upload may take before the sweep gives it up. Longer than 5 GB need on a slow line."""

_ATTEMPTS = 8
_SUMMED_BETWEEN_LOOKS = 1000

_PENDING = "#pending"
_DISCARDED = "#discarded#"
_REMOVAL = "#removal#"
_TOTALS = "#totals"
_UPLOADS = "uploads#"
_UPLOADED_BYTES = "uploaded_bytes#"
_AFTER_NOTES = "$"
"""Sorts behind everything that begins with `#`, and before every hash."""
_METADATA = ("duration_ms", "tag", "sha", "dirty_hash", "ci", "interactive")


class OutOfTime(Exception):
    """There was no time for all that was to be read."""


class RoomMade(Exception):
    """Others have evicted enough already."""


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


def entry_keys(owner: str, hash: ArtifactHash) -> list[aws.Item]:
    """The keys whose items `parse_entry` reads."""
    return [{"owner": owner, "hash": hash}, {"owner": owner, "hash": hash + _PENDING}]


def totals_key(owner: str) -> aws.Item:
    return {"owner": owner, "hash": _TOTALS}


def parse_entry(items: Iterable[aws.Item], hash: ArtifactHash) -> IndexEntry:
    by_key = {item["hash"]: item for item in items}
    artifact = by_key.get(hash)
    pending = by_key.get(hash + _PENDING)
    return IndexEntry(
        artifact=None if artifact is None else _artifact(artifact),
        pending=None if pending is None else _pending(pending),
    )


def parse_totals(items: Iterable[aws.Item]) -> Totals:
    for item in items:
        if item["hash"] == _TOTALS:
            return Totals(
                size_bytes=item["size_bytes"], artifacts=item["artifacts"], uploads=_uploads(item)
            )
    return Totals()


def _uploads(totals: aws.Item) -> dict[date, Uploads]:
    days = [name.removeprefix(_UPLOADS) for name in totals if name.startswith(_UPLOADS)]
    return {
        date.fromisoformat(day): Uploads(
            count=totals[_UPLOADS + day], size_bytes=totals[_UPLOADED_BYTES + day]
        )
        for day in days
    }


def read_entry(owner: str, hash: ArtifactHash) -> IndexEntry:
    return parse_entry(_read(entry_keys(owner, hash)), hash)


def read_entries(
    owner: str, hashes: Sequence[ArtifactHash]
) -> tuple[dict[ArtifactHash, IndexEntry], set[ArtifactHash]]:
    """Look many hashes up, batches in parallel. Returns the entries, and the hashes whose batch failed."""
    batches = list(aws.in_batches(hashes, aws.BATCH_GET_KEYS // 2))
    reads = [
        in_background(_read, [key for hash in batch for key in entry_keys(owner, hash)])
        for batch in batches
    ]
    entries: dict[ArtifactHash, IndexEntry] = {}
    failed: set[ArtifactHash] = set()
    for batch, read in zip(batches, reads, strict=True):
        try:
            items = read.result()
        except TryAgain:
            failed.update(batch)
            continue
        by_key = {item["hash"]: item for item in items}
        for hash in batch:
            present = [by_key[key] for key in (hash, hash + _PENDING) if key in by_key]
            entries[hash] = parse_entry(present, hash)
    return entries, failed


def stored_by(owner: str) -> Iterator[Artifact | PendingUpload]:
    """Every artifact and every offer of the owner, page by page: for background work, never on a request."""
    items = aws.query(
        settings().artifacts_table,
        "#owner = :owner AND #hash > :notes",
        {":owner": owner, ":notes": _AFTER_NOTES},
        ExpressionAttributeNames={"#owner": "owner", "#hash": "hash"},
        ConsistentRead=True,
    )
    for item in items:
        yield _pending(item) if item["hash"].endswith(_PENDING) else _artifact(item)


def read_page(owner: str, *, after: str, limit: int) -> ArtifactPage:
    """The owner's artifacts behind a place in the order of hashes, one request whatever there is. `after` is empty, or
    `following` of the page before. Offers take places of the page, too.
    """
    reply = aws.dynamodb().query(
        TableName=settings().artifacts_table,
        KeyConditionExpression="#owner = :owner AND #hash > :after",
        ExpressionAttributeNames={"#owner": "owner", "#hash": "hash"},
        ExpressionAttributeValues=aws.serialize({":owner": owner, ":after": after or _AFTER_NOTES}),
        ConsistentRead=True,
        Limit=limit,
    )
    items = [aws.deserialize(item) for item in reply["Items"]]
    last = reply.get("LastEvaluatedKey")
    return ArtifactPage(
        artifacts=tuple(_artifact(item) for item in items if not item["hash"].endswith(_PENDING)),
        following=None if last is None else str(aws.deserialize(last)["hash"]),
    )


def read_for_settling(upload: Upload) -> tuple[IndexEntry, bool]:
    """The entry of the upload's hash, and whether the upload was discarded."""
    discarded_key = _discarded_key(upload)
    items = _read([*entry_keys(upload.owner, upload.hash), discarded_key])
    discarded = any(item["hash"] == discarded_key["hash"] for item in items)
    return parse_entry(items, upload.hash), discarded


def read_with_standing(
    owner: str, user_id: str, hash: ArtifactHash | None, *, totals: bool
) -> tuple[Membership, IndexEntry, Totals]:
    """What a request needs to know beside its key, in one consistent batch over two tables: the standing of the user
    with the owner, the entry of the hash that the request names, and the owner's totals if they matter.
    """
    teams_table, table = settings().teams_table, settings().artifacts_table
    keys = entry_keys(owner, hash) if hash is not None else []
    if totals:
        keys.append(totals_key(owner))
    found = aws.batch_get({teams_table: standing_keys(owner, user_id), table: keys})
    items = found[table]
    entry = parse_entry(items, hash) if hash is not None else IndexEntry()
    return parse_standing(found[teams_table]), entry, parse_totals(items)


def read_totals(owner: str) -> Totals:
    return parse_totals(_read([totals_key(owner)]))


def read_totals_of(owners: Sequence[str]) -> dict[str, Totals]:
    """The totals of each of many owners: for the operator, never on a request."""
    found: dict[str, Totals] = dict.fromkeys(owners, Totals())
    for batch in aws.in_batches([totals_key(owner) for owner in owners]):
        for item in _read(batch):
            found[item["owner"]] = parse_totals([item])
    return found


def put_pending(pending: PendingUpload) -> None:
    """Offer an upload. An earlier offer for the hash is forgotten here; if it is used, its S3 event settles it."""
    upload = pending.upload
    aws.dynamodb().put_item(
        TableName=settings().artifacts_table,
        Item=aws.serialize(
            {
                "owner": upload.owner,
                "hash": upload.hash + _PENDING,
                "upload_id": upload.id,
                "created_at": to_ms(pending.created_at),
                **_sweep(upload, pending.created_at + PENDING_LIFETIME),
            }
        ),
    )


def publish(
    artifact: Artifact,
    *,
    replaces: Artifact | None,
    settles: PendingUpload | None = None,
    offered: bool = False,
    now: datetime,
) -> bool:
    """Make `artifact` what readers see, in place of exactly `replaces`.

    Returns False, and changes nothing, when another write came first or the upload has been discarded meanwhile.
    `offered` says that the latter can be: somebody else than the caller knows of the object. `settles` is the pending
    item that goes with the write.
    """
    upload = artifact.upload
    put = {
        "TableName": settings().artifacts_table,
        "Item": aws.serialize(_artifact_item(artifact)),
        **_expects(replaces),
    }
    others: list[dict[str, Any]] = []
    if offered or replaces is not None:
        others.append({"ConditionCheck": _absent(_discarded_key(upload))})
    if settles is not None:
        others.append({"Delete": _pending_is(settles.upload)})
    if replaces is not None:
        others.append({"Put": _discarded_put(replaces.upload, now)})
    return _write([{"Put": put}, *others])


def refuse(pending: PendingUpload, *, now: datetime) -> bool:
    """Take an offer back: its object, if it ever comes, is never seen. False when it has been settled, or replaced.

    The note of it stays as long as the upload may take: an event of its object then finds it discarded.
    """
    return discard(
        pending.upload, settles=pending, until=pending.created_at + PENDING_LIFETIME, now=now
    )


def discard(
    upload: Upload,
    *,
    settles: PendingUpload | None = None,
    until: datetime | None = None,
    now: datetime,
) -> bool:
    """List an object that is not in the index for deletion. False when it is in the index after all.

    It is listed till `until` at least.
    """
    unpublished = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": upload.owner, "hash": upload.hash}),
        "ConditionExpression": "attribute_not_exists(upload_id) OR upload_id <> :upload",
        "ExpressionAttributeValues": aws.serialize({":upload": upload.id}),
    }
    items: list[dict[str, Any]] = [
        {"Put": _discarded_put(upload, now, until)},
        {"ConditionCheck": unpublished},
    ]
    if settles is not None:
        items.append({"Delete": _pending_is(settles.upload)})
    return _write(items)


def remove(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Take an artifact out of the index and list its object for deletion. False when it is no longer there.

    The entry of the audit is kept with it or, when nothing is done, not at all.
    """
    upload = artifact.upload
    delete = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": upload.owner, "hash": upload.hash}),
        **_expects(artifact),
    }
    items = [{"Delete": delete}, {"Put": _discarded_put(upload, now)}]
    return _write([*items, *_noting(noting)])


def note_use(artifact: Artifact, *, at: datetime) -> None:
    """Put the artifact into its place in the index of last uses. Nothing, when it is not there any more, or was used
    later.
    """
    upload = artifact.upload
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": upload.owner, "hash": upload.hash}),
        "UpdateExpression": "SET last_used_at = :at",
        "ConditionExpression": "upload_id = :upload"
        " AND (attribute_not_exists(last_used_at) OR last_used_at < :at)",
        "ExpressionAttributeValues": aws.serialize({":at": to_ms(at), ":upload": upload.id}),
    }
    _write([{"Update": update}])


def least_recently_used(owner: str, *, page: int) -> Iterator[Unused]:
    """The owner's artifacts, from the one that was used longest ago on, in pages that are read as they are needed.

    The index follows the table by some milliseconds: what is done with one has to hold when it is written, too.
    """
    items = aws.query(
        settings().artifacts_table,
        "#owner = :owner",
        {":owner": owner},
        IndexName="by_last_use",
        ExpressionAttributeNames={"#owner": "owner"},
        PaginationConfig={"PageSize": page},
    )
    for item in items:
        yield Unused(
            upload=Upload(owner=owner, hash=ArtifactHash(item["hash"]), id=item["upload_id"]),
            size_bytes=item["size_bytes"],
            last_used_ms=item["last_used_at"],
        )


def evict(
    owner: str, unused: Sequence[Unused], *, above_bytes: int, now: datetime
) -> frozenset[Upload]:
    """Take these artifacts out and count them out, in one transaction: all of them, or none.

    Returns those that kept it from being done because they have been used, replaced or removed meanwhile; none when it
    is done. Raises RoomMade when the owner no longer stores more than `above_bytes`, and TryAgain.
    """
    freed = sum(one.size_bytes for one in unused)
    count = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "ADD size_bytes :bytes, artifacts :artifacts",
        "ConditionExpression": "size_bytes > :above",
        "ExpressionAttributeValues": aws.serialize(
            {":bytes": -freed, ":artifacts": -len(unused), ":above": above_bytes}
        ),
    }
    items: list[dict[str, Any]] = [{"Update": count}]
    for one in unused:
        items.append({"Delete": _still_unused(one)})
        items.append({"Put": _discarded_put(one.upload, now)})
    for attempt in range(_ATTEMPTS):
        try:
            aws.dynamodb().transact_write_items(TransactItems=items)  # type: ignore[arg-type]
        except aws.ClientError as error:
            if aws.error_code(error) != "TransactionCanceledException":
                raise
            counting, *others = _failed_conditions(error, len(items))
            if counting:
                raise RoomMade from error
            if any(others):
                return frozenset(
                    one.upload for one, failed in zip(unused, others[::2], strict=True) if failed
                )
            wait_before_retry(attempt)
        else:
            return frozenset()
    raise TryAgain


def claim_eviction(owner: str, *, now: datetime, until: datetime) -> bool:
    """Whether it is the caller's to have room made: at most one is until `until`, or until the eviction is over."""
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "SET evicting_until = :until",
        "ConditionExpression": "attribute_not_exists(evicting_until) OR evicting_until <= :now",
        "ExpressionAttributeValues": aws.serialize({":until": to_ms(until), ":now": to_ms(now)}),
    }
    return _write([{"Update": update}])


def end_eviction(owner: str) -> None:
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "REMOVE evicting_until",
        "ConditionExpression": "attribute_exists(evicting_until)",
    }
    _write([{"Update": update}])


def drop_pending(pending: PendingUpload) -> bool:
    return _write([{"Delete": _pending_is(pending.upload)}])


def forget_discarded(upload: Upload) -> None:
    """The object is gone: so may be the note of it."""
    aws.dynamodb().delete_item(
        TableName=settings().artifacts_table, Key=aws.serialize(_discarded_key(upload))
    )


def postpone_discarded(upload: Upload, *, until: datetime) -> None:
    """Keep the note for as long as the upload may come, for its event to find."""
    _postpone(_discarded_key(upload), upload, until=until)


def add_removal(removal: Removal, *, noting: "Entry", due_at: datetime) -> None:
    """Note a removal, and with it the entry of the audit. It takes the place of an earlier one of the same writer.

    The sweep sees to it from `due_at` on, should nobody else have done it.
    """
    item = {
        "owner": removal.owner,
        "hash": _REMOVAL + removal.writer,
        "asked_at": to_ms(removal.asked_at),
        **_writer_attributes(removal.by),
        "sweep_shard": _REMOVALS_SHARD,
        "sweep_at": to_epoch_seconds(due_at),
    }
    put = {"TableName": settings().artifacts_table, "Item": aws.serialize(item)}
    if not _write([{"Put": put}, *_noting(noting)]):
        raise TryAgain


def read_removal(owner: str, writer: str) -> Removal | None:
    items = _read([{"owner": owner, "hash": _REMOVAL + writer}])
    return _removal(items[0]) if items else None


def postpone_removal(removal: Removal, *, until: datetime) -> None:
    """Have the sweep look once more. Nothing, when a later removal of the same writer has taken its place."""
    update = {
        **_removal_is(removal),
        "UpdateExpression": "SET sweep_at = :until",
    }
    update["ExpressionAttributeValues"] |= aws.serialize({":until": to_epoch_seconds(until)})
    _write([{"Update": update}])


def forget_removal(removal: Removal) -> None:
    """It is done. Nothing, when a later removal of the same writer has taken its place."""
    _write([{"Delete": _removal_is(removal)}])


def add_to_totals(
    owner: str,
    size_bytes: int,
    artifacts: int,
    *,
    quota_bytes: int | None,
    uploaded: tuple[date, Uploads] | None = None,
) -> Totals | None:
    """Count bytes, artifacts and what was uploaded on a day in (or, negative, out).

    Returns what it comes to then; None, and nothing done, when the bytes would pass the quota. Raises TryAgain.
    """
    more: dict[str, Any] = {}
    values = {":bytes": size_bytes, ":artifacts": artifacts}
    added = "size_bytes :bytes, artifacts :artifacts"
    if uploaded is not None:
        day, uploads = uploaded
        added += ", #uploads :uploads, #uploaded_bytes :uploaded_bytes"
        more["ExpressionAttributeNames"] = _names_of_uploads(day)
        values |= {":uploads": uploads.count, ":uploaded_bytes": uploads.size_bytes}
    if quota_bytes is not None and size_bytes > 0:
        if size_bytes > quota_bytes:
            return None
        values[":room"] = quota_bytes - size_bytes
        more["ConditionExpression"] = "attribute_not_exists(size_bytes) OR size_bytes <= :room"
    for attempt in range(_ATTEMPTS):
        try:
            reply = aws.dynamodb().update_item(
                TableName=settings().artifacts_table,
                Key=aws.serialize(totals_key(owner)),
                # New totals are due to be checked at once; then the sweep says when again.
                UpdateExpression=f"ADD {added} "
                "SET sweep_shard = if_not_exists(sweep_shard, :shard), "
                "sweep_at = if_not_exists(sweep_at, :due)",
                ExpressionAttributeValues=aws.serialize(
                    {**values, ":shard": _shard(owner), ":due": 0}
                ),
                ReturnValues="ALL_NEW",
                **more,
            )
        except aws.ClientError as error:
            if aws.error_code(error) == "ConditionalCheckFailedException":
                return None
            if not aws.is_conflict(error):
                raise
            # An eviction counts out at this moment.
            wait_before_retry(attempt)
        else:
            return parse_totals([aws.deserialize(reply["Attributes"])])
    raise TryAgain


def forget_totals(owner: str) -> bool:
    """Delete the totals of an owner who stores nothing; False when they tell of something."""
    try:
        aws.dynamodb().delete_item(
            TableName=settings().artifacts_table,
            Key=aws.serialize(totals_key(owner)),
            ConditionExpression="attribute_not_exists(size_bytes) OR (size_bytes = :none AND artifacts = :none)",
            ExpressionAttributeValues=aws.serialize({":none": 0}),
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def _names_of_uploads(day: date) -> dict[str, str]:
    return {"#uploads": f"{_UPLOADS}{day}", "#uploaded_bytes": f"{_UPLOADED_BYTES}{day}"}


def forget_uploads(owner: str, day: date) -> None:
    """The usage table has the day's uploads: the totals need not keep them."""
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "REMOVE #uploads, #uploaded_bytes",
        "ConditionExpression": "attribute_exists(size_bytes)",
        "ExpressionAttributeNames": _names_of_uploads(day),
    }
    _write([{"Update": update}])


def replace_totals(owner: str, totals: Totals, *, was: Totals) -> bool:
    """Set the owner's totals. False when they are no longer what they were."""
    values = {
        ":bytes": totals.size_bytes,
        ":artifacts": totals.artifacts,
        ":was_bytes": was.size_bytes,
        ":was_artifacts": was.artifacts,
    }
    condition = "size_bytes = :was_bytes AND artifacts = :was_artifacts"
    if was == Totals():
        condition = f"attribute_not_exists(size_bytes) OR ({condition})"
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(owner)),
        "UpdateExpression": "SET size_bytes = :bytes, artifacts = :artifacts",
        "ConditionExpression": condition,
        "ExpressionAttributeValues": aws.serialize(values),
    }
    return _write([{"Update": update}])


def sum_index(owner: str, *, may_go_on: Callable[[], bool] = lambda: True) -> IndexSum:
    """What the owner's items in the index come to. Raises OutOfTime when `may_go_on` says so.

    Reads all of them, however many, and keeps none: for background work and the operator, never on a request.
    """
    items = aws.query(
        settings().artifacts_table,
        "#owner = :owner",
        {":owner": owner},
        ProjectionExpression="#hash, size_bytes, last_used_at",
        ExpressionAttributeNames={"#owner": "owner", "#hash": "hash"},
        ConsistentRead=True,
    )
    size_bytes = artifacts = unlisted = 0
    for number, item in enumerate(items):
        if number % _SUMMED_BETWEEN_LOOKS == 0 and not may_go_on():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
    return IndexSum(totals=Totals(size_bytes=size_bytes, artifacts=artifacts), unlisted=unlisted)


def check_totals(due: DueTotals, *, correct: bool, drift: Totals, next_at: datetime) -> bool:
    """Note what a check of the totals found: `drift` beyond the index, taken off when `correct`, else remembered.

    False, and nothing noted, when an eviction counted out at that moment.
    """
    remembered = Totals() if correct else drift
    values = {
        ":bytes": -drift.size_bytes if correct else 0,
        ":artifacts": -drift.artifacts if correct else 0,
        ":drift_bytes": remembered.size_bytes,
        ":drift_artifacts": remembered.artifacts,
        ":next": to_epoch_seconds(next_at),
    }
    update = {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(totals_key(due.owner)),
        "UpdateExpression": "ADD size_bytes :bytes, artifacts :artifacts SET sweep_at = :next, "
        "drift_bytes = :drift_bytes, drift_artifacts = :drift_artifacts",
        "ExpressionAttributeValues": aws.serialize(values),
    }
    return _write([{"Update": update}])


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
    items = _read([{"owner": due.owner, "hash": due.sort_key}])
    if not items:
        return None
    item = items[0]
    if due.sort_key == _TOTALS:
        drift = Totals(
            size_bytes=item.get("drift_bytes", 0), artifacts=item.get("drift_artifacts", 0)
        )
        return DueTotals(due.owner, parse_totals(items), drift)
    if due.sort_key.startswith(_REMOVAL):
        return _removal(item)
    if due.sort_key.startswith(_DISCARDED):
        return Upload(owner=due.owner, hash=ArtifactHash(item["of"]), id=item["upload_id"])
    return _pending(item) if due.sort_key.endswith(_PENDING) else _artifact(item)


def postpone_sweep(artifact: Artifact) -> None:
    """The retention has been lengthened since the item was written: sweep it when it really expires."""
    upload = artifact.upload
    key = {"owner": upload.owner, "hash": upload.hash}
    _postpone(key, upload, until=expires_at(artifact))


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
    _write([{"Update": update}])


def _read(keys: Sequence[aws.Item]) -> list[aws.Item]:
    table = settings().artifacts_table
    return aws.batch_get({table: keys})[table]


def _write(items: Sequence[dict[str, Any]]) -> bool:
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


def _still_unused(unused: Unused) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": unused.upload.owner, "hash": unused.upload.hash}),
        "ConditionExpression": "upload_id = :upload AND last_used_at = :used",
        "ExpressionAttributeValues": aws.serialize(
            {":upload": unused.upload.id, ":used": unused.last_used_ms}
        ),
    }


def _noting(entry: "Entry | None") -> list[dict[str, Any]]:
    if entry is None:
        return []
    # Imported here: requests of builds start faster without it.
    from larder.audit.repository import put

    return [put(entry)]


def _failed_conditions(error: aws.ClientError, count: int) -> list[bool]:
    """Which of a transaction's items failed their condition."""
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    failed = [reason.get("Code") == "ConditionalCheckFailed" for reason in reasons]
    return failed + [False] * (count - len(failed))


def _raced(error: aws.ClientError) -> bool:
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    codes = {reason.get("Code") for reason in reasons}
    return bool(codes & {"ConditionalCheckFailed", "TransactionConflict"})


def _expects(replaces: Artifact | None) -> dict[str, Any]:
    if replaces is None:
        return {"ConditionExpression": "attribute_not_exists(upload_id)"}
    return {
        "ConditionExpression": "upload_id = :replaces",
        "ExpressionAttributeValues": aws.serialize({":replaces": replaces.upload.id}),
    }


def _absent(key: aws.Item) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize(key),
        "ConditionExpression": "attribute_not_exists(upload_id)",
    }


def _pending_is(upload: Upload) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": upload.owner, "hash": upload.hash + _PENDING}),
        "ConditionExpression": "upload_id = :pending",
        "ExpressionAttributeValues": aws.serialize({":pending": upload.id}),
    }


def _removal_is(removal: Removal) -> dict[str, Any]:
    return {
        "TableName": settings().artifacts_table,
        "Key": aws.serialize({"owner": removal.owner, "hash": _REMOVAL + removal.writer}),
        "ConditionExpression": "asked_at = :asked_at",
        "ExpressionAttributeValues": aws.serialize({":asked_at": to_ms(removal.asked_at)}),
    }


def _discarded_key(upload: Upload) -> aws.Item:
    return {"owner": upload.owner, "hash": _DISCARDED + upload.id}


def _discarded_put(upload: Upload, now: datetime, until: datetime | None = None) -> dict[str, Any]:
    # A reader may have been given a URL a moment ago, and S3 lets a download that has begun end.
    deletable = now + timedelta(seconds=settings().download_url_seconds + 60)
    if until is not None:
        deletable = max(deletable, until)
    return {
        "TableName": settings().artifacts_table,
        "Item": aws.serialize(
            {
                **_discarded_key(upload),
                "of": upload.hash,
                "upload_id": upload.id,
                **_sweep(upload, deletable),
            }
        ),
    }


def _sweep(upload: Upload, at: datetime) -> aws.Item:
    return {"sweep_shard": _shard(upload.id), "sweep_at": to_epoch_seconds(at)}


def _shard(text: str) -> str:
    return str(zlib.crc32(text.encode()) % SWEEP_SHARDS)


def _artifact_item(artifact: Artifact) -> aws.Item:
    upload = artifact.upload
    return {
        "owner": upload.owner,
        "hash": upload.hash,
        "upload_id": upload.id,
        "size_bytes": artifact.size_bytes,
        "created_at": to_ms(artifact.created_at),
        **_writer_attributes(artifact.writer),
        "last_used_at": _listed_at(artifact),
        **{name: getattr(artifact.metadata, name) for name in _METADATA},
        # As text: functions of the version before, which may meet it during an update, read no other type.
        "body": None if artifact.body is None else b64encode(artifact.body).decode("ascii"),
        **_sweep(upload, expires_at(artifact)),
    }


def _listed_at(artifact: Artifact) -> int | None:
    """Its place in the index of last uses, to begin with; None where nothing is evicted, which saves the index."""
    return to_ms(artifact.last_used_at or artifact.created_at) if settings().evicts else None


def _artifact(item: aws.Item) -> Artifact:
    last_used_at = item.get("last_used_at")
    return Artifact(
        upload=Upload(owner=item["owner"], hash=ArtifactHash(item["hash"]), id=item["upload_id"]),
        size_bytes=item["size_bytes"],
        created_at=from_ms(item["created_at"]),
        metadata=ArtifactMetadata(**{name: item.get(name) for name in _METADATA}),
        writer=_writer(item),
        last_used_at=None if last_used_at is None else from_ms(last_used_at),
        body=b64decode(item["body"]) if "body" in item else None,
    )


def _removal(item: aws.Item) -> Removal:
    return Removal(
        owner=item["owner"],
        writer=item["hash"].removeprefix(_REMOVAL),
        asked_at=from_ms(item["asked_at"]),
        by=_writer(item),
    )


def _pending(item: aws.Item) -> PendingUpload:
    hash = ArtifactHash(item["hash"].removesuffix(_PENDING))
    upload = Upload(owner=item["owner"], hash=hash, id=item["upload_id"])
    return PendingUpload(
        upload=upload,
        created_at=from_ms(item["created_at"]),
        # Offers of an older version have it beside the id.
        writer=upload.writer or _writer(item),
    )


def _writer_attributes(writer: Writer | None) -> aws.Item:
    return {} if writer is None else {"writer": writer.id, "user_id": writer.user_id}


def _writer(item: aws.Item) -> Writer | None:
    return Writer(item["writer"], item.get("user_id")) if "writer" in item else None
