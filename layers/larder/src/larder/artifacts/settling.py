"""How an upload that somebody else has put into the bucket becomes the artifact that readers see.

Its S3 event settles it, who asks for the hash first, or the sweep: each finds what the others left, in any order.
"""

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from larder.artifacts import room, storage
from larder.artifacts.models import INDEXED_BODY_BYTES, Artifact, IndexEntry, Upload
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import add_to_totals
from larder.artifacts.retention import visible
from larder.concurrency import attempts
from larder.errors import MakingRoom, TryAgain
from larder.settings import settings
from larder.teams.service import quota_bytes as quota_of

if TYPE_CHECKING:
    from larder.audit.models import Entry

_REQUEST_TAKES = timedelta(seconds=30)
"""No request runs for longer, so its upload is published by then, or never will be by it."""


def commit(upload: Upload, *, announced_bytes: int | None = None, now: datetime) -> Artifact | None:
    """Settle an upload whose object is said to be complete: by its S3 event, twice, late or after it was discarded.

    Returns the artifact that readers see afterwards. Raises TryAgain when other writers kept it from settling. The URL
    that an upload went to takes others till it expires. One of another size than was counted, as `announced_bytes`
    tells, takes the artifact with it: what no quota let in is not served.
    """
    artifact = _commit(upload, quota_of(upload.owner), now, counted_on=now.date(), evicts=True)
    if artifact is None or artifact.upload.id != upload.id:
        return artifact
    if announced_bytes in (None, artifact.size_bytes):
        return artifact
    stored = storage.head(upload)
    if stored is None or stored.size_bytes == artifact.size_bytes:
        # It is an earlier event that comes late.
        return artifact
    forget(artifact, now=now)
    return None


def index_again(upload: Upload, *, now: datetime) -> Artifact | None:
    """The same for one that has been stored for long: no quota refuses it, and it counts to the uploads of no day."""
    return _commit(upload, None, now, counted_on=None)


def settle(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact | None:
    """The artifact that stands in the index once a direct upload that has arrived is settled. Raises TryAgain."""
    if entry.pending is None:
        return entry.artifact
    try:
        return _settle(entry.pending.upload, entry, quota_bytes, now, counted_on=now.date())
    except MakingRoom:
        # It is not let in yet.
        return entry.artifact
    except TryAgain:
        # Others are settling the same hash, or a store fails. What was there before is still a whole artifact; where
        # there was none, an upload that may have come must not be told as missing.
        if entry.artifact is None:
            raise
        return entry.artifact


def forget(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Take an artifact out of the index, and keep the entry of the audit with it, if there is one.

    False, and nothing done, when something else stands there now.
    """
    removed = index.remove(artifact, noting=noting, now=now)
    if removed:
        add_to_totals(artifact.upload.owner, -artifact.size_bytes, -1, quota_bytes=None)
    return removed


def _commit(
    upload: Upload,
    quota_bytes: int | None,
    now: datetime,
    *,
    counted_on: date | None,
    evicts: bool = False,
) -> Artifact | None:
    entry, discarded = index.read_for_settling(upload)
    if discarded:
        return entry.artifact
    return _settle(upload, entry, quota_bytes, now, counted_on=counted_on, evicts=evicts)


def _settle(
    upload: Upload,
    entry: IndexEntry,
    quota_bytes: int | None,
    now: datetime,
    *,
    counted_on: date | None,
    evicts: bool = False,
) -> Artifact | None:
    """Publish the upload if its object is complete and no newer upload stands in its place.

    It counts to the uploads of the day `counted_on`; to none's when that is None, because it is not new. `evicts` is
    whether it may make room for itself; where it may not, others do, and TryAgain is raised, MakingRoom where it may.
    """
    if entry.artifact is not None and entry.artifact.upload.id == upload.id:
        return entry.artifact
    stored = storage.head(upload)
    if stored is None:
        return entry.artifact
    # It came through a function, which may be about to publish it, and has its room in the totals already.
    under_way = (
        upload.writer is None
        and stored.writer is not None
        and now - stored.stored_at < _REQUEST_TAKES
    )
    small = stored.size_bytes <= INDEXED_BODY_BYTES
    body = storage.get(upload, stored.size_bytes) if small else None
    for attempt in attempts():
        if attempt:
            entry, discarded = index.read_for_settling(upload)
            if discarded:
                return entry.artifact
        current = entry.artifact
        if current is not None and current.upload.id == upload.id:
            return current
        mine = entry.pending is not None and entry.pending.upload.id == upload.id
        pending = entry.pending if mine else None
        artifact = Artifact(
            upload=upload,
            size_bytes=stored.size_bytes,
            created_at=stored.stored_at,
            metadata=stored.metadata,
            writer=upload.writer or stored.writer or (pending.writer if pending else None),
            body=body,
        )
        acceptable = (
            0 < stored.size_bytes <= settings().max_upload_bytes
            and visible(artifact, now)
            and (current is None or current.upload.id < upload.id)
            and room.can_fit(artifact, quota_bytes)
        )
        reserved = acceptable and room.reserve(
            artifact, current, quota_bytes, counted_on, now=now, evicts=evicts and not under_way
        )
        if acceptable and not reserved and (under_way or settings().evicts):
            raise MakingRoom if settings().evicts else TryAgain
        if not reserved:
            if index.discard(upload, settles=pending, now=now):
                return current
        elif index.publish(artifact, replaces=current, settles=pending, offered=True, now=now):
            room.count_shrinkage(artifact, current, counted_on)
            return artifact
        else:
            room.release(artifact, current, counted_on)
    raise TryAgain
