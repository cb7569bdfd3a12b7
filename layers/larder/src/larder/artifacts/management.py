"""List and delete single artifacts, for members who manage them."""

from datetime import datetime

from larder.actor import Actor
from larder.artifacts import expiry, finalize
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactPage, IndexEntry
from larder.artifacts.repository import index
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts
from larder.errors import TryAgain


def list_artifacts(owner: str, *, after: str, limit: int, now: datetime) -> ArtifactPage:
    """A page of the owner's artifacts, ordered by hash, without those past their retention."""
    page = index.read_page(owner, after=after, limit=limit)
    visible = tuple(artifact for artifact in page.artifacts if expiry.visible(artifact, now))
    return ArtifactPage(artifacts=visible, following=page.following)


def delete_artifact(
    owner: str,
    hash: ArtifactHash,
    entry: IndexEntry,
    *,
    by: Actor | None,
    quota_bytes: int | None,
    now: datetime,
) -> Entry | None:
    """Delete the artifact with this hash, and refuse an upload of it that was offered before.

    Returns the audit entry, or None if there was nothing to delete, so a repeated call does no harm. If a deletion and
    an upload run at the same time, either can win. Raises TryAgain.
    """
    if entry.pending is not None:
        # If the upload has arrived, it counts as stored, as it does for readers.
        finalize.settle(entry, quota_bytes=quota_bytes, now=now)
        entry = index.read_entry(owner, hash)
    for attempt in attempts():
        if attempt:
            entry = index.read_entry(owner, hash)
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
    return entry if finalize.delete_from_index(artifact, noting=entry, now=now) else None
