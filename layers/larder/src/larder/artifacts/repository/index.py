"""The index of artifacts: what readers see, what was offered to come, what nobody will see again.

Every change of what readers see is one conditional write (or one transaction) that names the upload it replaces, so
that each change has exactly one author, and a replaced object is listed as discarded in the same breath.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.artifacts.models import (
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    ArtifactPage,
    IndexEntry,
    PendingUpload,
    Totals,
    Upload,
)
from larder.artifacts.repository.items import (
    audit_puts,
    shard,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import parse_totals, totals_key
from larder.artifacts.retention import expires_at
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.concurrency import submit
from larder.conditions import Condition, above, below, equals, missing, not_equals
from larder.errors import Contention, TryAgain
from larder.settings import settings
from larder.tables import (
    ARTIFACTS,
    BATCH_KEYS,
    TEAMS,
    Item,
    Key,
    Write,
    batch_get,
    commit,
    in_batches,
)
from larder.teams.models import Membership
from larder.teams.repository import parse_standing, standing_keys

if TYPE_CHECKING:
    from larder.audit.models import Entry

PENDING_LIFETIME = timedelta(hours=24)
"""How long an offered upload may take before the sweep gives it up. Longer than 5 GB need on a slow line."""

DISCARDED = "#discarded#"

_PENDING = "#pending"
_AFTER_NOTES = "$"
"""Sorts behind everything that begins with `#`, and before every hash."""
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
    """Look many hashes up, batches in parallel. Returns the entries, and the hashes whose batch failed."""
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
    """Every artifact and every offer of the owner, page by page: for background work, never on a request."""
    for item in ARTIFACTS.query(equals(owner=owner) & above(hash=_AFTER_NOTES)):
        yield parse_stored(item)


def read_page(owner: str, *, after: str, limit: int) -> ArtifactPage:
    """The owner's artifacts behind a place in the order of hashes, one request whatever there is. `after` is empty, or
    `following` of the page before. Offers take places of the page, too.
    """
    where = equals(owner=owner) & above(hash=after or _AFTER_NOTES)
    items, last = ARTIFACTS.page(where, limit=limit)
    return ArtifactPage(
        artifacts=tuple(_artifact(item) for item in items if not item["hash"].endswith(_PENDING)),
        following=None if last is None else str(last["hash"]),
    )


def read_for_settling(upload: Upload) -> tuple[IndexEntry, bool]:
    """The entry of the upload's hash, and whether the upload was discarded."""
    note = discarded_key(upload)
    items = ARTIFACTS.get_many([*entry_keys(upload.owner, upload.hash), note])
    discarded = any((item["owner"], item["hash"]) == note for item in items)
    return parse_entry(items, upload.hash), discarded


def read_with_standing(
    owner: str, user_id: str, hash: ArtifactHash | None, *, totals: bool
) -> tuple[Membership, IndexEntry, Totals]:
    """What a request needs to know beside its key, in one consistent batch over two tables: the standing of the user
    with the owner, the entry of the hash that the request names, and the owner's totals if they matter.
    """
    keys = entry_keys(owner, hash) if hash is not None else []
    if totals:
        keys.append(totals_key(owner))
    found = batch_get({TEAMS: standing_keys(owner, user_id), ARTIFACTS: keys})
    items = found[ARTIFACTS]
    entry = parse_entry(items, hash) if hash is not None else IndexEntry()
    return parse_standing(found[TEAMS]), entry, parse_totals(items)


def put_pending(pending: PendingUpload) -> None:
    """Offer an upload. An earlier offer for the hash is forgotten here; if it is used, its S3 event settles it."""
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
    now: datetime,
) -> bool:
    """Make `artifact` what readers see, in place of exactly `replaces`.

    Returns False, and changes nothing, when another write came first or the upload has been discarded meanwhile.
    `offered` says that the latter can be: somebody else than the caller knows of the object. `settles` is the pending
    item that goes with the write.
    """
    upload = artifact.upload
    writes = [ARTIFACTS.put(_artifact_item(artifact), when=_is_at(replaces))]
    if offered or replaces is not None:
        writes.append(ARTIFACTS.check(*discarded_key(upload), when=missing("upload_id")))
    if settles is not None:
        writes.append(_settling(settles))
    if replaces is not None:
        writes.append(discarded_put(replaces.upload, now))
    try:
        return commit(*writes)
    except Contention:
        # Nothing is written. The caller has counted the artifact in: they look again, or count it out.
        return False


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
    unpublished = missing("upload_id") | not_equals(upload_id=upload.id)
    writes = [
        discarded_put(upload, now, until),
        ARTIFACTS.check(upload.owner, upload.hash, when=unpublished),
    ]
    if settles is not None:
        writes.append(_settling(settles))
    return commit(*writes)


def remove(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Take an artifact out of the index and list its object for deletion. False when it is no longer there.

    The entry of the audit is kept with it or, when nothing is done, not at all.
    """
    upload = artifact.upload
    return commit(
        ARTIFACTS.delete(upload.owner, upload.hash, when=_is_at(artifact)),
        discarded_put(upload, now),
        *audit_puts(noting),
    )


def note_use(artifact: Artifact, *, at: datetime) -> None:
    """Put the artifact into its place in the index of last uses. Nothing, when it is not there any more, or was used
    later.
    """
    upload = artifact.upload
    used = to_ms(at)
    newer = missing("last_used_at") | below(last_used_at=used)
    when = equals(upload_id=upload.id) & newer
    commit(ARTIFACTS.update(upload.owner, upload.hash, set={"last_used_at": used}, when=when))


def drop_pending(pending: PendingUpload) -> bool:
    return commit(_settling(pending))


def _is_at(artifact: Artifact | None) -> Condition:
    """What readers see is this artifact, or nothing."""
    return missing("upload_id") if artifact is None else equals(upload_id=artifact.upload.id)


def _settling(pending: PendingUpload) -> Write:
    """The end of an offer, on condition that no other has taken its place."""
    upload = pending.upload
    return ARTIFACTS.delete(upload.owner, upload.hash + _PENDING, when=equals(upload_id=upload.id))


def discarded_key(upload: Upload) -> Key:
    return upload.owner, DISCARDED + upload.id


def discarded_put(upload: Upload, now: datetime, until: datetime | None = None) -> Write:
    # A reader may have been given a URL a moment ago, and S3 lets a download that has begun end.
    deletable = now + timedelta(seconds=settings().download_url_seconds + 60)
    if until is not None:
        deletable = max(deletable, until)
    owner, hash = discarded_key(upload)
    note = {"owner": owner, "hash": hash, "of": upload.hash, "upload_id": upload.id}
    return ARTIFACTS.put({**note, **_sweep(upload, deletable)})


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
        **writer_attributes(artifact.writer),
        "last_used_at": _listed_at(artifact),
        **{name: getattr(artifact.metadata, name) for name in _METADATA},
        # As text: functions of the version before, which may meet it during an update, read no other type.
        "body": None if artifact.body is None else b64encode(artifact.body).decode("ascii"),
        **_sweep(upload, expires_at(artifact)),
    }


def _listed_at(artifact: Artifact) -> int | None:
    """Its place in the index of last uses, to begin with; None where nothing is evicted, which saves the index."""
    return to_ms(artifact.last_used_at or artifact.created_at) if settings().evicts else None


def _artifact(item: Item) -> Artifact:
    last_used_at = item.get("last_used_at")
    return Artifact(
        upload=Upload(owner=item["owner"], hash=ArtifactHash(item["hash"]), id=item["upload_id"]),
        size_bytes=item["size_bytes"],
        created_at=from_ms(item["created_at"]),
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
        # Offers of an older version have it beside the id.
        writer=upload.writer or writer_of(item),
    )
