"""How an artifact travels: stored, offered a direct upload, settled, fetched, queried, swept, and indexed anew.

An artifact exists when its index item points to a complete object. Every upload has an object of its own, so a replaced
one stays whole for whoever is reading it. docs/architecture.md tells the order of the writes and what a crash leaves.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING

from larder.artifacts import repository, storage
from larder.artifacts.models import (
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    DownloadUrl,
    IndexEntry,
    PendingUpload,
    QueryResult,
    Removal,
    Totals,
    Upload,
    Writer,
)
from larder.concurrency import beside, in_background, wait_before_retry
from larder.errors import (
    ArtifactNotFound,
    CachingOverLimit,
    LargerThanQuota,
    MakingRoom,
    TryAgain,
)
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.teams.models import CachingStatus, OwnerState
from larder.teams.service import change_state
from larder.teams.service import quota_bytes as quota_of
from larder.usage.uploads import Uploads

if TYPE_CHECKING:
    from larder.audit.models import Entry

_ATTEMPTS = 8

_REQUEST_TAKES = timedelta(seconds=30)
"""No request runs for longer, so its upload is published by then, or never will be by it."""

_NOTED_AGAIN_AFTER = timedelta(days=1)
"""How old the last use that is noted may be before a further one is noted too."""

_STILL_COUNTING = timedelta(days=1)
"""How long after a day's end a request that began on it may still count to it, with room to spare."""

_SWEPT_AT_ONCE = 16
"""Items that a sweep clears away side by side. Most of each is waiting for DynamoDB and S3."""


@dataclass(slots=True)
class SweepReport:
    """What one sweep did."""

    expired: int = 0
    objects_deleted: int = 0
    uploads_settled: int = 0
    uploads_given_up: int = 0
    removals: int = 0
    """What somebody asked to be removed, and was, or was looked for once more."""
    totals_corrected: int = 0
    failed: int = 0
    finished: bool = True
    # What was looked at, and how much was wrong: no part of what was done.
    totals_checked: int = field(default=0, compare=False)
    totals_too_large: int = field(default=0, compare=False)
    """Owners of whose artifacts there was no time to take the sum."""
    totals_drifting: int = field(default=0, compare=False)
    """Owners whose totals differ from the index for the first time: maybe by an upload that is under way."""
    corrected_bytes: int = field(default=0, compare=False)
    corrected_artifacts: int = field(default=0, compare=False)

    def add(self, other: "SweepReport") -> None:
        for counter in fields(self):
            if counter.name != "finished":
                both = getattr(self, counter.name) + getattr(other, counter.name)
                setattr(self, counter.name, both)


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


def caching_status(state: OwnerState, totals: Totals) -> CachingStatus:
    """What the owner set, or `over_limit` when caching is on, the quota used up, and nothing evicted to make room."""
    used_up = state.quota_bytes is not None and totals.size_bytes >= state.quota_bytes
    used_up = used_up and not settings().evicts
    if state.caching is CachingStatus.ENABLED and used_up:
        return CachingStatus.OVER_LIMIT
    return state.caching


def set_caching(owner: str, caching: CachingStatus, totals: Totals) -> CachingStatus:
    """Switch caching off, to a pause, or on, from the next request on. Returns what clients are told then.

    Raises InvalidRequest for `over_limit` and for a team that does not exist.
    """
    return caching_status(change_state(owner, caching=caching), totals)


def store(
    owner: str,
    hash: ArtifactHash,
    body: bytes,
    metadata: ArtifactMetadata,
    *,
    writer: Writer,
    replaces: Artifact | None,
    quota_bytes: int | None,
    now: datetime,
) -> Artifact:
    """Store an artifact that came through a function. Raises CachingOverLimit, LargerThanQuota, MakingRoom, TryAgain.

    `replaces` is the index item as the request saw it. When another upload of the hash is published meanwhile, this one
    counts as having come just before it: its object is discarded, and the client has its success all the same.
    """
    artifact = Artifact(
        upload=Upload(owner=owner, hash=hash, id=time_ordered_id(now)),
        size_bytes=len(body),
        created_at=now,
        metadata=metadata,
        writer=writer,
    )
    if not _can_fit(artifact, quota_bytes):
        raise LargerThanQuota
    today = now.date()
    with beside(storage.put, artifact.upload, body, metadata, writer) as saving:
        reserved = _reserve(artifact, replaces, quota_bytes, today, now=now, evicts=True)
    try:
        saving.result()
    except BaseException:
        if reserved:
            _release(artifact, replaces, today)
        raise
    for attempt in range(_ATTEMPTS):
        if not reserved:
            if not repository.discard(artifact.upload, now=now) and _same(
                repository.read_entry(owner, hash).artifact, artifact
            ):
                # The event of the finished object found room where this did not, and published it.
                return artifact
            raise MakingRoom if settings().evicts else CachingOverLimit
        if repository.publish(artifact, replaces=replaces, now=now):
            _count_shrinkage(artifact, replaces, today)
            return artifact
        wait_before_retry(attempt)
        current = repository.read_entry(owner, hash).artifact
        if _same(current, replaces):
            continue
        _release(artifact, replaces, today)
        if _same(current, artifact):
            # The event of the finished object came first and has counted it.
            return artifact
        if current is not None:
            repository.discard(artifact.upload, now=now)
            return artifact
        replaces = None
        reserved = _reserve(artifact, replaces, quota_bytes, today, now=now, evicts=True)
    if reserved:
        _release(artifact, replaces, today)
    repository.discard(artifact.upload, now=now)
    raise TryAgain


def offer_upload(owner: str, hash: ArtifactHash, *, writer: Writer, now: datetime) -> str:
    """Note a direct upload and return the presigned URL that takes it."""
    parts = (time_ordered_id(now), writer.id, writer.user_id)
    upload = Upload(owner=owner, hash=hash, id=".".join(part for part in parts if part))
    repository.put_pending(PendingUpload(upload=upload, created_at=now, writer=writer))
    return storage.upload_url(upload)


def find_for_use(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact:
    """The same for a client that goes on as if it had the artifact, which counts as a use. Raises ArtifactNotFound."""
    artifact = find(entry, quota_bytes=quota_bytes, now=now)
    with _noting_use(artifact, now):
        return artifact


def find(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact:
    """The artifact that readers see, after settling a direct upload that has arrived. Raises ArtifactNotFound."""
    artifact = _settled(entry, quota_bytes, now)
    if artifact is None or not visible(artifact, now):
        raise ArtifactNotFound
    return artifact


def settle(entry: IndexEntry, *, quota_bytes: int | None, now: datetime) -> Artifact | None:
    """The artifact that stands in the index once a direct upload that has arrived is settled."""
    return _settled(entry, quota_bytes, now)


def visible(artifact: Artifact, now: datetime) -> bool:
    """Whether the retention has not passed yet. The sweep and S3's lifecycle only clear away what this hides."""
    return now < artifact.expires_at(settings().retention_days)


def fetch(artifact: Artifact, *, now: datetime) -> bytes | DownloadUrl:
    """The bytes when they are few, or tagged and few enough for a function's reply; else a presigned URL.

    S3 cannot give the tag back that signed artifacts need, so tagged ones take the direct way only when they must.
    Raises ArtifactNotFound when the object is gone or not whole; the index forgets it then.
    """
    options = settings()
    limit = options.inline_limit_bytes if artifact.metadata.tag else options.inline_download_bytes
    with _noting_use(artifact, now):
        if artifact.size_bytes > limit:
            return storage.download_url(artifact.upload)
        body = storage.get(artifact.upload)
    if body is None or len(body) != artifact.size_bytes:
        forget(artifact, now=now)
        raise ArtifactNotFound
    return body


@contextmanager
def _noting_use(artifact: Artifact, now: datetime) -> Generator[None, None, None]:
    """Note beside what the block does that the artifact is used: once a day, and where uses decide what is evicted.

    One that cannot be noted does not fail.
    """
    last = artifact.last_used_at
    if not settings().evicts or (last is not None and now - last < _NOTED_AGAIN_AFTER):
        yield
        return
    with beside(repository.note_use, artifact, at=now) as noting:
        yield
    with suppress(TryAgain):
        noting.result()


def query(
    owner: str, hashes: Sequence[ArtifactHash], *, quota_bytes: int | None, now: datetime
) -> QueryResult:
    """Look many hashes up at once. A hash whose look-up failed is told apart from one that is not stored."""
    entries, failed = repository.read_entries(owner, list(dict.fromkeys(hashes)))
    settling = {
        hash: in_background(_settled, entry, quota_bytes, now)
        for hash, entry in entries.items()
        if entry.pending is not None
    }
    found: dict[ArtifactHash, Artifact | None] = {}
    for hash, entry in entries.items():
        try:
            artifact = settling[hash].result() if hash in settling else entry.artifact
        except TryAgain:
            failed.add(hash)
            continue
        found[hash] = artifact if artifact is not None and visible(artifact, now) else None
    return QueryResult(found, frozenset(failed))


def forget(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Take an artifact out of the index, and keep the entry of the audit with it, if there is one.

    False, and nothing done, when something else stands there now.
    """
    removed = repository.remove(artifact, noting=noting, now=now)
    if removed:
        repository.add_to_totals(artifact.upload.owner, -artifact.size_bytes, -1, quota_bytes=None)
    return removed


def commit(upload: Upload, *, now: datetime) -> Artifact | None:
    """Settle an upload whose object is said to be complete: by its S3 event, twice, late or after it was discarded.

    Returns the artifact that readers see afterwards. Raises TryAgain when other writers kept it from settling.
    """
    return _commit(upload, quota_of(upload.owner), now, counted_on=now.date(), evicts=True)


def _commit(
    upload: Upload,
    quota_bytes: int | None,
    now: datetime,
    *,
    counted_on: date | None,
    evicts: bool = False,
) -> Artifact | None:
    entry, discarded = repository.read_for_settling(upload)
    if discarded:
        return entry.artifact
    return _settle(upload, entry, quota_bytes, now, counted_on=counted_on, evicts=evicts)


def sweep(
    *,
    now: datetime,
    may_go_on: Callable[[], bool] = lambda: True,
) -> SweepReport:
    """Clear away what is over: expired artifacts, discarded objects, uploads that never came.

    Also compares each owner's totals with the index, once a day. Begins no further items when `may_go_on` says so; the
    next sweep goes on. An item that fails is left to the next sweep too. Safe beside requests and other sweeps.
    """
    report = SweepReport()
    items = repository.due_items(now=now)
    # Threads of its own: what an item takes may itself use those for calls in the background.
    with ThreadPoolExecutor(max_workers=_SWEPT_AT_ONCE) as pool:
        while some := list(islice(items, 4 * _SWEPT_AT_ONCE)):
            if not may_go_on():
                report.finished = False
                break
            for swept in pool.map(lambda due: _sweep_item(due, now, may_go_on), some):
                report.add(swept)
    return report


def _sweep_item(
    due: repository.DueItem, now: datetime, may_go_on: Callable[[], bool]
) -> SweepReport:
    report = SweepReport()
    try:
        _clear_away(due, report, now, may_go_on)
    except TryAgain:
        report.failed += 1
    return report


def _clear_away(
    due: repository.DueItem, report: SweepReport, now: datetime, may_go_on: Callable[[], bool]
) -> None:
    match repository.read_due(due):
        case Artifact() as artifact:
            if visible(artifact, now):
                repository.postpone_sweep(artifact)
            else:
                report.expired += forget(artifact, now=now)
        case PendingUpload() as pending:
            if storage.head(pending.upload) is None:
                report.uploads_given_up += repository.drop_pending(pending)
            else:
                commit(pending.upload, now=now)
                report.uploads_settled += 1
        case Upload() as discarded:
            storage.delete(discarded)
            repository.forget_discarded(discarded)
            report.objects_deleted += 1
        case Removal() as removal:
            # Imported here: requests start faster without it, and it stands on this module.
            from larder.artifacts.removal import carry_out

            report.removals += carry_out(removal, now=now, may_go_on=may_go_on).finished
        case repository.DueTotals() as due_totals:
            _hand_uploads_over(due_totals, now)
            _check_totals(due_totals, report, now, may_go_on)
        case None:
            pass


def _hand_uploads_over(due: repository.DueTotals, now: datetime) -> None:
    """Give the uploads of days that nothing counts to any more to the usage table. A crash leaves them in both."""
    # Imported here: requests for artifacts start faster without it.
    from larder.usage.service import set_uploads

    for day, uploads in due.totals.uploads.items():
        if day < now.date() - _STILL_COUNTING:
            set_uploads(due.owner, day, uploads)
            repository.forget_uploads(due.owner, day)


def _check_totals(
    due: repository.DueTotals,
    report: SweepReport,
    now: datetime,
    may_go_on: Callable[[], bool],
) -> None:
    """Compare the totals with the index, and correct them by a drift that two checks an hour apart have seen alike.

    What differs at one moment may be an upload that is counted and not published yet; what a crash left stays. An owner
    whose index is too large for one sweep is left alone for a day, so that the next sweeps do the rest of the work.
    """
    try:
        summed = repository.sum_index(due.owner, may_go_on=may_go_on)
    except repository.OutOfTime:
        next_at = now + timedelta(days=1)
        repository.check_totals(due, correct=False, drift=due.drift_before, next_at=next_at)
        report.totals_too_large += 1
        return
    drift = Totals(
        size_bytes=due.totals.size_bytes - summed.totals.size_bytes,
        artifacts=due.totals.artifacts - summed.totals.artifacts,
    )
    stays = drift != Totals() and drift == due.drift_before
    next_at = now + (timedelta(days=1) if stays or drift == Totals() else timedelta(minutes=50))
    noted = repository.check_totals(due, correct=stays, drift=drift, next_at=next_at)
    report.totals_checked += 1
    if drift != Totals():
        report.totals_drifting += not stays
    if stays and noted:
        report.totals_corrected += 1
        report.corrected_bytes += abs(drift.size_bytes)
        report.corrected_artifacts += abs(drift.artifacts)
    if summed.unlisted and settings().evicts:
        # Imported here: requests start faster without it, and it stands on what this module does.
        from larder.artifacts.eviction import list_all

        list_all(due.owner, may_go_on=may_go_on)


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
    before = repository.read_entry(latest.owner, latest.hash).artifact
    current = before is not None and before.upload.id == latest.id
    after = before if current else _commit(latest, None, now, counted_on=None)
    for upload in older:
        _commit(upload, None, now, counted_on=None)
    if after is None or not visible(after, now):
        return "expired"
    return "current" if _same(before, after) else "indexed"


def recount(owner: str) -> Totals:
    """Set an owner's totals to what the index holds, and return them.

    While uploads go on, one that is counted but not published yet may be missed by its size.
    """
    before, counted = repository.read_totals(owner), repository.sum_index(owner).totals
    for _ in range(_ATTEMPTS):
        if counted == before or repository.replace_totals(owner, counted, was=before):
            return counted
        before, counted = repository.read_totals(owner), repository.sum_index(owner).totals
    size_bytes = counted.size_bytes - before.size_bytes
    artifacts = counted.artifacts - before.artifacts
    repository.add_to_totals(owner, size_bytes, artifacts, quota_bytes=None)
    return counted


def forget_owner(owner: str) -> bool:
    """Stop watching over the totals of an owner who is gone. False while they store something, or seem to."""
    return repository.forget_totals(owner)


def _settled(entry: IndexEntry, quota_bytes: int | None, now: datetime) -> Artifact | None:
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
    for attempt in range(_ATTEMPTS):
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
        )
        acceptable = (
            0 < stored.size_bytes <= settings().max_upload_bytes
            and visible(artifact, now)
            and (current is None or current.upload.id < upload.id)
            and _can_fit(artifact, quota_bytes)
        )
        reserved = acceptable and _reserve(
            artifact, current, quota_bytes, counted_on, now=now, evicts=evicts and not under_way
        )
        if acceptable and not reserved and (under_way or settings().evicts):
            raise MakingRoom if settings().evicts else TryAgain
        if not reserved:
            if repository.discard(upload, settles=pending, now=now):
                return current
        elif repository.publish(artifact, replaces=current, settles=pending, offered=True, now=now):
            _count_shrinkage(artifact, current, counted_on)
            return artifact
        else:
            _release(artifact, current, counted_on)
        wait_before_retry(attempt)
        entry, discarded = repository.read_for_settling(upload)
        if discarded:
            return entry.artifact
    raise TryAgain


def _can_fit(artifact: Artifact, quota_bytes: int | None) -> bool:
    """Whether there can be room for it, where room is made. Where it is not, the totals alone decide."""
    return not settings().evicts or quota_bytes is None or artifact.size_bytes <= quota_bytes


def _reserve(
    artifact: Artifact,
    replaces: Artifact | None,
    quota_bytes: int | None,
    counted_on: date | None,
    *,
    now: datetime,
    evicts: bool = False,
) -> bool:
    """Count the artifact in before it is published, so that parallel uploads never pass the quota together.

    One smaller than what it replaces needs no room, and _count_shrinkage counts it: others must not take what it frees
    before it is free. With `evicts`, and where the deployment evicts, room is made first if there is none.
    """
    size_bytes, _ = _growth(artifact, replaces)
    if size_bytes < 0:
        return True
    count_in = partial(_count, artifact, replaces, counted_on, quota_bytes=quota_bytes)
    if not evicts or quota_bytes is None or not settings().evicts:
        return count_in() is not None
    # Imported here: requests start faster without it.
    from larder.artifacts.eviction import reserve

    return reserve(
        artifact.upload.owner,
        size_bytes,
        count_in,
        quota_bytes=quota_bytes,
        sparing=artifact.upload.hash,
        now=now,
    )


def _release(artifact: Artifact, replaces: Artifact | None, counted_on: date | None) -> None:
    """Take back what _reserve counted in."""
    if _growth(artifact, replaces)[0] >= 0:
        _count(artifact, replaces, counted_on, times=-1)


def _count_shrinkage(
    artifact: Artifact, replaced: Artifact | None, counted_on: date | None
) -> None:
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
    return repository.add_to_totals(
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


def _same(one: Artifact | None, other: Artifact | None) -> bool:
    return (one.upload.id if one else None) == (other.upload.id if other else None)
