"""Store artifacts from request bodies, and offer direct uploads.

An artifact exists when its index item points to a complete object. Each upload has its own object, so a client can
finish reading an artifact that is being replaced. docs/architecture.md describes the order of the writes, and what a
crash leaves behind.
"""

from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256

from larder.artifacts import edge, quota, storage
from larder.artifacts.expiry import is_shown
from larder.artifacts.models import (
    INDEXED_BODY_BYTES,
    Artifact,
    ArtifactMetadata,
    CacheRequest,
    PendingUpload,
    Upload,
    same_upload,
)
from larder.artifacts.publish import hold_body, keeps, publish_reserved, report_kept
from larder.artifacts.quota import Reservation
from larder.artifacts.refusals import noting_refusals
from larder.artifacts.repository import index
from larder.concurrency import attempts, in_parallel
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
from larder.teams.models import SHARED_SCOPE

_RECORDED_AGAIN_AFTER = timedelta(hours=1)
"""Record an upload to a scope of a protected team again only after this time."""

_recorded: Remembered[tuple[str, str], datetime] = Remembered(1000)
"""When this instance last recorded an upload, by owner and scope."""


def store(request: CacheRequest, body: bytes, metadata: ArtifactMetadata) -> Artifact:
    """Store an artifact from a request body in the scope that the view writes: the shared one, or the caller's own.

    Stores nothing in an own scope if the shared one shows an artifact with this hash, because readers get that one.

    If another upload of the hash is published after the request has read the index, this upload counts as the earlier
    one: Larder discards its object, and the request succeeds. Raises SignatureRequired, CachingOverLimit,
    LargerThanQuota, EvictionInProgress, ScopesFull, StorageFull, TryAgain.
    """
    view, now, shown = request.view, request.now, request.entry.artifact
    with noting_refusals(request.owner, request.writer, now=now):
        if view.requires_tag and metadata.tag is None:
            raise SignatureRequired
        if view.scope is not None and shown is not None and is_shown(shown, view, now):
            return shown
        return _store(request, body, metadata)


def _store(request: CacheRequest, body: bytes, metadata: ArtifactMetadata) -> Artifact:
    view, now, replaces = request.view, request.now, request.replaces
    artifact = Artifact(
        upload=_upload(request),
        size_bytes=len(body),
        created_at=now,
        metadata=metadata,
        writer=request.writer,
        body=body if len(body) <= INDEXED_BODY_BYTES else None,
        sha256=sha256(body).hexdigest() if view.is_protected and view.scope is None else None,
    )
    upload = artifact.upload
    if replaces is not None and not view.may_replace and keeps(replaces, artifact, view, now):
        report_kept(replaces, artifact, now=now)
        return replaces
    if not quota.can_fit(artifact, view):
        raise LargerThanQuota(upload.hash, artifact.size_bytes, view.quota_bytes or 0)
    reserve = partial(quota.reservation, view=view, counted_on=now.date(), evicts=True, now=now)
    with _recording_scope(request), _saving(artifact, body) as saving:
        with reserve(artifact, replaces=replaces) as reservation:
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
        index.discard(upload, now=now)
    if same_upload(current, replaces):
        raise TryAgain
    return artifact


def _upload(request: CacheRequest, *names: str | None) -> Upload:
    """A new upload, whose id also has these names."""
    view = request.view
    id = ".".join(filter(None, (time_ordered_id(view.begins(request.now)), *names)))
    return Upload(owner=request.owner, hash=request.hash, id=id, scope=view.scope)


@contextmanager
def _saving(artifact: Artifact, body: bytes) -> Generator[Future[str], None, None]:
    """Store the object while the block runs. Yields the version that it gets.

    If the block fails after that, CommitUpload gets the upload: S3 sends events of direct uploads only.
    """
    upload = artifact.upload
    args = (upload, body, artifact.metadata, artifact.writer, artifact.sha256)
    with in_parallel(storage.put, *args) as saving:
        try:
            yield saving
        except (CachingOverLimit, EvictionInProgress, ScopesFull, StorageFull):
            # It is discarded.
            raise
        except Exception:
            if saving.exception() is None:
                # Imported here: few requests fail.
                from larder.artifacts.jobs import hand_over_upload

                with suppress(TryAgain):
                    hand_over_upload(upload, saving.result())
            raise


@contextmanager
def _holding(artifact: Artifact, body: bytes) -> Generator[None, None, None]:
    """Keep the body next to the index while the block runs, if it belongs there."""
    if not artifact.is_held:
        yield
        return
    with in_parallel(hold_body, artifact, body) as holding:
        yield
    holding.result()


def _publish(reservation: Reservation, *, now: datetime) -> Artifact | None:
    """Publish the artifact in place of the one that it replaces.

    Raises CachingOverLimit, EvictionInProgress, ScopesFull, StorageFull.

    Returns what the index holds then: the artifact, which a lost reply may have published, or another upload.
    Returns the replaced artifact if every attempt met another write.
    """
    for attempt in attempts():
        if attempt:
            upload = reservation.artifact.upload
            current = index.read_entry(upload.owner, upload.hash, upload.scope).artifact
            if not same_upload(current, reservation.replaces):
                return current
            reservation.replaces = current
        if publish_reserved(reservation, now=now):
            if reservation.storage_full:
                raise StorageFull
            if reservation.scopes_full:
                raise ScopesFull
            if not reservation.granted:
                raise EvictionInProgress if settings().evicts else CachingOverLimit
            return reservation.artifact
    return reservation.replaces


def offer_upload(request: CacheRequest, *, by_edge_only: bool = False) -> str | None:
    """Record a pending direct upload and return where to send it: an address of the edge, or a presigned URL.

    Returns None, and records nothing, if only the edge would do and is not in use: with `by_edge_only`, and if the view
    requires signatures, because S3 drops the header that has them.
    """
    view, writer = request.view, request.writer
    upload = _upload(request, writer.credential_id, writer.holder_id)
    if view.rule_version is not None:
        # The upload is refused if the rule has changed when it arrives.
        upload = replace(upload, id=f"{upload.id}-{view.rule_version}")
    free = quota.free_bytes(request.totals, replaces=request.replaces, view=view)
    url = edge.upload_address(upload, free)
    if url is None:
        if by_edge_only or view.requires_tag:
            return None
        url = storage.upload_url(upload)
    # S3's event does not say what the writer may do.
    pending = PendingUpload(
        upload=upload,
        created_at=request.now,
        writer=writer,
        replaces=view.may_replace and view.is_protected,
    )
    with _recording_scope(request):
        index.put_pending(pending, replaces=request.replaces)
    return url


@contextmanager
def _recording_scope(request: CacheRequest) -> Generator[None, None, None]:
    """In a protected team, record who writes the scope of the upload while the block runs, once an hour.

    An error in recording it does not fail the block.
    """
    view, now = request.view, request.now
    place = (request.owner, view.scope or SHARED_SCOPE)
    last = _recorded.get(place)
    if not view.is_protected or (last is not None and now - last < _RECORDED_AGAIN_AFTER):
        yield
        return
    # Imported here: requests start faster without it.
    from larder.artifacts.repository.scopes import record_upload

    with in_parallel(record_upload, request) as recording:
        yield
    with suppress(TryAgain):
        recording.result()
        _recorded[place] = now
