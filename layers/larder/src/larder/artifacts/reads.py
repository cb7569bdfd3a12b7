"""Find, fetch and query artifacts."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from larder.artifacts import edge, storage
from larder.artifacts.expiry import is_shown, retention
from larder.artifacts.models import (
    UNPROTECTED,
    Artifact,
    ArtifactHash,
    DownloadUrl,
    IndexEntry,
    QueryResult,
    View,
    index_key,
    is_hash,
)
from larder.artifacts.repository import index
from larder.concurrency import in_parallel, submit_outer
from larder.errors import ArtifactNotFound, TryAgain
from larder.settings import settings

_NOTHING = IndexEntry()
_NOTED_AGAIN_AFTER = timedelta(days=1)
"""To evict by last use, record the use of an artifact again after this time."""


def find_for_use(
    entry: IndexEntry,
    own: IndexEntry = _NOTHING,
    *,
    view: View,
    now: datetime,
) -> Artifact:
    """Find an artifact and record its use. Raises ArtifactNotFound."""
    artifact = find(entry, own, view=view, now=now)
    with _noting_use(artifact, now):
        return artifact


def find(
    entry: IndexEntry,
    own: IndexEntry = _NOTHING,
    *,
    view: View,
    now: datetime,
    take: Callable[..., None] | None = None,
) -> Artifact:
    """Find the artifact that the reader sees, after publishing a direct upload that arrived. Raises ArtifactNotFound.

    `entry` is that of the shared scope, which comes first, and `own` that of the scope of `view`. An artifact of either
    is returned before a look for uploads that no one has published, unless it has the mark of one. `take` is called
    with the `size_bytes` of what was found, 0 for nothing, and raises if the reader must not get it.
    """
    artifact = _find(entry, own, view=view, now=now)
    if take is not None:
        take(size_bytes=0 if artifact is None else artifact.size_bytes)
    if artifact is None:
        raise ArtifactNotFound
    return artifact


def _find(
    entry: IndexEntry,
    own: IndexEntry = _NOTHING,
    *,
    view: View,
    now: datetime,
) -> Artifact | None:
    entries = (entry, own)
    artifact = _hit(entries, view, now)
    return artifact or _settled(index.read_offers(entries), view, now)


def _hit(entries: Iterable[IndexEntry], view: View, now: datetime) -> Artifact | None:
    """The artifact that the reader sees, if there is one and no direct upload may have replaced it."""
    for entry in entries:
        if entry.may_be_replaced:
            return None
        if entry.artifact is not None and is_shown(entry.artifact, view, now):
            return entry.artifact
    return None


def _settled(entries: Iterable[IndexEntry], view: View, now: datetime) -> Artifact | None:
    """The artifact that the reader sees, after publishing direct uploads that arrived. Raises TryAgain."""
    for entry in entries:
        artifact = entry.artifact
        if entry.pending is not None:
            # Imported here: few reads meet a direct upload that no one has published yet.
            from larder.artifacts.publish import publish_offered

            artifact = publish_offered(entry, view=view, now=now)
        if is_shown(artifact, view, now):
            return artifact
    return None


def fetch(artifact: Artifact, *, view: View = UNPROTECTED, now: datetime) -> bytes | DownloadUrl:
    """Return the bytes of a small artifact, or the URL of a large one.

    For a tagged artifact without the edge, small means that it fits into a function's reply: S3 cannot return the tag,
    which clients need to verify the signature. So it does for a view with `most_bytes`. Raises ArtifactNotFound, and
    deletes the artifact from the index, if the object is missing or incomplete.
    """
    with _noting_use(artifact, now):
        if view.most_bytes is None and (url := _download_url(artifact)):
            return url
        body = artifact.body
        if body is None:
            body = storage.get(artifact.upload, artifact.version, artifact.size_bytes)
    if body is None:
        # Imported here: requests start faster without it.
        from larder.artifacts.publish import delete_from_index

        delete_from_index(artifact, now=now)
        raise ArtifactNotFound
    return body


def _download_url(artifact: Artifact) -> DownloadUrl | None:
    """Where to download an artifact that a function should not return."""
    options, size_bytes = settings(), artifact.size_bytes
    if size_bytes > options.inline_download_bytes and (url := edge.download_address(artifact)):
        return url
    limit = options.inline_limit_bytes if artifact.metadata.tag else options.inline_download_bytes
    return storage.download_url(artifact.upload, artifact.version) if size_bytes > limit else None


@contextmanager
def _noting_use(artifact: Artifact, now: datetime) -> Generator[None, None, None]:
    """Record a use of the artifact while the block runs, if the last one is old enough.

    An error in recording it does not fail the block.
    """
    again_after = _noted_again_after(artifact)
    last = artifact.last_used_at or artifact.created_at
    if now - last < again_after:
        yield
        return
    with in_parallel(index.note_use, artifact, at=now) as noting:
        yield
    with suppress(TryAgain):
        noting.result()


def _noted_again_after(artifact: Artifact) -> timedelta:
    """How old the last recorded use must be to record another."""
    return _NOTED_AGAIN_AFTER if settings().evicts else retention(artifact) * 2 / 3


def query(
    owner: str,
    hashes: Sequence[str],
    *,
    view: View,
    now: datetime,
) -> QueryResult:
    """Look up many hashes at once. An invalid hash counts as not stored. `failed` holds the hashes without a result."""
    asked = dict.fromkeys(hashes)
    valid = [ArtifactHash(hash) for hash in asked if is_hash(hash)]
    # Both keys of a hash are next to each other, so that a failed batch concerns few hashes.
    scopes = (None,) if view.scope is None else (None, view.scope)
    keys = [index_key(hash, scope) for hash in valid for scope in scopes]
    entries, failed_keys = index.read_entries(owner, keys)
    found: dict[str, Artifact | None] = {hash: None for hash in asked if not is_hash(hash)}
    failed: set[ArtifactHash] = set()
    missed: dict[ArtifactHash, list[IndexEntry]] = {}
    for hash in valid:
        of_hash = [index_key(hash, scope) for scope in scopes]
        if not failed_keys.isdisjoint(of_hash):
            failed.add(hash)
            continue
        of_scopes = [entries[key] for key in of_hash]
        if artifact := _hit(of_scopes, view, now):
            found[hash] = artifact
        else:
            missed[hash] = of_scopes
    missed, unknown = index.read_offers_of(missed)
    failed |= unknown
    settling: dict[ArtifactHash, Future[Artifact | None]] = {}
    for hash, of_scopes in missed.items():
        if any(entry.pending is not None for entry in of_scopes):
            # Publishing an upload can submit a call.
            settling[hash] = submit_outer(_settled, of_scopes, view, now)
        else:
            found[hash] = _settled(of_scopes, view, now)
    for hash, artifact_of in settling.items():
        try:
            found[hash] = artifact_of.result()
        except TryAgain:
            failed.add(hash)
    return QueryResult(found, frozenset(failed))
