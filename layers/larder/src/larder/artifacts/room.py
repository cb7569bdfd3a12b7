"""Room for an artifact: it is counted into the owner's totals before it is published, and out again when it is not."""

from datetime import date, datetime
from functools import partial

from larder.artifacts.models import Artifact, Totals
from larder.artifacts.repository.totals import add_to_totals
from larder.settings import settings
from larder.usage.uploads import Uploads


def can_fit(artifact: Artifact, quota_bytes: int | None) -> bool:
    """Whether there can be room for it, where room is made. Where it is not, the totals alone decide."""
    return not settings().evicts or quota_bytes is None or artifact.size_bytes <= quota_bytes


def reserve(
    artifact: Artifact,
    replaces: Artifact | None,
    quota_bytes: int | None,
    counted_on: date | None,
    *,
    now: datetime,
    evicts: bool = False,
) -> bool:
    """Count the artifact in before it is published, so that parallel uploads never pass the quota together.

    One smaller than what it replaces needs no room, and count_shrinkage counts it: others must not take what it frees
    before it is free. With `evicts`, and where the deployment evicts, room is made first if there is none.
    """
    size_bytes, _ = _growth(artifact, replaces)
    if size_bytes < 0:
        return True
    count_in = partial(_count, artifact, replaces, counted_on, quota_bytes=quota_bytes)
    if not evicts or quota_bytes is None or not settings().evicts:
        return count_in() is not None
    # Imported here: requests start faster without it.
    from larder.artifacts.eviction import reserve_by_evicting

    return reserve_by_evicting(
        artifact.upload.owner,
        size_bytes,
        count_in,
        quota_bytes=quota_bytes,
        sparing=artifact.upload.hash,
        now=now,
    )


def release(artifact: Artifact, replaces: Artifact | None, counted_on: date | None) -> None:
    """Take back what reserve counted in."""
    if _growth(artifact, replaces)[0] >= 0:
        _count(artifact, replaces, counted_on, times=-1)


def count_shrinkage(artifact: Artifact, replaced: Artifact | None, counted_on: date | None) -> None:
    """Count in an artifact that stands now in the place of a larger one."""
    if _growth(artifact, replaced)[0] < 0:
        _count(artifact, replaced, counted_on)


def _count(
    artifact: Artifact,
    replaces: Artifact | None,
    counted_on: date | None,
    *,
    times: int = 1,
    quota_bytes: int | None = None,
) -> Totals | None:
    """Returns what is stored with it; None, and nothing counted, when that would pass the quota."""
    size_bytes, artifacts = _growth(artifact, replaces)
    uploads = Uploads(count=times, size_bytes=times * artifact.size_bytes)
    return add_to_totals(
        artifact.upload.owner,
        times * size_bytes,
        times * artifacts,
        quota_bytes=quota_bytes,
        uploaded=None if counted_on is None else (counted_on, uploads),
    )


def _growth(artifact: Artifact, replaces: Artifact | None) -> tuple[int, int]:
    if replaces is None:
        return artifact.size_bytes, 1
    return artifact.size_bytes - replaces.size_bytes, 0
