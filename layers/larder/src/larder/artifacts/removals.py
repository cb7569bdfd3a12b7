"""Delete everything that one key, session or user wrote, or that is in one own scope, or of a time, or all of it.

However much that is. `target` says which (`selection`).

The request only records the removal in the index, and the function RemoveArtifacts carries it out. If that invocation
is lost or runs out of time, the sweep finishes the work. It makes a second pass when no upload begun before the removal
can arrive any more: one in progress during the first pass can be published after that pass has gone by its hash.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from larder.actor import Actor
from larder.artifacts import jobs, publish
from larder.artifacts.jobs import JobKind, RemovalJob
from larder.artifacts.models import Artifact, PendingUpload
from larder.artifacts.records import Removal, RemovalPage
from larder.artifacts.repository import checks, index, refusals, scopes
from larder.artifacts.repository.allotments import delete_with_allotment
from larder.artifacts.repository.sweep_queue import (
    add_removal,
    add_removed,
    delete_removal,
    postpone_removal,
    read_removal,
    read_removals,
)
from larder.artifacts.selection import EVERYTHING, Removable, is_in_target
from larder.audit import repository as audit
from larder.audit.models import Action, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts, submit
from larder.errors import TryAgain
from larder.usage import service as usage

_BATCH_SIZE = 100
"""Items between two checks of the time left. About a tenth of them are in progress at any moment."""

_CLOCK_SKEW = timedelta(seconds=1)
"""Clocks of instances differ by milliseconds. Without it, an upload made just before could count as later."""

_FUNCTION_TAKES = timedelta(minutes=20)
"""After this time the function has finished, or its invocation was lost."""

UPLOADS_ARE_OVER_AFTER = index.PENDING_LIFETIME + timedelta(hours=1)
"""How long after a removal or a deletion an upload that was begun before it can still arrive."""


@dataclass(slots=True)
class RemovalReport:
    """What one run deleted: artifacts, their bytes, and offers of uploads."""

    artifacts: int = 0
    size_bytes: int = 0
    offers: int = 0
    failed: int = 0
    finished: bool = True


def ask_removal(owner: str, target: str, *, by: Actor | None, now: datetime) -> Entry:
    """Request the removal of the target from what the owner stores. Returns the audit entry.

    The cost does not depend on the number of artifacts. `by` is the caller, None for the operator. Raises TryAgain.
    """
    entry, removal = _record(owner, target, by=by, now=now)
    with suppress(TryAgain):
        # If this fails, the sweep finds the recorded removal.
        job = RemovalJob(kind=JobKind.REMOVAL, owner=removal.owner, target=removal.target)
        jobs.hand_over(job)
    return entry


def delete_target_now(
    owner: str, target: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Like `ask_removal`, but carries the removal out at once. For the operator, who waits for it.

    If it is interrupted, the sweep finishes it.
    """
    _, removal = _record(owner, target, by=None, now=now)
    return carry_out(removal, now=now, has_time=has_time)


def do_job(
    owner: str, target: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Carry out the removal that the job names. Does nothing if it is done already."""
    removal = read_removal(owner, target)
    return RemovalReport() if removal is None else carry_out(removal, now=now, has_time=has_time)


def open_removals(owner: str, *, after: str, limit: int) -> RemovalPage:
    """A page of the owner's removals whose last pass is not over, which takes a day. `after` is empty at first."""
    return read_removals(owner, after=after, limit=limit)


def carry_out(
    removal: Removal, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """Make one pass. Safe to run alongside another pass, and to repeat after an interrupted one."""

    def is_affected(item: Removable) -> bool:
        begun_before = item.upload.begun_at <= removal.asked_at + _CLOCK_SKEW
        return begun_before and is_in_target(item, removal.target)

    def note(artifacts: int, size_bytes: int) -> None:
        # Readers see it as progress. An error does not stop the removal.
        with suppress(TryAgain):
            add_removed(removal, artifacts=artifacts, size_bytes=size_bytes)

    report = _delete_all(removal.owner, is_affected, now=now, has_time=has_time, note=note)
    last = now >= removal.asked_at + UPLOADS_ARE_OVER_AFTER
    if report.artifacts or (report.finished and not last):
        audit.add(
            make_entry(
                removal.owner,
                Action.REMOVAL_DONE,
                removal.target,
                removal.by,
                artifacts=report.artifacts,
                size_bytes=report.size_bytes,
                now=now,
            )
        )
    if report.finished and last:
        delete_removal(removal)
    elif report.finished:
        postpone_removal(removal, until=removal.asked_at + UPLOADS_ARE_OVER_AFTER, passed_at=now)
    return report


def delete_target(
    owner: str,
    target: str,
    *,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> bool:
    """Delete the target from what the owner stores.

    Also refuses uploads that were offered but have not arrived. Returns False if `has_time` stopped it or a store did
    not reply. Totals are correct at that point, and another call does the rest. Safe to run alongside uploads, reads,
    sweeps and itself. It can miss an upload that is published while it runs. The cost grows with the number of
    artifacts: use it for background work, never on a request.
    """
    return _delete_all(
        owner, lambda item: is_in_target(item, target), now=now, has_time=has_time
    ).finished


def delete_owner_data(owner: str, *, now: datetime, has_time: Callable[[], bool]) -> bool:
    """Delete what a deleted team stored, or a deleted user without a team: artifacts one by one, then the records of
    scopes and refused uploads, usage figures and totals.

    Returns False if time ran out, or if the totals are not zero yet. Call it again then: the daily check corrects the
    totals. Safe to repeat after an interrupted call, and safe to run in parallel.
    """
    gone = (
        delete_target(owner, EVERYTHING, now=now, has_time=has_time)
        and scopes.delete_all(owner, has_time=has_time)
        and refusals.delete_all(owner, has_time=has_time)
        and usage.delete_usage(owner, has_time=has_time)
        and delete_with_allotment(owner)
    )
    if gone:
        # After the totals, because the sweep writes it at their check.
        checks.delete_breakdown(owner)
    return gone


def _record(owner: str, target: str, *, by: Actor | None, now: datetime) -> tuple[Entry, Removal]:
    removal = Removal(owner=owner, target=target, asked_at=now, by=by)
    entry = make_entry(owner, Action.REMOVAL_ASKED, target, by, now=now)
    add_removal(removal, noting=entry, due_at=now + _FUNCTION_TAKES)
    return entry, removal


def _delete_all(
    owner: str,
    is_affected: Callable[[Removable], bool],
    *,
    now: datetime,
    has_time: Callable[[], bool],
    note: Callable[[int, int], None] = lambda _artifacts, _size_bytes: None,
) -> RemovalReport:
    """`note` gets the number and the bytes of the artifacts that each batch deleted, if there are any."""
    report = RemovalReport()
    items = index.stored_by(owner)
    while batch := list(islice(items, _BATCH_SIZE)):
        if not has_time():
            report.finished = False
            return report
        deletions = [submit(_delete, item, is_affected, now) for item in batch if is_affected(item)]
        before = replace(report)
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
        if report.artifacts > before.artifacts:
            note(report.artifacts - before.artifacts, report.size_bytes - before.size_bytes)
    return report


def _delete(
    item: Removable, is_affected: Callable[[Removable], bool], now: datetime
) -> Removable | None:
    """Returns what was deleted. Raises TryAgain if a concurrent write won every attempt."""
    current: Removable | None = item
    for attempt in attempts():
        if attempt:
            current = _read_current(item, is_affected)
        if current is None or _try_delete(current, now):
            return current
    raise TryAgain


def _try_delete(item: Removable, now: datetime) -> bool:
    if isinstance(item, Artifact):
        return publish.delete_from_index(item, now=now)
    return index.discard_pending(item, now=now)


def _read_current(item: Removable, is_affected: Callable[[Removable], bool]) -> Removable | None:
    """What has replaced the item, if it must be deleted too: a newer upload, or the offered upload once published."""
    upload = item.upload
    entry = index.read_entry(upload.owner, upload.hash, upload.scope)
    current: Removable | None = entry.artifact
    if isinstance(item, PendingUpload) and entry.pending is not None:
        current = entry.pending
    return current if current is not None and is_affected(current) else None
