"""What an owner's managers do with single artifacts: list, inspect, delete."""

from datetime import datetime

from larder.artifacts import retention, settling
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactPage, IndexEntry, Writer
from larder.artifacts.removal import actor_of
from larder.artifacts.repository import index
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts
from larder.errors import TryAgain


def list_artifacts(owner: str, *, after: str, limit: int, now: datetime) -> ArtifactPage:
    """A page of what readers of the owner's cache can get, by hash."""
    page = index.read_page(owner, after=after, limit=limit)
    seen = tuple(artifact for artifact in page.artifacts if retention.visible(artifact, now))
    return ArtifactPage(artifacts=seen, following=page.following)


def delete_artifact(
    owner: str,
    hash: ArtifactHash,
    entry: IndexEntry,
    *,
    by: Writer | None,
    quota_bytes: int | None,
    now: datetime,
) -> Entry | None:
    """Delete what is stored under the hash, and refuse an upload of it that was offered before.

    Returns the entry of the audit; None when there was nothing to delete, so that a second call is as good as one. Of a
    deletion and an upload at the same time, either may come last. Raises TryAgain.
    """
    if entry.pending is not None:
        # It may have come: then it counts as stored, as for readers.
        settling.settle(entry, quota_bytes=quota_bytes, now=now)
        entry = index.read_entry(owner, hash)
    for attempt in attempts():
        if attempt:
            entry = index.read_entry(owner, hash)
        refused = entry.pending is None or index.refuse(entry.pending, now=now)
        if refused and entry.artifact is None:
            return None
        if refused and entry.artifact is not None:
            deleted = _delete(entry.artifact, by, now)
            if deleted is not None:
                return deleted
    raise TryAgain


def _delete(artifact: Artifact, by: Writer | None, now: datetime) -> Entry | None:
    upload = artifact.upload
    entry = make_entry(
        upload.owner,
        Action.ARTIFACT_DELETED,
        upload.hash,
        actor_of(by),
        artifacts=1,
        size_bytes=artifact.size_bytes,
        now=now,
    )
    return entry if settling.forget(artifact, noting=entry, now=now) else None
