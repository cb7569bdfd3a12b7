"""Delete everything that one key, session or user wrote, or that is in one own scope, however much that is.

In place of the id of the writer, each function takes the id of the scope: their lengths differ, so no id is both.

The request only records the removal in the index, and the function RemoveArtifacts carries it out. If that invocation
is lost or runs out of time, the sweep finishes the work. It makes a second pass when no upload begun before the removal
can arrive any more: one in progress during the first pass can be published after that pass has gone by its hash.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from larder.actor import Actor
from larder.artifacts import finalize, jobs
from larder.artifacts.jobs import JobKind, RemovalJob
from larder.artifacts.models import Artifact, PendingUpload, Removal
from larder.artifacts.repository import index
from larder.artifacts.repository.sweep_queue import (
    add_removal,
    delete_removal,
    postpone_removal,
    read_removal,
)
from larder.audit import repository as audit
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts, submit
from larder.errors import TryAgain

_BATCH_SIZE = 100
"""Items between two checks of the time left. About a tenth of them are in progress at any moment."""

_CLOCK_SKEW = timedelta(seconds=1)
"""Clocks of instances differ by milliseconds. Without it, an upload made just before could count as later."""

_FUNCTION_TAKES = timedelta(minutes=20)
"""After this time the function has finished, or its invocation was lost."""

_LAST_PASS_AFTER = index.PENDING_LIFETIME + timedelta(hours=1)
"""How long after the request an upload that was begun before it can still arrive."""

Stored = Artifact | PendingUpload


@dataclass(slots=True)
class RemovalReport:
    """What one run deleted: artifacts, their bytes, and offers of uploads."""

    artifacts: int = 0
    size_bytes: int = 0
    offers: int = 0
    failed: int = 0
    finished: bool = True


def ask_removal(owner: str, writer: str, *, by: Actor | None, now: datetime) -> Entry:
    """Request the removal of all that this key, session or user has uploaded for the owner. Returns the audit entry.

    The cost does not depend on the number of artifacts. `by` is the caller, None for the operator. Raises TryAgain.
    """
    entry, removal = _record(owner, writer, by=by, now=now)
    with suppress(TryAgain):
        # If this fails, the sweep finds the recorded removal.
        job = RemovalJob(kind=JobKind.WRITTEN, owner=removal.owner, writer=removal.writer)
        jobs.hand_over(job)
    return entry


def delete_written_now(
    owner: str, writer: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Like `ask_removal`, but carries the removal out at once. For the operator, who waits for it.

    If it is interrupted, the sweep finishes it.
    """
    _, removal = _record(owner, writer, by=None, now=now)
    return carry_out(removal, now=now, has_time=has_time)


def do_job(
    owner: str, writer: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Carry out the removal that the job names. Does nothing if it is done already."""
    removal = read_removal(owner, writer)
    return RemovalReport() if removal is None else carry_out(removal, now=now, has_time=has_time)


def carry_out(
    removal: Removal, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Make one pass. Safe to run alongside another pass, and to repeat after an interrupted one."""

    def is_affected(item: Stored) -> bool:
        begun_before = item.upload.begun_at <= removal.asked_at + _CLOCK_SKEW
        return begun_before and _is_written_by(item, removal.writer)

    report = _delete_all(removal.owner, is_affected, now=now, has_time=has_time)
    last = now >= removal.asked_at + _LAST_PASS_AFTER
    if report.artifacts or (report.finished and not last):
        audit.add(
            make_entry(
                removal.owner,
                Action.REMOVAL_DONE,
                removal.writer,
                removal.by,
                artifacts=report.artifacts,
                size_bytes=report.size_bytes,
                now=now,
            )
        )
    if report.finished and last:
        delete_removal(removal)
    elif report.finished:
        postpone_removal(removal, until=removal.asked_at + _LAST_PASS_AFTER)
    return report


def delete_written(
    owner: str,
    *,
    writer: str | None,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> bool:
    """Delete what this key, session or user wrote for the owner; for None, everything that the owner stores.

    Also refuses uploads that were offered but have not arrived. Returns False if `has_time` stopped it or a store did
    not reply. Totals are correct at that point, and another call does the rest. Safe to run alongside uploads, reads,
    sweeps and itself. It can miss an upload that is published while it runs. The cost grows with the number of
    artifacts: use it for background work, never on a request.
    """
    return _delete_all(
        owner, lambda item: _is_written_by(item, writer), now=now, has_time=has_time
    ).finished


def _record(owner: str, writer: str, *, by: Actor | None, now: datetime) -> tuple[Entry, Removal]:
    removal = Removal(owner=owner, writer=writer, asked_at=now, by=by)
    entry = make_entry(owner, Action.REMOVAL_ASKED, writer, by, now=now)
    add_removal(removal, noting=entry, due_at=now + _FUNCTION_TAKES)
    return entry, removal


def _delete_all(
    owner: str,
    is_affected: Callable[[Stored], bool],
    *,
    now: datetime,
    has_time: Callable[[], bool],
) -> RemovalReport:
    report = RemovalReport()
    items = index.stored_by(owner)
    while batch := list(islice(items, _BATCH_SIZE)):
        if not has_time():
            report.finished = False
            return report
        deletions = [submit(_delete, item, is_affected, now) for item in batch if is_affected(item)]
        for deletion in deletions:
            try:
                deleted = deletion.result()
            except TryAgain:
                report.failed += 1
                report.finished = False
                continue
            match deleted:
                case Artifact():
                    report.artifacts += 1
                    report.size_bytes += deleted.size_bytes
                case PendingUpload():
                    report.offers += 1
    return report


def _delete(item: Stored, is_affected: Callable[[Stored], bool], now: datetime) -> Stored | None:
    """Returns what was deleted. Raises TryAgain if a concurrent write won every attempt."""
    current: Stored | None = item
    for attempt in attempts():
        if attempt:
            current = _read_current(item, is_affected)
        if current is None or _try_delete(current, now):
            return current
    raise TryAgain


def _try_delete(item: Stored, now: datetime) -> bool:
    if isinstance(item, Artifact):
        return finalize.delete_from_index(item, now=now)
    return index.discard_pending(item, now=now)


def _read_current(item: Stored, is_affected: Callable[[Stored], bool]) -> Stored | None:
    """What has replaced the item, if it must be deleted too: a newer upload, or the offered upload once published."""
    upload = item.upload
    entry = index.read_entry(upload.owner, upload.hash, upload.scope)
    current: Stored | None = entry.artifact
    if isinstance(item, PendingUpload) and entry.pending is not None:
        current = entry.pending
    return current if current is not None and is_affected(current) else None


def _is_written_by(item: Stored, writer: str | None) -> bool:
    if writer in (None, item.upload.scope):
        return True
    return item.writer is not None and item.writer.has_id(writer)
