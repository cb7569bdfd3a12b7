"""How an artifact travels: stored, offered a direct upload, found, fetched, queried, forgotten.

An artifact exists when its index item points to a complete object. Every upload has an object of its own, so a replaced
one stays whole for whoever is reading it. docs/architecture.md tells the order of the writes and what a crash leaves.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from larder.artifacts import room, storage
from larder.artifacts.models import (
    INDEXED_BODY_BYTES,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    DownloadUrl,
    IndexEntry,
    PendingUpload,
    QueryResult,
    Totals,
    Upload,
    Writer,
    is_hash,
    same_upload,
)
from larder.artifacts.repository import index
from larder.artifacts.retention import visible
from larder.artifacts.settling import forget, settle
from larder.concurrency import attempts, running, submit
from larder.errors import (
    ArtifactNotFound,
    CachingOverLimit,
    LargerThanQuota,
    MakingRoom,
    TryAgain,
)
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.teams.models import CachingStatus, OwnerState
from larder.teams.service import change_state

_NOTED_AGAIN_AFTER = timedelta(days=1)
"""How old the last use that is noted may be before a further one is noted too."""


def caching_status(state: OwnerState, totals: Totals) -> CachingStatus:
    """What the owner set, or `over_limit` when caching is on, the quota used up, and nothing evicted to make room."""
    used_up = state.quota_bytes is not None and totals.size_bytes >= state.quota_bytes
    used_up = used_up and not settings().evicts
    if state.caching is CachingStatus.ENABLED and used_up:
        return CachingStatus.OVER_LIMIT
    return state.caching


def set_caching(owner: str, caching: CachingStatus, totals: Totals) -> CachingStatus:
    """Switch caching off, to a pause, or on, from the next request on. Returns what clients are told then.

    Raises InvalidRequest for `over_limit` and for a team that does not exist.
    """
    return caching_status(change_state(owner, caching=caching), totals)


def store(
    owner: str,
    hash: ArtifactHash,
    body: bytes,
    metadata: ArtifactMetadata,
    *,
    writer: Writer,
    replaces: Artifact | None,
    quota_bytes: int | None,
    now: datetime,
) -> Artifact:
    """Store an artifact that came through a function. Raises CachingOverLimit, LargerThanQuota, MakingRoom, TryAgain.

    `replaces` is the index item as the request saw it. When another upload of the hash is published meanwhile, this one
    counts as having come just before it: its object is discarded, and the client has its success all the same.
    """
    artifact = Artifact(
        upload=Upload(owner=owner, hash=hash, id=time_ordered_id(now)),
        size_bytes=len(body),
        created_at=now,
        metadata=metadata,
        writer=writer,
        body=body if len(body) <= INDEXED_BODY_BYTES else None,
    )
    if not room.can_fit(artifact, quota_bytes):
        raise LargerThanQuota
    today = now.date()
    with running(storage.put, artifact.upload, body, metadata, writer) as saving:
        reserved = room.reserve(artifact, replaces, quota_bytes, today, now=now, evicts=True)
    try:
        saving.result()
    except BaseException:
        if reserved:
            room.release(artifact, replaces, today)
        raise
    for attempt in attempts():
        if attempt:
            current = index.read_entry(owner, hash).artifact
            if not same_upload(current, replaces):
                room.release(artifact, replaces, today)
                if same_upload(current, artifact):
                    # The event of the finished object came first and has counted it.
                    return artifact
                if current is not None:
                    index.discard(artifact.upload, now=now)
                    return artifact
                replaces = None
                reserved = room.reserve(
                    artifact, replaces, quota_bytes, today, now=now, evicts=True
                )
        if not reserved:
            if not index.discard(artifact.upload, now=now) and same_upload(
                index.read_entry(owner, hash).artifact, artifact
            ):
                # The event of the finished object found room where this did not, and published it.
                return artifact
            raise MakingRoom if settings().evicts else CachingOverLimit
        if index.publish(artifact, replaces=replaces, now=now):
            room.count_shrinkage(artifact, replaces, today)
            return artifact
    room.release(artifact, replaces, today)
    index.discard(artifact.upload, now=now)
    raise TryAgain


def offer_upload(owner: str, hash: ArtifactHash, *, writer: Writer, now: datetime) -> str:
    """Note a direct upload and return the presigned URL that takes it."""
    parts = (time_ordered_id(now), writer.id, writer.user_id)
    upload = Upload(owner=owner, hash=hash, id=".".join(part for part in parts if part))
    index.put_pending(PendingUpload(upload=upload, created_at=now, writer=writer))
    return storage.upload_url(upload)


def find_for_use(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact:
    """The same for a client that goes on as if it had the artifact, which counts as a use. Raises ArtifactNotFound."""
    artifact = find(entry, quota_bytes=quota_bytes, now=now)
    with _noting_use(artifact, now):
        return artifact


def find(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact:
    """The artifact that readers see, after settling a direct upload that has arrived. Raises ArtifactNotFound."""
    artifact = settle(entry, quota_bytes=quota_bytes, now=now)
    if artifact is None or not visible(artifact, now):
        raise ArtifactNotFound
    return artifact


def fetch(artifact: Artifact, *, now: datetime) -> bytes | DownloadUrl:
    """The bytes when they are few, or tagged and few enough for a function's reply; else a presigned URL.

    S3 cannot give the tag back that signed artifacts need, so tagged ones take the direct way only when they must.
    Raises ArtifactNotFound when the object is gone or not whole; the index forgets it then.
    """
    options = settings()
    limit = options.inline_limit_bytes if artifact.metadata.tag else options.inline_download_bytes
    with _noting_use(artifact, now):
        if artifact.size_bytes > limit:
            return storage.download_url(artifact.upload)
        body = artifact.body
        if body is None:
            body = storage.get(artifact.upload, artifact.size_bytes)
    if body is None:
        forget(artifact, now=now)
        raise ArtifactNotFound
    return body


@contextmanager
def _noting_use(artifact: Artifact, now: datetime) -> Generator[None, None, None]:
    """Note beside what the block does that the artifact is used: once a day, and where uses decide what is evicted.

    One that cannot be noted does not fail.
    """
    last = artifact.last_used_at
    if not settings().evicts or (last is not None and now - last < _NOTED_AGAIN_AFTER):
        yield
        return
    with running(index.note_use, artifact, at=now) as noting:
        yield
    with suppress(TryAgain):
        noting.result()


def query(
    owner: str, hashes: Sequence[str], *, quota_bytes: int | None, now: datetime
) -> QueryResult:
    """Look many hashes up at once. One that no artifact can have is not stored; `failed` holds those not looked up."""
    asked = dict.fromkeys(hashes)
    entries, failed = index.read_entries(
        owner, [ArtifactHash(hash) for hash in asked if is_hash(hash)]
    )
    settling = {
        hash: submit(settle, entry, quota_bytes=quota_bytes, now=now)
        for hash, entry in entries.items()
        if entry.pending is not None
    }
    found: dict[str, Artifact | None] = {hash: None for hash in asked if not is_hash(hash)}
    for hash, entry in entries.items():
        try:
            artifact = settling[hash].result() if hash in settling else entry.artifact
        except TryAgain:
            failed.add(hash)
            continue
        found[hash] = artifact if artifact is not None and visible(artifact, now) else None
    return QueryResult(found, frozenset(failed))
