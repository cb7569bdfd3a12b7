"""The index, made anew from the bucket, and the totals from the index."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice

from larder.artifacts import storage
from larder.artifacts.models import Totals, Upload, same_upload
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import add_to_totals, read_totals, replace_totals, sum_index
from larder.artifacts.retention import visible
from larder.artifacts.settling import index_again
from larder.concurrency import attempts


@dataclass(slots=True)
class RebuildReport:
    """What a rebuild of the index found in the bucket."""

    objects: int = 0
    indexed: int = 0
    """Hashes whose latest upload was put into the index."""
    current: int = 0
    """Hashes whose latest upload was there already."""
    replaced: int = 0
    """Older uploads of a hash, listed for deletion."""
    expired: int = 0
    """Hashes whose latest upload is past its retention, or no artifact: empty or too large."""


def rebuild_index(
    *,
    now: datetime,
    on_progress: Callable[[RebuildReport], None] = lambda _: None,
    workers: int = 16,
) -> RebuildReport:
    """Make the index from the bucket: of each hash the latest upload becomes the artifact, as if its event came anew.

    Safe to run twice and beside requests: every step is the one that an S3 event takes, but that no quota refuses what
    is stored already. Older uploads of a hash are discarded. At the end each owner's totals are counted anew.
    """
    report = RebuildReport()
    owners: set[str] = set()
    by_hash = groupby(storage.list_uploads(), key=lambda upload: (upload.owner, upload.hash))
    oldest_first = (list(uploads) for _, uploads in by_hash)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        while some := list(islice(oldest_first, 8 * workers)):
            owners.update(uploads[0].owner for uploads in some)
            for uploads, outcome in zip(
                some, pool.map(lambda them: _index_latest(them, now), some), strict=True
            ):
                report.objects += len(uploads)
                report.replaced += len(uploads) - 1
                setattr(report, outcome, getattr(report, outcome) + 1)
                on_progress(report)
        list(pool.map(recount, owners))
    return report


def _index_latest(uploads: Sequence[Upload], now: datetime) -> str:
    """Returns what to count the hash as: `indexed`, `current` or `expired`."""
    *older, latest = uploads
    before = index.read_entry(latest.owner, latest.hash).artifact
    current = before is not None and before.upload.id == latest.id
    after = before if current else index_again(latest, now=now)
    for upload in older:
        index_again(upload, now=now)
    if after is None or not visible(after, now):
        return "expired"
    return "current" if same_upload(before, after) else "indexed"


def recount(owner: str) -> Totals:
    """Set an owner's totals to what the index holds, and return them.

    While uploads go on, one that is counted but not published yet may be missed by its size.
    """
    before = counted = Totals()
    for _ in attempts():
        before, counted = read_totals(owner), sum_index(owner).totals
        if counted == before or replace_totals(owner, counted, was=before):
            return counted
    size_bytes = counted.size_bytes - before.size_bytes
    artifacts = counted.artifacts - before.artifacts
    add_to_totals(owner, size_bytes, artifacts, quota_bytes=None)
    return counted
