"""Store artifacts from request bodies, and offer direct uploads.

An artifact exists when its index item points to a complete object. Each upload has its own object, so a client can
finish reading an artifact that is being replaced. docs/architecture.md describes the order of the writes, and what a
crash leaves behind.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256

from larder.actor import Actor
from larder.artifacts import edge, quota, storage
from larder.artifacts.expiry import is_shown
from larder.artifacts.finalize import hold_body, keeps, publish_or_discard, report_kept
from larder.artifacts.models import (
    INDEXED_BODY_BYTES,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    IndexEntry,
    PendingUpload,
    Totals,
    Upload,
    View,
    same_upload,
)
from larder.artifacts.quota import Reservation
from larder.artifacts.refusals import noting_refusals
from larder.artifacts.repository import index
from larder.concurrency import attempts, running
from larder.errors import (
    CachingOverLimit,
    EvictionInProgress,
    LargerThanQuota,
    ScopesFull,
    SignatureRequired,
    StorageFull,
    TryAgain,
)
from larder.hashing import time_ordered_id
from larder.instance import Remembered
from larder.settings import settings

_NOTHING = IndexEntry()
_NOTHING_STORED = Totals()
_RECORDED_AGAIN_AFTER = timedelta(hours=1)
"""Record an upload to a scope of a protected team again only after this time."""

_recorded: Remembered[tuple[str, str], datetime] = Remembered(1000)
"""When this instance last recorded an upload, by owner and scope."""


def store(
    owner: str,
    hash: ArtifactHash,
    body: bytes,
    metadata: ArtifactMetadata,
    *,
    writer: Actor,
    replaces: Artifact | None,
    view: View,
    now: datetime,
) -> Artifact:
    """Store an artifact from a request body. Raises CachingOverLimit, LargerThanQuota, EvictionInProgress,
    ScopesFull, StorageFull, TryAgain.

    It goes to the scope of `view`. `now` is a moment before the request read that, because the id of the upload decides
    whether readers trust it.

    `replaces` is the artifact that the request has read from the index. If another upload of the hash is published
    since then, this upload counts as the earlier one: Larder discards its object, and the request succeeds.
    """
    artifact = Artifact(
        upload=Upload(
            owner=owner, hash=hash, id=time_ordered_id(view.begins(now)), scope=view.scope
        ),
        size_bytes=len(body),
        created_at=now,
        metadata=metadata,
        writer=writer,
        body=body if len(body) <= INDEXED_BODY_BYTES else None,
        sha256=sha256(body).hexdigest() if view.is_protected and view.scope is None else None,
    )
    if replaces is not None and not view.may_replace and keeps(replaces, artifact, view, now):
        report_kept(replaces, artifact, now=now)
        return replaces
    if not quota.can_fit(artifact, view):
        raise LargerThanQuota(hash, artifact.size_bytes, view.quota_bytes or 0)
    reserve = partial(quota.reservation, view=view, counted_on=now.date(), evicts=True, now=now)
    with (
        _recording_scope(artifact.upload, writer, view, now),
        running(storage.put, artifact.upload, body, metadata, writer, artifact.sha256) as saving,
        reserve(artifact, replaces=replaces) as reservation,
    ):
        # Without an object, the block ends without publishing, which releases the reservation.
        current = None
        if not saving.exception():
            artifact = replace(artifact, version=saving.result())
            reservation.artifact = artifact
            with _holding(artifact, body):
                current = _publish(reservation, now=now)
    saving.result()
    if current is None and replaces is not None:
        # The replaced artifact was deleted, so the quota has to hold all of this one.
        replaces = None
        with reserve(artifact, replaces=None) as reservation:
            current = _publish(reservation, now=now)
    if same_upload(current, artifact):
        return artifact
    index.discard(artifact.upload, now=now)
    if same_upload(current, replaces):
        raise TryAgain
    return artifact


def store_in_view(
    owner: str,
    hash: ArtifactHash,
    body: bytes,
    metadata: ArtifactMetadata,
    *,
    writer: Actor,
    entry: IndexEntry,
    own: IndexEntry,
    view: View,
    now: datetime,
) -> None:
    """Store an artifact, as `store`, in the scope that the caller writes: the shared one, or their own.

    `entry` and `own` are as in `find`.

    Stores nothing in an own scope if the shared one shows an artifact with this hash, because readers get that one.
    Raises also SignatureRequired.
    """
    with noting_refusals(owner, writer, now=now):
        if view.requires_tag and metadata.tag is None:
            raise SignatureRequired
        scoped = view.scope is not None
        if scoped and is_shown(entry.artifact, view, now):
            return
        replaces = own.artifact if scoped else entry.artifact
        store(owner, hash, body, metadata, writer=writer, replaces=replaces, view=view, now=now)


@contextmanager
def _holding(artifact: Artifact, body: bytes) -> Generator[None, None, None]:
    """Keep the body next to the index while the block runs, if it belongs there."""
    if not artifact.is_held:
        yield
        return
    with running(hold_body, artifact, body) as holding:
        yield
    holding.result()


def _publish(reservation: Reservation, *, now: datetime) -> Artifact | None:
    """Publish the artifact in place of the one that it replaces.

    Raises CachingOverLimit, EvictionInProgress, ScopesFull, StorageFull.

    Returns what the index holds then: the artifact, which its S3 event may have published, too, or another upload.
    Returns the replaced artifact if every attempt met another write.
    """
    for attempt in attempts():
        if attempt:
            upload = reservation.artifact.upload
            current = index.read_entry(upload.owner, upload.hash, upload.scope).artifact
            if not same_upload(current, reservation.replaces):
                return current
        if publish_or_discard(reservation, now=now):
            if reservation.storage_full:
                raise StorageFull
            if reservation.scopes_full:
                raise ScopesFull
            if not reservation.granted:
                raise EvictionInProgress if settings().evicts else CachingOverLimit
            return reservation.artifact
    return reservation.replaces


def offer_upload(
    owner: str,
    hash: ArtifactHash,
    *,
    writer: Actor,
    view: View,
    entry: IndexEntry = _NOTHING,
    own: IndexEntry = _NOTHING,
    totals: Totals = _NOTHING_STORED,
    by_edge_only: bool = False,
    now: datetime,
) -> str | None:
    """Record a pending direct upload and return where to send it: an address of the edge, or a presigned URL.

    `view` and `now` are as in `store`, `entry` and `own` as in `find`. Returns None, and records nothing, if only the
    edge would do and is not in use: with `by_edge_only`, and if the view requires signatures, because S3 drops the
    header that has them.
    """
    parts = (time_ordered_id(view.begins(now)), writer.credential_id, writer.holder_id)
    id = ".".join(part for part in parts if part)
    if view.rule_version is not None:
        # The upload is refused if the rule has changed when it arrives.
        id += f"-{view.rule_version}"
    upload = Upload(owner=owner, hash=hash, id=id, scope=view.scope)
    replaced = (entry if view.scope is None else own).artifact
    url = edge.upload_address(upload, quota.free_bytes(totals, replaces=replaced, view=view))
    if url is None:
        if by_edge_only or view.requires_tag:
            return None
        url = storage.upload_url(upload)
    # S3's event does not say what the writer may do.
    pending = PendingUpload(
        upload=upload,
        created_at=now,
        writer=writer,
        replaces=view.may_replace and view.is_protected,
    )
    with _recording_scope(upload, writer, view, now):
        index.put_pending(pending)
    return url


@contextmanager
def _recording_scope(
    upload: Upload, writer: Actor, view: View, now: datetime
) -> Generator[None, None, None]:
    """In a protected team, record who writes the scope of the upload while the block runs, once an hour.

    An error in recording it does not fail the block.
    """
    place = (upload.owner, upload.scope_name)
    last = _recorded.get(place)
    if not view.is_protected or (last is not None and now - last < _RECORDED_AGAIN_AFTER):
        yield
        return
    # Imported here: requests start faster without it.
    from larder.artifacts.repository.scopes import record_upload

    with running(record_upload, upload, writer, view.scope_name, at=now) as recording:
        yield
    with suppress(TryAgain):
        recording.result()
        _recorded[place] = now
