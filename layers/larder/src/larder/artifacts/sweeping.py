"""The sweep: what is over is cleared away, what a crash has left is put right."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from itertools import islice

from larder.artifacts import storage
from larder.artifacts.eviction import list_all
from larder.artifacts.models import Artifact, PendingUpload, Removal, Totals, Upload
from larder.artifacts.removal import carry_out
from larder.artifacts.repository import index
from larder.artifacts.repository.due import (
    DueItem,
    DueTotals,
    due_items,
    forget_discarded,
    postpone_discarded,
    postpone_sweep,
    read_due,
)
from larder.artifacts.repository.totals import OutOfTime, check_totals, forget_uploads, sum_index
from larder.artifacts.retention import visible
from larder.artifacts.settling import commit, forget
from larder.errors import TryAgain
from larder.settings import settings
from larder.usage.service import set_uploads

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


def sweep(
    *,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> SweepReport:
    """Clear away what is over: expired artifacts, discarded objects, uploads that never came.

    Also compares each owner's totals with the index, once a day. Begins no further items when `has_time` says so; the
    next sweep goes on. An item that fails is left to the next sweep too. Safe beside requests and other sweeps.
    """
    report = SweepReport()
    items = due_items(now=now)
    # Threads of its own: what an item takes may itself use those for calls in the background.
    with ThreadPoolExecutor(max_workers=_SWEPT_AT_ONCE) as pool:
        while some := list(islice(items, 4 * _SWEPT_AT_ONCE)):
            if not has_time():
                report.finished = False
                break
            for swept in pool.map(lambda due: _sweep_item(due, now, has_time), some):
                report.add(swept)
    return report


def _sweep_item(due: DueItem, now: datetime, has_time: Callable[[], bool]) -> SweepReport:
    report = SweepReport()
    try:
        _clear_away(due, report, now, has_time)
    except TryAgain:
        report.failed += 1
    return report


def _clear_away(
    due: DueItem, report: SweepReport, now: datetime, has_time: Callable[[], bool]
) -> None:
    match read_due(due):
        case Artifact() as artifact:
            if visible(artifact, now):
                postpone_sweep(artifact)
            else:
                report.expired += forget(artifact, now=now)
        case PendingUpload() as pending:
            if storage.head(pending.upload) is None:
                report.uploads_given_up += index.drop_pending(pending)
            else:
                commit(pending.upload, now=now)
                report.uploads_settled += 1
        case Upload() as discarded:
            storage.delete(discarded)
            may_come_till = discarded.begun_at + index.PENDING_LIFETIME
            if discarded.writer is None or now > may_come_till:
                forget_discarded(discarded)
                report.objects_deleted += 1
            else:
                # The URL that it went to may take it once more.
                postpone_discarded(discarded, until=may_come_till)
        case Removal() as removal:
            done = carry_out(removal, now=now, has_time=has_time)
            report.removals += done.finished
        case DueTotals() as due_totals:
            _hand_uploads_over(due_totals, now)
            _check_totals(due_totals, report, now, has_time)
        case None:
            pass


def _hand_uploads_over(due: DueTotals, now: datetime) -> None:
    """Give the uploads of days that nothing counts to any more to the usage table. A crash leaves them in both."""
    for day, uploads in due.totals.uploads.items():
        if day < now.date() - _STILL_COUNTING:
            set_uploads(due.owner, day, uploads)
            forget_uploads(due.owner, day)


def _check_totals(
    due: DueTotals,
    report: SweepReport,
    now: datetime,
    has_time: Callable[[], bool],
) -> None:
    """Compare the totals with the index, and correct them by a drift that two checks an hour apart have seen alike.

    What differs at one moment may be an upload that is counted and not published yet; what a crash left stays. An owner
    whose index is too large for one sweep is left alone for a day, so that the next sweeps do the rest of the work.
    """
    try:
        summed = sum_index(due.owner, has_time=has_time)
    except OutOfTime:
        next_at = now + timedelta(days=1)
        check_totals(due.owner, correct=False, drift=due.drift_before, next_at=next_at)
        report.totals_too_large += 1
        return
    drift = Totals(
        size_bytes=due.totals.size_bytes - summed.totals.size_bytes,
        artifacts=due.totals.artifacts - summed.totals.artifacts,
    )
    stays = drift != Totals() and drift == due.drift_before
    next_at = now + (timedelta(days=1) if stays or drift == Totals() else timedelta(minutes=50))
    check_totals(due.owner, correct=stays, drift=drift, next_at=next_at)
    report.totals_checked += 1
    if drift != Totals():
        report.totals_drifting += not stays
    if stays:
        report.totals_corrected += 1
        report.corrected_bytes += abs(drift.size_bytes)
        report.corrected_artifacts += abs(drift.artifacts)
    if summed.unlisted and settings().evicts:
        list_all(due.owner, has_time=has_time)
