"""The sweep: deletes what has expired, and repairs what a crash has left."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import partial

from larder.artifacts import storage
from larder.artifacts.breakdown import Collector, Origins
from larder.artifacts.eviction import list_all
from larder.artifacts.expiry import expires_at, needs_renewal, visible
from larder.artifacts.models import Artifact, PendingUpload, Totals, Upload
from larder.artifacts.publish import delete_from_index, publish
from larder.artifacts.records import Discarded, Removal
from larder.artifacts.removals import carry_out
from larder.artifacts.repository import checks, index
from larder.artifacts.repository.allotments import (
    must_reconcile_all,
    reconcile_allotment,
    set_counted,
)
from larder.artifacts.repository.checks import delete_uploads
from larder.artifacts.repository.pages import list_undated
from larder.artifacts.repository.scopes import set_counts
from larder.artifacts.repository.sweep_queue import (
    SHARDS,
    Due,
    DueTotals,
    delete_discarded,
    delete_discarded_if_published,
    due_batches,
    owners_with_totals,
    postpone_discarded,
    postpone_sweep,
    read_due,
)
from larder.artifacts.repository.totals import add_to_totals
from larder.artifacts.sweep_jobs import MOST_CHECKS, MOST_SWEEPS, CheckJob, Job, SweepJob
from larder.clock import from_ms, to_ms
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.models import is_team_id
from larder.usage.service import set_stored, set_uploads

_UPLOADS_FINAL_AFTER = timedelta(days=1)
"""How long after the end of a day its uploads can no longer change. A request takes seconds, so this is ample."""

_A_DAY_LATER = timedelta(hours=23, minutes=30)
"""The time until the next check of the totals. The sweep runs every hour, so checks stay at their hour, and no day is
without one in the usage figures."""

_SWEEP_THREADS = 16
"""Items swept in parallel. Each mostly waits for DynamoDB and S3."""

_MOST_PACKED = 150_000
"""The most characters of a check in a job. An asynchronous invocation takes 256 KB."""


@dataclass(slots=True)
class SweepReport:
    """What one sweep did. `rest` are the jobs that it had no time for."""

    expired: int = 0
    renewed: int = 0
    """Objects copied because their artifact was used."""
    objects_deleted: int = 0
    uploads_published: int = 0
    uploads_given_up: int = 0
    removals: int = 0
    """Requested removals whose pass has finished."""
    totals_corrected: int = 0
    failed: int = 0
    rest: list[Job] = field(default_factory=list)
    # The fields below report checks. They change nothing, so they do not count when reports are compared.
    totals_checked: int = field(default=0, compare=False)
    totals_too_large: int = field(default=0, compare=False)
    """Owners whose sum is too large to go on with in another call."""
    totals_drifting: int = field(default=0, compare=False)
    """Owners whose totals differ from the index for the first time. An upload in progress can be the reason."""
    corrected_bytes: int = field(default=0, compare=False)
    corrected_artifacts: int = field(default=0, compare=False)

    @property
    def finished(self) -> bool:
        return not self.rest

    def add(self, other: "SweepReport") -> None:
        for counter in fields(self):
            both = getattr(self, counter.name) + getattr(other, counter.name)
            setattr(self, counter.name, both)


OriginsOf = Callable[[str], Origins]
"""The origins of an owner's artifacts. Larder's layers below do not know reported runs."""


def sweep(
    *,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
    job: SweepJob | None = None,
    origins: OriginsOf | None = None,
) -> SweepReport:
    """Delete expired artifacts, discarded objects, and offers of uploads that never arrived.

    Also compares each owner's totals with the index, once a day. Stops when `has_time` returns False: the report then
    has a job for each shard that is left. An item that fails is retried by the next sweep. Safe to run alongside
    requests and other sweeps.
    """
    report, calls = SweepReport(), 0 if job is None else job.calls
    shards = SHARDS if job is None else (job.shard,)
    if job is None:
        _reconcile_allotments(report, now, has_time)
    # A separate pool: sweeping an item can itself use the shared threads for background calls.
    with ThreadPoolExecutor(max_workers=_SWEEP_THREADS) as pool:
        for shard in shards:
            if (
                not _sweep_shard(shard, report, pool, now, has_time, origins)
                and calls < MOST_SWEEPS
            ):
                report.rest.append(SweepJob(shard=shard, calls=calls + 1))
    return report


def _sweep_shard(
    shard: str,
    report: SweepReport,
    pool: ThreadPoolExecutor,
    now: datetime,
    has_time: Callable[[], bool],
    origins: OriginsOf | None,
) -> bool:
    """False if there was no time for all of it."""
    for batch in due_batches(shard, now=now):
        if not has_time():
            return False
        try:
            others = _delete_known(read_due(batch), report, pool, now)
        except TryAgain:
            report.failed += 1
            continue
        for swept in pool.map(lambda item: _sweep_item(item, now, has_time, origins), others):
            report.add(swept)
    return True


def _reconcile_allotments(report: SweepReport, now: datetime, has_time: Callable[[], bool]) -> None:
    """Count what is stored into `MaxStoredBytes`, or collect what owners have left over when little is left."""
    try:
        if not must_reconcile_all():
            return
        for owner in owners_with_totals(now=now):
            if not has_time():
                return
            reconcile_allotment(owner)
        set_counted()
    except TryAgain:
        report.failed += 1


def _delete_known(
    due: Sequence[Due], report: SweepReport, pool: ThreadPoolExecutor, now: datetime
) -> list[Due]:
    """Delete expired artifacts, and discarded objects of known versions, with one call to S3. Returns the other items.

    The objects go first. A crash leaves items of the index, which no reader sees any more, and the next sweep repeats
    it. Then it can leave totals that are too high until their check.
    """
    expired: list[Artifact] = []
    discarded: list[Discarded] = []
    others: list[Due] = []
    versions: dict[Upload, str] = {}
    for item in due:
        match item:
            case Artifact() if visible(item, now):
                others.append(item)
            case Artifact(upload=upload):
                if index.unused_from(expires_at(item)) > now:
                    # Someone may still download it.
                    continue
                if version := index.known_version(item, now):
                    expired.append(item)
                    versions[upload] = version
                else:
                    others.append(item)
            case Discarded(version=str()):
                discarded.append(item)
            case _:
                others.append(item)
    published = index.read_artifacts([item.upload for item in discarded])
    others += [item for item in discarded if item.upload in published]
    known = [item for item in discarded if item.upload not in published]
    versions |= {item.upload: item.version for item in known if item.version is not None}
    failed = storage.delete_versions([*versions.items()])
    report.failed += len(failed)
    notes = [partial(delete_discarded, item) for item in known if item.upload not in failed]
    report.objects_deleted += sum(_do_all(notes, report, pool))
    expired = [item for item in expired if item.upload not in failed]
    deletions = [partial(index.delete_expired, item, now=now) for item in expired]
    done = _do_all(deletions, report, pool)
    gone = [item for item, deleted in zip(expired, done, strict=True) if deleted]
    report.expired += len(gone)
    _subtract(gone)
    return others


def _do_all(
    deletions: Sequence[Callable[[], bool]], report: SweepReport, pool: ThreadPoolExecutor
) -> list[bool]:
    """Whether each deletes something. One that fails is counted, and left to the next sweep."""

    def do(delete: Callable[[], bool]) -> bool | None:
        try:
            return delete()
        except TryAgain:
            return None

    results = list(pool.map(do, deletions))
    report.failed += results.count(None)
    return [bool(result) for result in results]


def _subtract(artifacts: Sequence[Artifact]) -> None:
    sizes: dict[tuple[str, bool], list[int]] = {}
    for artifact in artifacts:
        owner, scoped = artifact.upload.owner, artifact.upload.scope is not None
        sizes.setdefault((owner, scoped), []).append(artifact.size_bytes)
    for (owner, scoped), each in sizes.items():
        add_to_totals(owner, -sum(each), -len(each), scoped=scoped)


def _sweep_item(
    item: Due, now: datetime, has_time: Callable[[], bool], origins: OriginsOf | None
) -> SweepReport:
    report = SweepReport()
    try:
        _process(item, report, now, has_time, origins)
    except TryAgain:
        report.failed += 1
    return report


def _process(
    item: Due,
    report: SweepReport,
    now: datetime,
    has_time: Callable[[], bool],
    origins: OriginsOf | None,
) -> None:
    match item:
        case Artifact() as artifact if visible(artifact, now):
            _sweep_used(artifact, report, now)
        case Artifact() as artifact:
            storage.delete(artifact.upload)
            if index.delete_expired(artifact, now=now):
                _subtract([artifact])
                report.expired += 1
        case PendingUpload() as pending:
            if storage.head(pending.upload) is None:
                report.uploads_given_up += index.delete_pending(pending)
            else:
                publish(pending.upload, now=now)
                report.uploads_published += 1
        case Discarded(upload) as discarded:
            if _keeps_published(upload):
                return
            storage.delete(upload)
            may_arrive_until = upload.begun_at + index.PENDING_LIFETIME
            if upload.writer is None or now > may_arrive_until:
                delete_discarded(discarded)
                report.objects_deleted += 1
            else:
                # Its upload URL is still valid, so the client can write the object again.
                postpone_discarded(upload, until=may_arrive_until)
        case Removal() as removal:
            done = carry_out(removal, now=now, has_time=has_time)
            report.removals += done.finished
        case DueTotals() as due_totals:
            _move_uploads_to_usage(due_totals, now)
            set_stored(due_totals.owner, now.date(), due_totals.totals.stored)
            check = CheckJob(
                owner=due_totals.owner,
                now_ms=to_ms(now),
                totals=replace(due_totals.totals, uploads={}),
                drift_before=due_totals.drift_before,
            )
            report.add(check_totals(check, has_time=has_time, origins=origins))


def _sweep_used(artifact: Artifact, report: SweepReport, now: datetime) -> None:
    """Sweep an artifact that was used, or whose retention was extended, after the item was written."""
    if former := artifact.former_version:
        storage.delete(artifact.upload, keep=artifact.version)
        index.end_renewal(artifact, former)
    elif not needs_renewal(artifact, now):
        postpone_sweep(artifact, now=now)
    elif version := storage.copy(artifact):
        report.renewed += index.renew(artifact, version, at=now)
    else:
        delete_from_index(artifact, now=now)


def _keeps_published(discarded: Upload) -> bool:
    """Keep the object of an upload that was discarded and then published. Returns whether it is one.

    S3's event can publish an upload before its function does. If it is evicted or deleted in between, the function
    publishes it again.
    """
    if discarded.writer is not None:
        # A direct upload is only published if it was not discarded.
        return False
    published = index.read_entry(discarded.owner, discarded.hash, discarded.scope).artifact
    return (
        published is not None
        and published.upload.id == discarded.id
        and delete_discarded_if_published(discarded)
    )


def _move_uploads_to_usage(due: DueTotals, now: datetime) -> None:
    """Move the upload figures of past days from the totals to the usage table. A crash can leave them in both."""
    for day, uploads in due.totals.uploads.items():
        if day < now.date() - _UPLOADS_FINAL_AFTER:
            set_uploads(due.owner, day, uploads)
            delete_uploads(due.owner, day)


def check_totals(
    job: CheckJob,
    *,
    has_time: Callable[[], bool] = lambda: True,
    origins: OriginsOf | None = None,
) -> SweepReport:
    """Compare the totals with the index. Correct a drift that two checks, an hour apart, both found.

    A drift seen once can be an upload that is counted but not published yet. One that a crash left does not go away.
    A sum that takes longer than this call goes on in the next one.
    """
    now = from_ms(job.now_ms)
    of_owner = None if origins is None else origins(job.owner)
    report, collector = SweepReport(), Collector(now, of_owner)
    if job.packed:
        collector.unpack(job.packed)
    for items, after in checks.index_pages(job.owner, after=job.after):
        collector.add(items)
        if after is not None and not has_time():
            # So that the next sweep does not begin it again.
            next_at = now + _A_DAY_LATER
            checks.check_totals(job.owner, correct=False, drift=job.drift_before, next_at=next_at)
            packed, calls = collector.packed(), job.calls + 1
            if calls <= MOST_CHECKS and len(packed) <= _MOST_PACKED:
                report.rest.append(replace(job, packed=packed, after=after, calls=calls))
            else:
                report.totals_too_large += 1
            return report
    _compare(job, collector, report, now)
    if collector.unlisted and settings().evicts:
        list_all(job.owner, has_time=has_time)
    if collector.undated:
        list_undated(job.owner, has_time=has_time)
    reconcile_allotment(job.owner)
    return report


def _compare(job: CheckJob, collector: Collector, report: SweepReport, now: datetime) -> None:
    summed = collector.totals
    drift = Totals(
        size_bytes=job.totals.size_bytes - summed.size_bytes,
        artifacts=job.totals.artifacts - summed.artifacts,
        scoped_bytes=job.totals.scoped_bytes - summed.scoped_bytes,
    )
    persists = drift != Totals() and drift == job.drift_before
    next_at = now + (_A_DAY_LATER if persists or drift == Totals() else timedelta(minutes=50))
    checks.check_totals(job.owner, correct=persists, drift=drift, next_at=next_at)
    checks.set_breakdown(job.owner, collector.breakdown())
    if is_team_id(job.owner):
        set_counts(job.owner, collector.scopes, now=now)
    report.totals_checked += 1
    if drift != Totals():
        report.totals_drifting += not persists
    if persists:
        report.totals_corrected += 1
        report.corrected_bytes += abs(drift.size_bytes)
        report.corrected_artifacts += abs(drift.artifacts)
