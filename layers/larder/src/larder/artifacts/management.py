"""Inspect and delete single artifacts, for members who manage them. `search` lists them."""

from datetime import datetime

from larder.actor import Actor
from larder.artifacts import expiry, publish
from larder.artifacts.models import (
    UNPROTECTED,
    Artifact,
    ArtifactHash,
    IndexEntry,
    View,
    index_key,
)
from larder.artifacts.repository import index
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts, in_parallel
from larder.errors import ArtifactNotFound, TryAgain


def read_in_scope(
    owner: str, hash: ArtifactHash, scope: str | None, shared: IndexEntry
) -> IndexEntry:
    """The entry of the hash in this scope. `shared` is that of the shared one, which the request has read."""
    return shared if scope is None else index.read_entry(owner, hash, scope)


def inspect_artifact(entry: IndexEntry, *, view: View, now: datetime) -> Artifact:
    """The artifact of the entry, after publishing a direct upload that arrived, also if `view` does not show it.

    Raises ArtifactNotFound.
    """
    artifact = publish.publish_offered(entry, view=view, now=now)
    if artifact is None or not expiry.visible(artifact, now):
        raise ArtifactNotFound
    return artifact


def delete_artifact(
    owner: str,
    hash: ArtifactHash,
    entry: IndexEntry,
    *,
    by: Actor | None,
    scope: str | None = None,
    view: View = UNPROTECTED,
    now: datetime,
) -> Entry | None:
    """Delete the artifact with this hash in one scope, and refuse every upload of it that was offered before.

    `entry` is that of the scope, which is None for the shared one. Returns the audit entry, or None if there was
    nothing to delete, so a repeated call does no harm. If a deletion and an upload run at the same time, either can
    win. Raises TryAgain.
    """
    if entry.pending is not None:
        # If the upload has arrived, it counts as stored, as it does for readers.
        publish.publish_offered(entry, view=view, now=now)
        entry = index.read_entry(owner, hash, scope)
    with in_parallel(index.refuse_offers, owner, index_key(hash, scope), now=now) as refusing:
        deleted = _delete_entry(owner, hash, entry, by, scope, now)
    refusing.result()
    return deleted


def _delete_entry(
    owner: str,
    hash: ArtifactHash,
    entry: IndexEntry,
    by: Actor | None,
    scope: str | None,
    now: datetime,
) -> Entry | None:
    for attempt in attempts():
        if attempt:
            entry = index.read_entry(owner, hash, scope)
        refused = entry.pending is None or index.discard_pending(entry.pending, now=now)
        if refused and entry.artifact is None:
            return None
        if refused and entry.artifact is not None:
            deleted = _delete(entry.artifact, by, now)
            if deleted is not None:
                return deleted
    raise TryAgain


def _delete(artifact: Artifact, by: Actor | None, now: datetime) -> Entry | None:
    upload = artifact.upload
    entry = make_entry(
        upload.owner,
        Action.ARTIFACT_DELETED,
        upload.hash,
        by,
        artifacts=1,
        size_bytes=artifact.size_bytes,
        now=now,
    )
    return entry if publish.delete_from_index(artifact, noting=entry, now=now) else None
