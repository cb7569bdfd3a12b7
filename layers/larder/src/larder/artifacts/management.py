"""List and delete single artifacts, for members who manage them."""

from dataclasses import replace
from datetime import datetime

from larder.actor import Actor
from larder.artifacts import expiry, finalize
from larder.artifacts.lists import ALL_SCOPES, ArtifactPage, Order, Wanted
from larder.artifacts.models import UNPROTECTED, Artifact, ArtifactHash, IndexEntry, View
from larder.artifacts.repository import by_upload, index, pages
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts
from larder.errors import ArtifactNotFound, TryAgain
from larder.usage.vendors import ci_vendor

SEARCH_PAGES = 10
SEARCH_PAGE_LENGTH = 200
"""How many artifacts one request reads at most, to find those that it wants."""


def list_artifacts(
    owner: str, wanted: Wanted, *, after: str, limit: int, now: datetime
) -> ArtifactPage:
    """A page of the owner's artifacts, without those past their retention.

    A search reads up to SEARCH_PAGES pages. A list that needs none reads one, and artifacts of other scopes count
    towards `limit`.
    """
    searches = _searches(wanted)
    found: list[Artifact] = []
    read = 0
    following: str | None = after
    for _ in range(SEARCH_PAGES if searches else 1):
        page = _page(owner, wanted, after or "", SEARCH_PAGE_LENGTH if searches else limit)
        read += page.read
        for artifact in page.artifacts:
            if not expiry.visible(artifact, now) or not _is_wanted(artifact, wanted):
                continue
            found.append(artifact)
            if searches and len(found) == limit:
                place = _place(artifact, wanted)
                return ArtifactPage(artifacts=tuple(found), following=place, read=read)
        following = page.following
        if following is None:
            break
        after = following
    return ArtifactPage(artifacts=tuple(found), following=following, read=read)


def _searches(wanted: Wanted) -> bool:
    """Whether only the items, not their keys, show which artifacts are wanted."""
    if wanted.writer is not None or wanted.ci is not None:
        return True
    if wanted.order is Order.UPLOADED:
        return wanted.prefix != ""
    return wanted.since is not None or wanted.until is not None


def _page(owner: str, wanted: Wanted, after: str, limit: int) -> ArtifactPage:
    if wanted.order is Order.HASH:
        return pages.read_page(owner, after=after, limit=limit, prefix=wanted.prefix)
    return by_upload.read_uploaded(
        owner, after=after, limit=limit, since=wanted.since, until=wanted.until
    )


def _place(artifact: Artifact, wanted: Wanted) -> str:
    if wanted.order is Order.HASH:
        return artifact.upload.index_key
    return by_upload.place_of(artifact)


def _is_wanted(artifact: Artifact, wanted: Wanted) -> bool:
    writer = artifact.writer
    return (
        wanted.scope in (ALL_SCOPES, artifact.upload.scope_name)
        and artifact.upload.hash.startswith(wanted.prefix)
        and (wanted.writer is None or (writer is not None and writer.has_id(wanted.writer)))
        and (wanted.ci is None or ci_vendor(artifact.metadata.ci) == ci_vendor(wanted.ci))
        and (wanted.since is None or artifact.created_at >= wanted.since)
        and (wanted.until is None or artifact.created_at < wanted.until)
    )


def list_scopes_of(
    owner: str,
    hash: ArtifactHash,
    shared: IndexEntry,
    *,
    after: str,
    limit: int,
    now: datetime,
) -> ArtifactPage:
    """A page of the artifacts with this hash: that of the shared scope first, then those of own scopes, by scope.

    `shared` is the entry of the shared one, which the request has read. It does not count towards `limit`.
    """
    page = pages.read_scopes_of(owner, hash, after=after or None, limit=limit)
    first = () if after or shared.artifact is None else (shared.artifact,)
    return replace(
        page,
        artifacts=tuple(one for one in (*first, *page.artifacts) if expiry.visible(one, now)),
    )


def read_in_scope(
    owner: str, hash: ArtifactHash, scope: str | None, shared: IndexEntry
) -> IndexEntry:
    """The entry of the hash in this scope. `shared` is that of the shared one, which the request has read."""
    return shared if scope is None else index.read_entry(owner, hash, scope)


def inspect_artifact(
    entry: IndexEntry, *, view: View, quota_bytes: int | None, now: datetime
) -> Artifact:
    """The artifact of the entry, after settling a direct upload that arrived, also if `view` does not show it.

    Raises ArtifactNotFound.
    """
    artifact = finalize.settle(entry, view=view, quota_bytes=quota_bytes, now=now)
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
    quota_bytes: int | None,
    now: datetime,
) -> Entry | None:
    """Delete the artifact with this hash in one scope, and refuse an upload of it that was offered before.

    `entry` is that of the scope, which is None for the shared one. Returns the audit entry, or None if there was
    nothing to delete, so a repeated call does no harm. If a deletion and an upload run at the same time, either can
    win. Raises TryAgain.
    """
    if entry.pending is not None:
        # If the upload has arrived, it counts as stored, as it does for readers.
        finalize.settle(entry, view=view, quota_bytes=quota_bytes, now=now)
        entry = index.read_entry(owner, hash, scope)
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
    return entry if finalize.delete_from_index(artifact, noting=entry, now=now) else None
