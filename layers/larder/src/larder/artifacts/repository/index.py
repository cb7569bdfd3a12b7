"""The index of artifacts: published artifacts, offered uploads, discarded objects.

A published artifact changes only by one conditional write or transaction, which names the upload that it replaces. So
of several writers exactly one succeeds, and the replaced object is listed as discarded in the same transaction.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from larder.actor import Actor
from larder.artifacts.expiry import expires_at, object_expires_at
from larder.artifacts.models import (
    NULL_VERSION,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    Contested,
    IndexEntry,
    PendingUpload,
    RequestItems,
    Upload,
    Wanted,
    index_key,
    parse_index_key,
    same_upload,
)
from larder.artifacts.repository.partitions import query_each
from larder.artifacts.repository.table import (
    audit_puts,
    owner_of,
    partition_of,
    shard,
    writer_attributes,
    writer_of,
)
from larder.artifacts.repository.totals import parse_totals, totals_key
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.concurrency import attempts, submit
from larder.conditions import (
    Condition,
    above,
    below,
    equals,
    missing,
    not_equals,
)
from larder.errors import Contention, TryAgain
from larder.hashing import time_ordered_id
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
from larder.teams.repository import membership_keys, parse_membership

if TYPE_CHECKING:
    from larder.audit.models import Entry

T = TypeVar("T")
K = TypeVar("K")

PENDING_LIFETIME = timedelta(hours=24)
"""How long an offered upload can take before the sweep gives it up. Enough for 5 GB on a slow connection."""

HELD_FOR = timedelta(days=14)
"""How long a body is held next to the index. Most artifacts are fetched within days."""

DISCARDED = "#discarded#"

_DELETED = "#deleted#"
"""Before the key of an artifact: when it was last deleted by its hash, as long as uploads offered before can arrive."""

BODY = "#body#"
"""Before the owner and the key of an artifact, in a partition key of its own: the item with its body."""

PENDING = "#pending"
AFTER_NOTES = "$"
"""Sorts after everything that begins with `#`, and before every hash."""
_METADATA = ("duration_ms", "tag", "sha", "dirty_hash", "ci", "interactive")

_BEFORE_SHARED = timedelta(days=3650)
"""Artifacts of own scopes are listed as used this much earlier: evicted before every artifact of the shared scope."""


def entry_keys(owner: str, key: str) -> list[tuple[str, str]]:
    """The keys whose items `parse_entry` needs. `key` is an `index_key`."""
    partition = partition_of(owner, key)
    return [(partition, key), (partition, key + PENDING)]


def artifact_key(upload: Upload) -> Key:
    return entry_keys(upload.owner, upload.index_key)[0]


def _body_key(owner: str, key: str) -> Key:
    return f"{BODY}{owner}#{key}", "body"


def parse_entry(items: Iterable[Item], owner: str, key: str, *, unread: bool = False) -> IndexEntry:
    """The entry of this `index_key`. With `unread`, the item of the offered upload is not among the items."""
    by_key = {ARTIFACTS.key_of(item): item for item in items}
    of_artifact, of_pending = entry_keys(owner, key)
    artifact, pending = by_key.get(of_artifact), by_key.get(of_pending)
    held = by_key.get(_body_key(owner, key))
    if artifact is not None and held is not None and held["upload_id"] == artifact["upload_id"]:
        artifact["body"] = held["body"]
    return IndexEntry(
        artifact=None if artifact is None else parse_artifact(artifact),
        pending=None if pending is None else _pending(pending),
        unread=of_pending if unread else None,
    )


def parse_stored(item: Item) -> Artifact | PendingUpload:
    return _pending(item) if item["hash"].endswith(PENDING) else parse_artifact(item)


def read_entry(owner: str, hash: ArtifactHash, scope: str | None = None) -> IndexEntry:
    key = index_key(hash, scope)
    return parse_entry(ARTIFACTS.get_many(entry_keys(owner, key)), owner, key)


def read_entries(owner: str, keys: Sequence[str]) -> tuple[dict[str, IndexEntry], set[str]]:
    """Look up many index keys, with batches in parallel. Returns the entries, and the keys whose batch failed.

    Their offered uploads are not read: `read_offers` does.
    """
    batches = list(in_batches(keys))
    reads = [
        submit(ARTIFACTS.get_many, [entry_keys(owner, key)[0] for key in batch])
        for batch in batches
    ]
    entries: dict[str, IndexEntry] = {}
    failed: set[str] = set()
    for batch, read in zip(batches, reads, strict=True):
        try:
            items = read.result()
        except TryAgain:
            failed.update(batch)
            continue
        by_key = {ARTIFACTS.key_of(item): item for item in items}
        for key in batch:
            present = [by_key[each] for each in entry_keys(owner, key) if each in by_key]
            entries[key] = parse_entry(present, owner, key, unread=True)
    return entries, failed


def read_artifacts(uploads: Sequence[Upload]) -> dict[Upload, Artifact]:
    """Those of up to a hundred uploads that are published."""
    items = ARTIFACTS.get_many(list(dict.fromkeys(map(artifact_key, uploads))))
    published = {artifact.upload: artifact for artifact in map(parse_artifact, items)}
    return {upload: published[upload] for upload in uploads if upload in published}


def read_offers(entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """The entries, with the offered uploads of those that are `unread`. Raises TryAgain.

    Their artifacts are read again, because an upload that was published meanwhile is not offered any more.
    """
    keys: list[Key] = []
    for entry in entries:
        if entry.unread is not None:
            partition, pending = entry.unread
            keys += [(partition, pending.removesuffix(PENDING)), entry.unread]
    items = ARTIFACTS.get_many(keys)
    return [
        entry if entry.unread is None else _offered(entry, *entry.unread, items)
        for entry in entries
    ]


def _offered(entry: IndexEntry, partition: str, pending: str, items: Sequence[Item]) -> IndexEntry:
    found = parse_entry(items, owner_of(partition), pending.removesuffix(PENDING))
    # The first read can have the body, too.
    is_same = same_upload(found.artifact, entry.artifact)
    return replace(found, artifact=entry.artifact) if is_same else found


def read_offers_of(
    missed: Mapping[K, Sequence[IndexEntry]],
) -> tuple[dict[K, list[IndexEntry]], set[K]]:
    """The same for many, with batches in parallel. Returns also those whose batch failed."""
    # The entries of one are few: those of a hash in two scopes.
    batches = list(in_batches(list(missed), BATCH_KEYS // 4))
    reads = [
        submit(read_offers, [each for one in batch for each in missed[one]]) for batch in batches
    ]
    found: dict[K, list[IndexEntry]] = {}
    failed: set[K] = set()
    for batch, read in zip(batches, reads, strict=True):
        try:
            entries = iter(read.result())
        except TryAgain:
            failed.update(batch)
            continue
        found |= {one: list(islice(entries, len(missed[one]))) for one in batch}
    return found, failed


def stored_by(owner: str) -> Iterator[Artifact | PendingUpload]:
    """Every artifact and every offered upload of the owner, page by page. For background work, never on a request."""
    for item in query_each(owner, above(hash=AFTER_NOTES)):
        yield parse_stored(item)


def read_for_publishing(upload: Upload, *, now: datetime) -> tuple[IndexEntry, bool]:
    """The entry of the upload's hash, and whether the upload is discarded.

    Discards an upload that began before a deletion of its hash.
    """
    owner, key = upload.owner, upload.index_key
    discarded, deleted = discarded_key(upload), (partition_of(owner, key), _DELETED + key)
    items = ARTIFACTS.get_many([*entry_keys(owner, key), discarded, deleted])
    by_key = {ARTIFACTS.key_of(item): item for item in items}
    is_discarded = discarded in by_key
    if not is_discarded and deleted in by_key and upload.id < by_key[deleted]["upload_id"]:
        is_discarded = discard(upload, now=now)
    return parse_entry(items, owner, key), is_discarded


def read_with_membership(
    owner: str, holder_id: str, wanted: Wanted, *, own_scope: str | None = None
) -> RequestItems:
    """Read all that a request needs after its key, in one consistent batch: the user's role and the
    owner's state, and what it wants. With `own_scope`, also the entry of the hash in that scope.
    """
    items = _request_items(owner, holder_id, wanted, own_scope)
    return items.parse(batch_get(items.keys, takes_copies=True))


def read_with_credential(
    credential: Read[T],
    owner: str,
    holder_id: str,
    wanted: Wanted,
    *,
    own_scope: str | None = None,
) -> tuple[T, RequestItems]:
    """The same batch, and the key or session of the request in it."""
    items = _request_items(owner, holder_id, wanted, own_scope)
    return read_together(credential, items, takes_copies=True)


def _request_items(
    owner: str, holder_id: str, wanted: Wanted, own_scope: str | None
) -> Read[RequestItems]:
    scopes = (None,) if own_scope is None else (None, own_scope)
    entries = [] if wanted.hash is None else [index_key(wanted.hash, each) for each in scopes]
    keys: list[Key] = []
    for key in entries:
        keys += entry_keys(owner, key)[: 2 if wanted.pending else 1]
        if wanted.body:
            keys.append(_body_key(owner, key))
    if wanted.totals:
        keys.append(totals_key(owner))

    def parse(found: Found) -> RequestItems:
        items = found[ARTIFACTS]
        parsed = [parse_entry(items, owner, key, unread=not wanted.pending) for key in entries]
        entry = parsed[0] if parsed else IndexEntry()
        own = parsed[1] if len(parsed) > 1 else IndexEntry()
        return RequestItems(parse_membership(found), entry, parse_totals(items), own)

    return Read({**membership_keys(owner, holder_id), ARTIFACTS: keys}, parse)


def put_pending(pending: PendingUpload, *, replaces: Artifact | None = None) -> None:
    """Store an offered upload. Replaces an earlier offer for the hash. If that one is used, S3's event publishes it.

    `replaces` is the artifact in the index. It gets a mark, without which a reader of an artifact does not look for
    offered uploads. Raises TryAgain.
    """
    upload = pending.upload
    partition, hash = entry_keys(upload.owner, upload.index_key)[1]
    item = {
        "owner": partition,
        "hash": hash,
        "upload_id": upload.id,
        "created_at": to_ms(pending.created_at),
        "replaces": pending.replaces or None,
        **_sweep(upload, pending.created_at + PENDING_LIFETIME),
    }
    for attempt in attempts():
        if attempt:
            replaces = read_entry(upload.owner, upload.hash, upload.scope).artifact
        writes = [ARTIFACTS.put(item)]
        if replaces is not None:
            mark = {"offered": upload.id}
            writes.append(ARTIFACTS.update(*artifact_key(upload), set=mark, when=_is_at(replaces)))
        if commit(*writes):
            return
    raise TryAgain


def refuse_offers(owner: str, key: str, *, now: datetime) -> None:
    """Refuse every upload of this `index_key` that began before. `put_pending` keeps only the last one."""
    item = {
        "owner": partition_of(owner, key),
        "hash": _DELETED + key,
        "upload_id": time_ordered_id(now),
        "expires_at": to_epoch_seconds(now + PENDING_LIFETIME),
    }
    commit(ARTIFACTS.put(item))


def publish(
    artifact: Artifact,
    *,
    replaces: Artifact | None,
    pending: PendingUpload | None = None,
    offered: bool = False,
    noting: "Entry | None" = None,
    now: datetime,
) -> bool:
    """Publish `artifact` in place of exactly `replaces`, and store the audit entry in the same transaction.

    Returns False, and changes nothing, if another write came first or the upload has been discarded. The latter is
    checked if `offered` is set, which means that others than the caller know of the object. `pending` is the item to
    delete in the same transaction. The artifact keeps the mark of an upload that was offered after it began.
    """
    upload, is_at = artifact.upload, _is_at(replaces)
    if replaces is not None:
        mark = replaces.offered
        is_at &= missing("offered") if mark is None else equals(offered=mark)
        if mark is not None and mark > upload.id:
            artifact = replace(artifact, offered=mark)
    writes = [ARTIFACTS.put(_artifact_item(artifact), when=is_at)]
    if offered or replaces is not None:
        writes.append(ARTIFACTS.check(*discarded_key(upload), when=missing("upload_id")))
    if pending is not None:
        writes.append(_pending_delete(pending))
    if replaces is not None:
        writes.append(discarded_put(replaces.upload, now, of=replaces))
    writes += audit_puts(noting)
    try:
        return commit(*writes)
    except Contention:
        # Nothing is written. The caller has added the artifact to the totals: it retries or subtracts it again.
        return False


def hold_body(artifact: Artifact, body: bytes) -> None:
    """Store a body next to the index, whose object is in the bucket. Readers take it once that upload is published.

    Its partition key is its own, because the writes of a large body would take what the owner's index can take.

    It ends after HELD_FOR, which costs no write. If the object is deleted before, the sweep deletes both.
    """
    upload = artifact.upload
    partition, hash = _body_key(upload.owner, upload.index_key)
    item = {
        "owner": partition,
        "hash": hash,
        "upload_id": upload.id,
        "body": body,
        "expires_at": to_epoch_seconds(artifact.created_at + HELD_FOR),
    }
    commit(ARTIFACTS.put(item))


def delete_body(upload: Upload) -> None:
    """Delete the body of this upload, if it is held next to the index."""
    when = equals(upload_id=upload.id)
    commit(ARTIFACTS.delete(*_body_key(upload.owner, upload.index_key), when=when))


def discard_pending(pending: PendingUpload, *, now: datetime) -> bool:
    """Discard an offered upload, so that its object is never published. False if it has been published or replaced.

    The upload stays listed as discarded while its object can arrive, so that the S3 event finds it.
    """
    until = pending.created_at + PENDING_LIFETIME
    return discard(pending.upload, pending=pending, until=until, now=now)


def discard(
    upload: Upload,
    *,
    pending: PendingUpload | None = None,
    until: datetime | None = None,
    now: datetime,
) -> bool:
    """List an object for deletion, no earlier than `until`. False if the object is in the index."""
    unpublished = missing("upload_id") | not_equals(upload_id=upload.id)
    writes = [
        discarded_put(upload, now, until),
        ARTIFACTS.check(*artifact_key(upload), when=unpublished),
    ]
    if pending is None:
        return commit(*writes)
    return commit(*writes, _pending_delete(pending)) and _unmark(upload)


def delete(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Delete an artifact from the index and list its object for deletion. False if it is not in the index any more.

    The audit entry is stored in the same transaction, so it exists only if the artifact was deleted.
    """
    upload = artifact.upload
    return commit(
        ARTIFACTS.delete(*artifact_key(upload), when=_is_at(artifact)),
        discarded_put(upload, now, of=artifact),
        *audit_puts(noting),
    )


def delete_expired(artifact: Artifact, *, now: datetime) -> bool:
    """Delete an artifact whose object is deleted, and the body next to the index. False if it is replaced."""
    upload = artifact.upload
    deleted = commit(ARTIFACTS.delete(*artifact_key(upload), when=_is_at(artifact)))
    if artifact.is_held and now < artifact.created_at + HELD_FOR:
        delete_body(upload)
    return deleted


def note_use(artifact: Artifact, *, at: datetime) -> None:
    """Record a use in the index of last uses. Does nothing if the artifact is gone or a later use is recorded."""
    upload = artifact.upload
    used = _listed(upload, at)
    newer = missing("last_used_at") | below(last_used_at=used)
    when = equals(upload_id=upload.id) & newer
    commit(ARTIFACTS.update(*artifact_key(upload), set={"last_used_at": used}, when=when))


def renew(artifact: Artifact, version: str, *, at: datetime) -> bool:
    """Let readers get this copy of the object. False if the artifact has been replaced or renewed meanwhile.

    The sweep deletes the former version when no client has a URL of it any more.
    """
    upload = artifact.upload
    changes = {
        "version": version,
        "former_version": artifact.version,
        "renewed_at": to_ms(at),
        "sweep_at": to_epoch_seconds(unused_from(at)),
    }
    when = equals(upload_id=upload.id) & _has_version(artifact)
    return commit(ARTIFACTS.update(*artifact_key(upload), set=changes, when=when))


def _has_version(artifact: Artifact) -> Condition:
    # Items of version 0.1.0 have none.
    same = equals(version=artifact.version)
    return missing("version") | same if artifact.version == NULL_VERSION else same


def end_renewal(artifact: Artifact, former_version: str) -> None:
    """Record that the former version is deleted."""
    upload = artifact.upload
    changes = {"former_version": None, "sweep_at": to_epoch_seconds(swept_at(artifact))}
    when = equals(upload_id=upload.id, former_version=former_version)
    commit(ARTIFACTS.update(*artifact_key(upload), set=changes, when=when))


def note_contested(artifact: Artifact, contested: Contested) -> bool:
    """Record an upload that was not stored in favour of this artifact. False if one is recorded less than a day ago."""
    upload, writer = artifact.upload, contested.writer
    changes = {
        "contested_at": to_ms(contested.at),
        "contested_by": None if writer is None else writer.credential_id,
        "contested_user": None if writer is None else writer.holder_id,
        "contested_sha256": contested.sha256,
    }
    a_day_ago = to_ms(contested.at - timedelta(days=1))
    when = equals(upload_id=upload.id)
    when &= missing("contested_at") | below(contested_at=a_day_ago)
    return commit(ARTIFACTS.update(*artifact_key(upload), set=changes, when=when))


def delete_pending(pending: PendingUpload) -> bool:
    return commit(_pending_delete(pending)) and _unmark(pending.upload)


def _unmark(upload: Upload) -> bool:
    """End the mark of an offer. If a crash leaves it, each read of the artifact looks for an offered upload."""
    marked = equals(offered=upload.id)
    commit(ARTIFACTS.update(*artifact_key(upload), set={"offered": None}, when=marked))
    return True


def _is_at(artifact: Artifact | None) -> Condition:
    """Condition: the published artifact is this one; for None, there is none."""
    return missing("upload_id") if artifact is None else equals(upload_id=artifact.upload.id)


def _pending_delete(pending: PendingUpload) -> Write:
    """Delete an offered upload, on condition that no other has replaced it."""
    upload = pending.upload
    key = entry_keys(upload.owner, upload.index_key)[1]
    return ARTIFACTS.delete(*key, when=equals(upload_id=upload.id))


def discarded_key(upload: Upload) -> Key:
    return partition_of(upload.owner, upload.index_key), DISCARDED + upload.id


def unused_from(now: datetime) -> datetime:
    """When no client has a download URL from before `now` any more. A deletion does not cut off a download."""
    return now + timedelta(seconds=settings().download_url_seconds + 60)


def discarded_put(
    upload: Upload, now: datetime, until: datetime | None = None, *, of: Artifact | None = None
) -> Write:
    """List the object of an upload for deletion. Of an artifact, the sweep then knows what to delete."""
    delete_at = unused_from(now)
    if until is not None:
        delete_at = max(delete_at, until)
    partition, hash = discarded_key(upload)
    item = {"owner": partition, "hash": hash, "of": upload.index_key, "upload_id": upload.id}
    known = {}
    if of is not None and (version := known_version(of, now)):
        known = {"version": version, "held": of.is_held or None}
    return ARTIFACTS.put({**item, **known, **_sweep(upload, delete_at)})


def known_version(artifact: Artifact, now: datetime) -> str | None:
    """The one version of its object. None if only the bucket knows: its client may have uploaded more of them to the
    URL, or the sweep may have copied it.
    """
    used = artifact.last_used_at is not None and artifact.last_used_at > artifact.created_at
    may_be_copied = artifact.renewed_at is not None or (used and now >= object_expires_at(artifact))
    if artifact.upload.writer is not None or may_be_copied:
        return None
    return artifact.version


def _sweep(upload: Upload, at: datetime) -> Item:
    return {"sweep_shard": shard(upload.id), "sweep_at": to_epoch_seconds(at)}


def _artifact_item(artifact: Artifact) -> Item:
    upload = artifact.upload
    return {
        "owner": partition_of(upload.owner, upload.index_key),
        "hash": upload.index_key,
        "upload_id": upload.id,
        "size_bytes": artifact.size_bytes,
        "created_at": to_ms(artifact.created_at),
        "version": artifact.version,
        **writer_attributes(artifact.writer),
        "last_used_at": _listed_at(artifact),
        # The sort key of the index `by_upload`, which offered uploads are not in.
        "uploaded_at": to_ms(artifact.created_at),
        **{name: getattr(artifact.metadata, name) for name in _METADATA},
        # As text, because functions of the previous version may read it during an update and know no other type.
        "sha256": artifact.sha256,
        "body": None if artifact.body is None else b64encode(artifact.body).decode("ascii"),
        "renewed_at": None if artifact.renewed_at is None else to_ms(artifact.renewed_at),
        "offered": artifact.offered,
        **_sweep(upload, swept_at(artifact)),
    }


def swept_at(artifact: Artifact) -> datetime:
    """When the sweep looks at the artifact: it has expired then, or may need a copy of its object."""
    return min(expires_at(artifact), object_expires_at(artifact))


def _listed_at(artifact: Artifact) -> int | None:
    """The sort key in the index of last uses. None if nothing needs it, which keeps the index small."""
    if not settings().evicts and artifact.last_used_at is None:
        return None
    return _listed(artifact.upload, artifact.last_used_at or artifact.created_at)


def _listed(upload: Upload, used_at: datetime) -> int:
    return to_ms(used_at if upload.scope is None else used_at - _BEFORE_SHARED)


def used_at(upload: Upload, listed: int) -> datetime:
    """The last use, from its sort key in the index of last uses."""
    return from_ms(listed) if upload.scope is None else from_ms(listed) + _BEFORE_SHARED


def parse_upload(partition: str, key: str, id: str) -> Upload:
    """The upload of an item of the index. `key` is an `index_key`."""
    hash, scope = parse_index_key(key)
    return Upload(owner=owner_of(partition), hash=hash, id=id, scope=scope)


def parse_artifact(item: Item) -> Artifact:
    upload = parse_upload(item["owner"], item["hash"], item["upload_id"])
    return Artifact(
        upload=upload,
        size_bytes=item["size_bytes"],
        created_at=from_ms(item["created_at"]),
        # Items of version 0.1.0 have none: the bucket kept no versions.
        version=item.get("version", NULL_VERSION),
        metadata=ArtifactMetadata(**{name: item.get(name) for name in _METADATA}),
        writer=writer_of(item),
        last_used_at=last_used(item),
        body=_body(item.get("body")),
        sha256=item.get("sha256"),
        contested=_contested(item) if "contested_at" in item else None,
        renewed_at=from_ms(item["renewed_at"]) if "renewed_at" in item else None,
        former_version=item.get("former_version"),
        offered=item.get("offered"),
    )


def _body(stored: str | bytes | None) -> bytes | None:
    """The body: text in the index, and bytes next to it."""
    return b64decode(stored) if isinstance(stored, str) else stored


def last_used(item: Item) -> datetime | None:
    """When the artifact was last used, None if that is not recorded."""
    if "last_used_at" not in item:
        return None
    listed = from_ms(item["last_used_at"])
    _, scope = parse_index_key(item["hash"])
    return listed if scope is None else listed + _BEFORE_SHARED


def _contested(item: Item) -> Contested:
    by = item.get("contested_by")
    return Contested(
        at=from_ms(item["contested_at"]),
        writer=None if by is None else Actor.of(by, item.get("contested_user")),
        sha256=item.get("contested_sha256"),
    )


def _pending(item: Item) -> PendingUpload:
    upload = parse_upload(item["owner"], item["hash"].removesuffix(PENDING), item["upload_id"])
    return PendingUpload(
        upload=upload,
        created_at=from_ms(item["created_at"]),
        # In offers of an older version, the writer is not part of the id.
        writer=upload.writer or writer_of(item),
        replaces=item.get("replaces", False),
    )
