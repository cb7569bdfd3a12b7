"""List artifacts, for members who manage them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from larder.artifacts import expiry
from larder.artifacts.models import (
    UNPROTECTED,
    Artifact,
    ArtifactHash,
    IndexEntry,
    View,
    index_key,
    is_hash,
)
from larder.artifacts.repository import index, pages
from larder.artifacts.selection import ALL_SCOPES, ArtifactPage, Order, Selection
from larder.clock import EPOCH
from larder.teams.models import SHARED_SCOPE
from larder.usage.vendors import ci_vendor

SEARCH_PAGES = 10
SEARCH_PAGE_LENGTH = 200
"""How many artifacts one request reads at most, to find those that it wants."""

_BEGINS_AHEAD = timedelta(minutes=1)
"""More than the seconds by which an upload can be stored before it begins (`View.begins`)."""


def list_artifacts(
    owner: str,
    selection: Selection,
    *,
    view: View = UNPROTECTED,
    after: str,
    limit: int,
    now: datetime,
) -> ArtifactPage:
    """A page of the owner's artifacts, without those past their retention.

    `view` is what readers see of the shared scope. A search reads up to SEARCH_PAGES pages. A list that needs none
    reads one, and artifacts of other scopes count towards `limit`.
    """
    hides = not selection.hidden and (view.trusted_from > EPOCH or view.requires_tag)
    if hides and selection.order is Order.UPLOADED and selection.scope == SHARED_SCOPE:
        # What was hidden when the team was protected is older.
        since = max(selection.since or EPOCH, view.trusted_from - _BEGINS_AHEAD)
        selection, hides = replace(selection, since=since), view.requires_tag
    searches = hides or _searches(selection)
    found: list[Artifact] = []
    read = 0
    following: str | None = after
    for _ in range(SEARCH_PAGES if searches else 1):
        page = _page(owner, selection, after or "", SEARCH_PAGE_LENGTH if searches else limit)
        read += page.read
        for artifact in page.artifacts:
            if not expiry.visible(artifact, now) or not _is_selected(artifact, selection):
                continue
            if not selection.hidden and not view.shows(artifact):
                continue
            found.append(artifact)
            if searches and len(found) == limit:
                place = _place(artifact, selection)
                return ArtifactPage(artifacts=tuple(found), following=place, read=read)
        following = page.following
        if following is None:
            break
        after = following
    return ArtifactPage(artifacts=tuple(found), following=following, read=read)


def artifacts_of(
    owner: str, hashes: Sequence[str], selection: Selection, *, now: datetime
) -> ArtifactPage:
    """The artifacts with these hashes, the largest first, hidden ones too.

    They are of the shared scope, or of the selection's own one.
    """
    scope = None if selection.scope in (SHARED_SCOPE, ALL_SCOPES) else selection.scope
    keys = [index_key(ArtifactHash(hash), scope) for hash in hashes]
    entries, _ = index.read_entries(owner, keys)
    artifacts = (entry.artifact for entry in entries.values())
    found = [one for one in artifacts if one is not None and expiry.visible(one, now)]
    found.sort(key=lambda one: -one.size_bytes)
    return ArtifactPage(artifacts=tuple(found), following=None, read=len(found))


def _searches(selection: Selection) -> bool:
    """Whether only the items, not their keys, show which artifacts are in the selection."""
    if selection.writer is not None or selection.ci is not None:
        return True
    if selection.order is Order.UPLOADED:
        return selection.prefix != ""
    return selection.since is not None or selection.until is not None


def _page(owner: str, selection: Selection, after: str, limit: int) -> ArtifactPage:
    if selection.order is Order.HASH:
        return pages.read_page(owner, after=after, limit=limit, prefix=selection.prefix)
    return pages.read_uploaded(
        owner, after=after, limit=limit, since=selection.since, until=selection.until
    )


def _place(artifact: Artifact, selection: Selection) -> str:
    if selection.order is Order.HASH:
        return artifact.upload.index_key
    return pages.place_of(artifact)


def _is_selected(artifact: Artifact, selection: Selection) -> bool:
    writer = artifact.writer
    return (
        selection.scope in (ALL_SCOPES, artifact.upload.scope_name)
        and artifact.upload.hash.startswith(selection.prefix)
        and (selection.writer is None or (writer is not None and writer.has_id(selection.writer)))
        and (selection.ci is None or ci_vendor(artifact.metadata.ci) == ci_vendor(selection.ci))
        and (selection.since is None or artifact.created_at >= selection.since)
        and (selection.until is None or artifact.created_at < selection.until)
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
        artifacts=tuple(
            artifact for artifact in (*first, *page.artifacts) if expiry.visible(artifact, now)
        ),
    )


class Known(NamedTuple):
    """What the index has of some hashes: the artifacts that readers see, and which others have an offered upload."""

    artifacts: Mapping[str, Artifact]
    offered: Set[str]


def known_artifacts(owner: str, hashes: Sequence[str], *, view: View, now: datetime) -> Known:
    """What the index has of these hashes for this view. Direct uploads are offered until they are published."""
    valid = [ArtifactHash(hash) for hash in dict.fromkeys(hashes) if is_hash(hash)]
    scopes = (None,) if view.scope is None else (None, view.scope)
    keys = {index_key(hash, scope): hash for hash in valid for scope in scopes}
    entries, _ = index.read_entries(owner, list(keys))
    artifacts: dict[str, Artifact] = {
        keys[key]: entry.artifact
        for key, entry in reversed(entries.items())
        if entry.artifact is not None and expiry.is_shown(entry.artifact, view, now)
    }
    missed = {key: [entry] for key, entry in entries.items() if keys[key] not in artifacts}
    offers, _ = index.read_offers_of(missed)
    offered = {keys[key] for key, (entry,) in offers.items() if entry.pending is not None}
    return Known(artifacts=artifacts, offered=offered)
