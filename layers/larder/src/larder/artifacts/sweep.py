"""The sweep: deletes what has expired, and repairs what a crash has left."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from itertools import islice

from larder.artifacts import storage
from larder.artifacts.breakdown import Collector
from larder.artifacts.eviction import list_all
from larder.artifacts.expiry import needs_renewal, visible
from larder.artifacts.models import Artifact, PendingUpload, Totals, Upload
from larder.artifacts.publish import delete_from_index, publish
from larder.artifacts.records import Removal
from larder.artifacts.removals import carry_out
from larder.artifacts.repository import checks, index
from larder.artifacts.repository.allotments import (
    must_reconcile_all,
    reconcile_allotment,
    set_counted,
)
from larder.artifacts.repository.checks import OutOfTime, check_totals, delete_uploads, sum_index
from larder.artifacts.repository.pages import list_undated
from larder.artifacts.repository.scopes import set_counts
from larder.artifacts.repository.sweep_queue import (
    DueItem,
    DueTotals,
    delete_discarded,
    delete_discarded_if_published,
    due_items,
    owners_with_totals,
    postpone_discarded,
    postpone_sweep,
    read_due,
)
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


@dataclass(slots=True)
class SweepReport:
    """What one sweep did."""

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
    finished: bool = True
    # The fields below report checks. They change nothing, so they do not count when reports are compared.
    totals_checked: int = field(default=0, compare=False)
    totals_too_large: int = field(default=0, compare=False)
    """Owners with so many artifacts that time ran out before they were summed."""
    totals_drifting: int = field(default=0, compare=False)
    """Owners whose totals differ from the index for the first time. An upload in progress can be the reason."""
    corrected_bytes: int = field(default=0, compare=False)
    corrected_artifacts: int = field(default=0, compare=False)

    def add(self, other: "SweepReport") -> None:
        for counter in fields(self):
            if counter.name != "finished":
                both = getattr(self, counter.name) + getattr(other, counter.name)
                setattr(self, counter.name, both)


def sweep(
    *,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> SweepReport:
    """Delete expired artifacts, discarded objects, and offers of uploads that never arrived.

    Also compares each owner's totals with the index, once a day. Stops when `has_time` returns False; the next sweep
    continues. An item that fails is retried by the next sweep. Safe to run alongside requests and other sweeps.
    """
    report = SweepReport()
    _reconcile_allotments(report, now, has_time)
    items = due_items(now=now)
    # A separate pool: sweeping an item can itself use the shared threads for background calls.
    with ThreadPoolExecutor(max_workers=_SWEEP_THREADS) as pool:
        while batch := list(islice(items, 4 * _SWEEP_THREADS)):
            if not has_time():
                report.finished = False
                break
            for swept in pool.map(lambda due: _sweep_item(due, now, has_time), batch):
                report.add(swept)
    return report


def _reconcile_allotments(report: SweepReport, now: datetime, has_time: Callable[[], bool]) -> None:
    """Count what is stored into `MaxStoredBytes`, or collect what owners have left over when little is left."""
    try:
        if not must_reconcile_all():
            return
        for owner in owners_with_totals(now=now):
            if not has_time():
                report.finished = False
                return
            reconcile_allotment(owner)
        set_counted()
    except TryAgain:
        report.failed += 1


def _sweep_item(due: DueItem, now: datetime, has_time: Callable[[], bool]) -> SweepReport:
    report = SweepReport()
    try:
        _process(due, report, now, has_time)
    except TryAgain:
        report.failed += 1
    return report


def _process(
    due: DueItem, report: SweepReport, now: datetime, has_time: Callable[[], bool]
) -> None:
    match read_due(due):
        case Artifact() as artifact:
            _sweep_artifact(artifact, report, now)
        case PendingUpload() as pending:
            if storage.head(pending.upload) is None:
                report.uploads_given_up += index.delete_pending(pending)
            else:
                publish(pending.upload, now=now)
                report.uploads_published += 1
        case Upload() as discarded:
            if _keeps_published(discarded):
                return
            storage.delete(discarded)
            index.delete_body(discarded)
            may_arrive_until = discarded.begun_at + index.PENDING_LIFETIME
            if discarded.writer is None or now > may_arrive_until:
                delete_discarded(discarded)
                report.objects_deleted += 1
            else:
                # Its upload URL is still valid, so the client can write the object again.
                postpone_discarded(discarded, until=may_arrive_until)
        case Removal() as removal:
            done = carry_out(removal, now=now, has_time=has_time)
            report.removals += done.finished
        case DueTotals() as due_totals:
            _move_uploads_to_usage(due_totals, now)
            set_stored(due_totals.owner, now.date(), due_totals.totals.stored)
            _check_totals(due_totals, report, now, has_time)
            reconcile_allotment(due_totals.owner)
        case None:
            pass


def _sweep_artifact(artifact: Artifact, report: SweepReport, now: datetime) -> None:
    if not visible(artifact, now):
        report.expired += delete_from_index(artifact, now=now)
    elif former := artifact.former_version:
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


def _check_totals(
    due: DueTotals,
    report: SweepReport,
    now: datetime,
    has_time: Callable[[], bool],
) -> None:
    """Compare the totals with the index. Correct a drift that two checks, an hour apart, both found.

    A drift seen once can be an upload that is counted but not published yet. One that a crash left does not go away.
    An owner whose index is too large for one sweep is next checked after a day, so that later sweeps can finish the
    other items.
    """
    collector = Collector(now)
    try:
        summed = sum_index(
            due.owner,
            has_time=has_time,
            see=lambda item: collector.add(checks.seen(item)),
            seen=checks.ATTRIBUTES,
        )
    except OutOfTime:
        next_at = now + _A_DAY_LATER
        check_totals(due.owner, correct=False, drift=due.drift_before, next_at=next_at)
        report.totals_too_large += 1
        return
    drift = Totals(
        size_bytes=due.totals.size_bytes - summed.totals.size_bytes,
        artifacts=due.totals.artifacts - summed.totals.artifacts,
        scoped_bytes=due.totals.scoped_bytes - summed.totals.scoped_bytes,
    )
    persists = drift != Totals() and drift == due.drift_before
    next_at = now + (_A_DAY_LATER if persists or drift == Totals() else timedelta(minutes=50))
    check_totals(due.owner, correct=persists, drift=drift, next_at=next_at)
    checks.set_breakdown(due.owner, collector.breakdown())
    if is_team_id(due.owner):
        set_counts(due.owner, summed.scopes, now=now)
    report.totals_checked += 1
    if drift != Totals():
        report.totals_drifting += not persists
    if persists:
        report.totals_corrected += 1
        report.corrected_bytes += abs(drift.size_bytes)
        report.corrected_artifacts += abs(drift.artifacts)
    if summed.unlisted and settings().evicts:
        list_all(due.owner, has_time=has_time)
    if summed.undated:
        list_undated(due.owner, has_time=has_time)
