"""Removal of what somebody wrote, however much that is.

Whoever asks gets an answer at once: the removal is noted in the index, and the function RemoveArtifacts does it. Should
that be lost, or run out of time, the sweep does the rest. It looks a second time when no upload that was begun before
can come any more: one that was under way in the first pass may have been published behind it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from larder.artifacts import removal_jobs, settling
from larder.artifacts.models import Artifact, PendingUpload, Removal, Writer
from larder.artifacts.removal_jobs import JobKind, RemovalJob
from larder.artifacts.repository import index
from larder.artifacts.repository.due import (
    add_removal,
    forget_removal,
    postpone_removal,
    read_removal,
)
from larder.audit import repository as audit
from larder.audit.models import OPERATOR, Action, Actor, Entry
from larder.audit.service import make_entry
from larder.concurrency import attempts, submit
from larder.errors import TryAgain

_AT_ONCE = 100
"""Items between two looks at the time that is left. A tenth of them is under way at any moment."""

_CLOCKS_DIFFER = timedelta(seconds=1)
"""Instances' clocks do, by milliseconds: what was uploaded a moment before must not pass for later."""

_FUNCTION_TAKES = timedelta(minutes=20)
"""After this the function has done it, or lost it."""

_LAST_LOOK = index.PENDING_LIFETIME + timedelta(hours=1)
"""How long after a removal was asked for nothing can come any more that was begun before."""

Stored = Artifact | PendingUpload


@dataclass(slots=True)
class RemovalReport:
    """What one run removed: artifacts, their bytes, and offers that were taken back."""

    artifacts: int = 0
    size_bytes: int = 0
    offers: int = 0
    failed: int = 0
    finished: bool = True


def ask_removal(owner: str, writer: str, *, by: Writer | None, now: datetime) -> Entry:
    """Have all go that this key, session or user has uploaded to the owner until now. Returns the entry of the audit.

    Costs the same however much there is. `by` is who asks; None for the operator. Raises TryAgain.
    """
    entry, removal = _note(owner, writer, by=by, now=now)
    with suppress(TryAgain):
        # The sweep finds what is noted.
        job = RemovalJob(kind=JobKind.WRITTEN, owner=removal.owner, writer=removal.writer)
        removal_jobs.hand_over(job)
    return entry


def remove_now(
    owner: str, writer: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """The same for the operator, who waits for it. Cut off, it is the sweep's to finish."""
    _, removal = _note(owner, writer, by=None, now=now)
    return carry_out(removal, now=now, has_time=has_time)


def do_job(
    owner: str, writer: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """What such a job asks for; nothing when it has been done."""
    removal = read_removal(owner, writer)
    return RemovalReport() if removal is None else carry_out(removal, now=now, has_time=has_time)


def carry_out(
    removal: Removal, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> RemovalReport:
    """One pass. Safe beside another one, and after any part of one."""

    def goes(item: Stored) -> bool:
        by_then = item.upload.begun_at <= removal.asked_at + _CLOCKS_DIFFER
        return by_then and _written(item, removal.writer)

    report = _remove_all(removal.owner, goes, now=now, has_time=has_time)
    last = now >= removal.asked_at + _LAST_LOOK
    if report.artifacts or (report.finished and not last):
        audit.add(
            make_entry(
                removal.owner,
                Action.REMOVAL_DONE,
                removal.writer,
                actor_of(removal.by),
                artifacts=report.artifacts,
                size_bytes=report.size_bytes,
                now=now,
            )
        )
    if report.finished and last:
        forget_removal(removal)
    elif report.finished:
        postpone_removal(removal, until=removal.asked_at + _LAST_LOOK)
    return report


def remove_written(
    owner: str,
    *,
    writer: str | None,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> bool:
    """Remove what was written for the owner by this key, session or user; with None, everything that the owner stores.

    Uploads that were offered and have not come yet are refused from now on. Returns True when it got to the end, False
    when `has_time` stopped it or a store did not answer: what is removed is removed and counted out, and another call
    does the rest. Safe beside uploads, reads, sweeps and itself. One that is published while this runs may be missed.
    The cost grows with the number of artifacts: for background work, never on a request.
    """
    return _remove_all(
        owner, lambda item: _written(item, writer), now=now, has_time=has_time
    ).finished


def _note(owner: str, writer: str, *, by: Writer | None, now: datetime) -> tuple[Entry, Removal]:
    removal = Removal(owner=owner, writer=writer, asked_at=now, by=by)
    entry = make_entry(owner, Action.REMOVAL_ASKED, writer, actor_of(by), now=now)
    add_removal(removal, noting=entry, due_at=now + _FUNCTION_TAKES)
    return entry, removal


def actor_of(by: Writer | None) -> Actor:
    """Who removes, as the audit names them; None is the operator."""
    return OPERATOR if by is None else Actor(user_id=by.user_id, credential_id=by.id)


def _remove_all(
    owner: str,
    goes: Callable[[Stored], bool],
    *,
    now: datetime,
    has_time: Callable[[], bool],
) -> RemovalReport:
    report = RemovalReport()
    items = index.stored_by(owner)
    while some := list(islice(items, _AT_ONCE)):
        if not has_time():
            report.finished = False
            return report
        removals = [submit(_remove, item, goes, now) for item in some if goes(item)]
        for removal in removals:
            try:
                removed = removal.result()
            except TryAgain:
                report.failed += 1
                report.finished = False
                continue
            match removed:
                case Artifact():
                    report.artifacts += 1
                    report.size_bytes += removed.size_bytes
                case PendingUpload():
                    report.offers += 1
    return report


def _remove(item: Stored, goes: Callable[[Stored], bool], now: datetime) -> Stored | None:
    """Returns what was removed. Raises TryAgain when others always came first."""
    standing: Stored | None = item
    for attempt in attempts():
        if attempt:
            standing = _in_place_of(item, goes)
        if standing is None or _take_out(standing, now):
            return standing
    raise TryAgain


def _take_out(item: Stored, now: datetime) -> bool:
    if isinstance(item, Artifact):
        return settling.forget(item, now=now)
    return index.refuse(item, now=now)


def _in_place_of(item: Stored, goes: Callable[[Stored], bool]) -> Stored | None:
    """What stands there now that has to go too: another upload of the hash, or the offered one, which has come."""
    upload = item.upload
    entry = index.read_entry(upload.owner, upload.hash)
    standing: Stored | None = entry.artifact
    if isinstance(item, PendingUpload) and entry.pending is not None:
        standing = entry.pending
    return standing if standing is not None and goes(standing) else None


def _written(item: Stored, writer: str | None) -> bool:
    return writer is None or (item.writer is not None and item.writer.goes_by(writer))
