"""Rebuild the index from the bucket, and the totals from the index."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice

from larder.artifacts import storage
from larder.artifacts.breakdown import sum_index
from larder.artifacts.expiry import visible
from larder.artifacts.models import Totals, same_upload, view_of
from larder.artifacts.publish import publish_again
from larder.artifacts.repository import index
from larder.artifacts.repository.checks import replace_totals
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.artifacts.storage import StoredUpload
from larder.concurrency import attempts
from larder.teams.models import OwnerState
from larder.teams.state import read_state


@dataclass(slots=True)
class RebuildReport:
    """What a rebuild of the index found in the bucket."""

    objects: int = 0
    indexed: int = 0
    """Hashes with an upload that was added to the index."""
    current: int = 0
    """Hashes whose upload was in the index already."""
    replaced: int = 0
    """Other uploads of a hash, listed for deletion."""
    expired: int = 0
    """Hashes without an upload to show: past its retention, empty, too large or refused."""


def rebuild_index(
    *,
    now: datetime,
    on_progress: Callable[[RebuildReport], None] = lambda _: None,
    workers: int = 16,
) -> RebuildReport:
    """Rebuild the index from the bucket. The latest upload of each hash becomes the artifact; others are discarded.

    In the shared scope of a protected team that keeps the first upload, it is the oldest that the team sees, of a
    writer that still has the right to.

    Safe to repeat and to run alongside requests: each step does what an S3 event does, except that no quota refuses an
    object that is stored already. At the end, each owner's totals are recounted.
    """
    report = RebuildReport()
    owners: dict[str, OwnerState] = {}
    by_hash = groupby(
        storage.list_uploads(), key=lambda stored: (stored.upload.owner, stored.upload.index_key)
    )
    oldest_first = (list(uploads) for _, uploads in by_hash)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        while batch := list(islice(oldest_first, 8 * workers)):
            for uploads in batch:
                if (owner := uploads[0].upload.owner) not in owners:
                    owners[owner] = replace(read_state(owner), quota_bytes=None)
            outcomes = pool.map(
                lambda uploads: _index_one(uploads, owners[uploads[0].upload.owner], now), batch
            )
            for uploads, outcome in zip(batch, outcomes, strict=True):
                report.objects += len(uploads)
                report.replaced += len(uploads) - 1
                setattr(report, outcome, getattr(report, outcome) + 1)
                on_progress(report)
        list(pool.map(recount, owners))
    return report


def _index_one(uploads: Sequence[StoredUpload], state: OwnerState, now: datetime) -> str:
    """Returns the field of the report that counts the hash: `indexed`, `current` or `expired`."""
    *older, latest = uploads
    upload = latest.upload
    view = view_of(state, upload.scope)
    keeps_first = view.keeps_first_of(upload.hash, upload.scope)
    before = after = index.read_entry(upload.owner, upload.hash, upload.scope).artifact
    for stored in uploads if keeps_first else [latest, *older]:
        after = publish_again(stored, view=view, now=now)
    if after is None or not visible(after, now):
        return "expired"
    return "current" if same_upload(before, after) else "indexed"


def recount(owner: str) -> Totals:
    """Set an owner's totals to the sum of the index, and return them.

    An upload that is counted but not published at that moment can be missing from them.
    """
    before = counted = Totals()
    for _ in attempts():
        before, counted = read_totals(owner), sum_index(owner).totals
        if counted == before or replace_totals(owner, counted, old=before):
            return counted
    # Own scopes are left to the sweep's check, which compares their sum, too.
    size_bytes = counted.size_bytes - before.size_bytes
    artifacts = counted.artifacts - before.artifacts
    add_to_totals(owner, size_bytes, artifacts)
    return counted
