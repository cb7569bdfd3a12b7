"""The index of artifacts: published artifacts, offered uploads, discarded objects.

A published artifact changes only by one conditional write or transaction, which names the upload that it replaces. So
of several writers exactly one succeeds, and the replaced object is listed as discarded in the same transaction.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from larder.artifacts.expiry import expires_at
from larder.artifacts.models import (
    NULL_VERSION,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    ArtifactPage,
    IndexEntry,
    PendingUpload,
    RequestItems,
    Upload,
)
from larder.artifacts.repository.table import (
    audit_puts,
    shard,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import parse_totals, totals_key
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.concurrency import submit
from larder.conditions import Condition, above, below, equals, missing, not_equals
from larder.errors import Contention, TryAgain
from larder.settings import settings
from larder.tables import (
    ARTIFACTS,
    BATCH_KEYS,
    Found,
    Item,
    Key,
    Read,
    Write,
    batch_get,
    commit,
    in_batches,
    read_together,
)
from larder.teams.repository import parse_standing, standing_keys

if TYPE_CHECKING:
    from larder.audit.models import Entry

T = TypeVar("T")

PENDING_LIFETIME = timedelta(hours=24)
"""How long an offered upload can take before the sweep gives it up. Enough for 5 GB on a slow connection."""

DISCARDED = "#discarded#"

_PENDING = "#pending"
_AFTER_NOTES = "$"
"""Sorts after everything that begins with `#`, and before every hash."""
_METADATA = ("duration_ms", "tag", "sha", "dirty_hash", "ci", "interactive")


def entry_keys(owner: str, hash: ArtifactHash) -> list[Key]:
    """The keys whose items `parse_entry` reads."""
    return [(owner, hash), (owner, hash + _PENDING)]


def parse_entry(items: Iterable[Item], hash: ArtifactHash) -> IndexEntry:
    by_key = {item["hash"]: item for item in items}
    artifact = by_key.get(hash)
    pending = by_key.get(hash + _PENDING)
    return IndexEntry(
        artifact=None if artifact is None else _artifact(artifact),
        pending=None if pending is None else _pending(pending),
    )


def parse_stored(item: Item) -> Artifact | PendingUpload:
    return _pending(item) if item["hash"].endswith(_PENDING) else _artifact(item)


def read_entry(owner: str, hash: ArtifactHash) -> IndexEntry:
    return parse_entry(ARTIFACTS.get_many(entry_keys(owner, hash)), hash)


def read_entries(
    owner: str, hashes: Sequence[ArtifactHash]
) -> tuple[dict[ArtifactHash, IndexEntry], set[ArtifactHash]]:
    """Look up many hashes, with batches in parallel. Returns the entries, and the hashes whose batch failed."""
    batches = list(in_batches(hashes, BATCH_KEYS // 2))
    reads = [
        submit(ARTIFACTS.get_many, [key for hash in batch for key in entry_keys(owner, hash)])
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
    """Every artifact and every offered upload of the owner, page by page. For background work, never on a request."""
    for item in ARTIFACTS.query(equals(owner=owner) & above(hash=_AFTER_NOTES)):
        yield parse_stored(item)


def read_page(owner: str, *, after: str, limit: int) -> ArtifactPage:
    """One page of the owner's artifacts by hash, with one call. `after` is empty, or `following` of the last page.

    Offered uploads count towards `limit` but are left out, so a page can be shorter.
    """
    where = equals(owner=owner) & above(hash=after or _AFTER_NOTES)
    items, last = ARTIFACTS.page(where, limit=limit)
    return ArtifactPage(
        artifacts=tuple(_artifact(item) for item in items if not item["hash"].endswith(_PENDING)),
        following=None if last is None else str(last["hash"]),
    )


def read_for_settling(upload: Upload) -> tuple[IndexEntry, bool]:
    """The entry of the upload's hash, and whether the upload was discarded."""
    key = discarded_key(upload)
    items = ARTIFACTS.get_many([*entry_keys(upload.owner, upload.hash), key])
    discarded = any((item["owner"], item["hash"]) == key for item in items)
    return parse_entry(items, upload.hash), discarded


def read_with_membership(
    owner: str, user_id: str, hash: ArtifactHash | None, *, totals: bool
) -> RequestItems:
    """Read all that a request needs after its key, in one consistent batch: the user's role and the
    owner's state, the entry of the hash if the request names one, and the owner's totals if needed.
    """
    items = _request_items(owner, user_id, hash, totals=totals)
    return items.parse(batch_get(items.keys))


def read_with_credential(
    credential: Read[T], owner: str, user_id: str, hash: ArtifactHash | None, *, totals: bool
) -> tuple[T, RequestItems]:
    """The same batch, and the key or session of the request in it."""
    return read_together(credential, _request_items(owner, user_id, hash, totals=totals))


def _request_items(
    owner: str, user_id: str, hash: ArtifactHash | None, *, totals: bool
) -> Read[RequestItems]:
    keys = entry_keys(owner, hash) if hash is not None else []
    if totals:
        keys.append(totals_key(owner))

    def parse(found: Found) -> RequestItems:
        items = found[ARTIFACTS]
        entry = parse_entry(items, hash) if hash is not None else IndexEntry()
        return RequestItems(parse_standing(found), entry, parse_totals(items))

    return Read({**standing_keys(owner, user_id), ARTIFACTS: keys}, parse)


def put_pending(pending: PendingUpload) -> None:
    """Store an offered upload. Replaces an earlier offer for the hash; if that one is used, its S3 event settles it."""
    upload = pending.upload
    item = {
        "owner": upload.owner,
        "hash": upload.hash + _PENDING,
        "upload_id": upload.id,
        "created_at": to_ms(pending.created_at),
        **_sweep(upload, pending.created_at + PENDING_LIFETIME),
    }
    commit(ARTIFACTS.put(item))


def publish(
    artifact: Artifact,
    *,
    replaces: Artifact | None,
    settles: PendingUpload | None = None,
    offered: bool = False,
    noting: "Entry | None" = None,
    now: datetime,
) -> bool:
    """Publish `artifact` in place of exactly `replaces`, and store the audit entry in the same transaction.

    Returns False, and changes nothing, if another write came first or the upload has been discarded. The latter is
    checked if `offered` is set, which means that others than the caller know of the object. `settles` is the pending
    item to delete in the same transaction.
    """
    upload = artifact.upload
    writes = [ARTIFACTS.put(_artifact_item(artifact), when=_is_at(replaces))]
    if offered or replaces is not None:
        writes.append(ARTIFACTS.check(*discarded_key(upload), when=missing("upload_id")))
    if settles is not None:
        writes.append(_settling(settles))
    if replaces is not None:
        writes.append(discarded_put(replaces.upload, now))
    writes += audit_puts(noting)
    try:
        return commit(*writes)
    except Contention:
        # Nothing is written. The caller has added the artifact to the totals: it retries or subtracts it again.
        return False


def discard_pending(pending: PendingUpload, *, now: datetime) -> bool:
    """Discard an offered upload, so that its object is never published. False if it has been settled or replaced.

    The upload stays listed as discarded while its object can arrive, so that the S3 event finds it.
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
    """List an object for deletion, no earlier than `until`. False if the object is in the index."""
    unpublished = missing("upload_id") | not_equals(upload_id=upload.id)
    writes = [
        discarded_put(upload, now, until),
        ARTIFACTS.check(upload.owner, upload.hash, when=unpublished),
    ]
    if settles is not None:
        writes.append(_settling(settles))
    return commit(*writes)


def delete(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Delete an artifact from the index and list its object for deletion. False if it is not in the index any more.

    The audit entry is stored in the same transaction, so it exists only if the artifact was deleted.
    """
    upload = artifact.upload
    return commit(
        ARTIFACTS.delete(upload.owner, upload.hash, when=_is_at(artifact)),
        discarded_put(upload, now),
        *audit_puts(noting),
    )


def note_use(artifact: Artifact, *, at: datetime) -> None:
    """Record a use in the index of last uses. Does nothing if the artifact is gone or a later use is recorded."""
    upload = artifact.upload
    used = to_ms(at)
    newer = missing("last_used_at") | below(last_used_at=used)
    when = equals(upload_id=upload.id) & newer
    commit(ARTIFACTS.update(upload.owner, upload.hash, set={"last_used_at": used}, when=when))


def delete_pending(pending: PendingUpload) -> bool:
    return commit(_settling(pending))


def _is_at(artifact: Artifact | None) -> Condition:
    """Condition: the published artifact is this one; for None, there is none."""
    return missing("upload_id") if artifact is None else equals(upload_id=artifact.upload.id)


def _settling(pending: PendingUpload) -> Write:
    """Delete an offered upload, on condition that no other has replaced it."""
    upload = pending.upload
    return ARTIFACTS.delete(upload.owner, upload.hash + _PENDING, when=equals(upload_id=upload.id))


def discarded_key(upload: Upload) -> Key:
    return upload.owner, DISCARDED + upload.id


def discarded_put(upload: Upload, now: datetime, until: datetime | None = None) -> Write:
    # A client can have a download URL until then. A download that has begun is not cut off by the deletion.
    delete_at = now + timedelta(seconds=settings().download_url_seconds + 60)
    if until is not None:
        delete_at = max(delete_at, until)
    owner, hash = discarded_key(upload)
    item = {"owner": owner, "hash": hash, "of": upload.hash, "upload_id": upload.id}
    return ARTIFACTS.put({**item, **_sweep(upload, delete_at)})


def _sweep(upload: Upload, at: datetime) -> Item:
    return {"sweep_shard": shard(upload.id), "sweep_at": to_epoch_seconds(at)}


def _artifact_item(artifact: Artifact) -> Item:
    upload = artifact.upload
    return {
        "owner": upload.owner,
        "hash": upload.hash,
        "upload_id": upload.id,
        "size_bytes": artifact.size_bytes,
        "created_at": to_ms(artifact.created_at),
        "version": artifact.version,
        **writer_attributes(artifact.writer),
        "last_used_at": _listed_at(artifact),
        **{name: getattr(artifact.metadata, name) for name in _METADATA},
        # As text, because functions of the previous version may read it during an update and know no other type.
        "body": None if artifact.body is None else b64encode(artifact.body).decode("ascii"),
        **_sweep(upload, expires_at(artifact)),
    }


def _listed_at(artifact: Artifact) -> int | None:
    """The sort key in the index of last uses. None if the deployment does not evict, which keeps the index empty."""
    return to_ms(artifact.last_used_at or artifact.created_at) if settings().evicts else None


def _artifact(item: Item) -> Artifact:
    last_used_at = item.get("last_used_at")
    return Artifact(
        upload=Upload(owner=item["owner"], hash=ArtifactHash(item["hash"]), id=item["upload_id"]),
        size_bytes=item["size_bytes"],
        created_at=from_ms(item["created_at"]),
        # Items of version 0.1.0 have none: the bucket kept no versions.
        version=item.get("version", NULL_VERSION),
        metadata=ArtifactMetadata(**{name: item.get(name) for name in _METADATA}),
        writer=writer_of(item),
        last_used_at=None if last_used_at is None else from_ms(last_used_at),
        body=b64decode(item["body"]) if "body" in item else None,
    )


def _pending(item: Item) -> PendingUpload:
    hash = ArtifactHash(item["hash"].removesuffix(_PENDING))
    upload = Upload(owner=item["owner"], hash=hash, id=item["upload_id"])
    return PendingUpload(
        upload=upload,
        created_at=from_ms(item["created_at"]),
        # In offers of an older version, the writer is not part of the id.
        writer=upload.writer or writer_of(item),
    )
