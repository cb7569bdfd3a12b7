"""Removal of artifacts because somebody asked for it, not because their time is over."""

from collections.abc import Callable
from datetime import datetime
from itertools import islice

from larder.artifacts import repository, service
from larder.artifacts.models import Artifact, PendingUpload
from larder.concurrency import in_background, wait_before_retry
from larder.errors import TryAgain

_ATTEMPTS = 8
_AT_ONCE = 100
"""Items between two looks at the time that is left. A tenth of them is under way at any moment."""

Stored = Artifact | PendingUpload


def remove_written(
    owner: str,
    *,
    writer: str | None,
    now: datetime,
    may_go_on: Callable[[], bool] = lambda: True,
) -> bool:
    """Remove what was written for the owner by this key, session or user; with None, everything that the owner stores.

    Uploads that were offered and have not come yet are refused from now on. Returns True when it got to the end, False
    when `may_go_on` stopped it or a store did not answer: what is removed is removed and counted out, and another call
    does the rest. Safe beside uploads, reads, sweeps and itself. One that is published while this runs may be missed.
    The cost grows with the number of artifacts: for background work, never on a request.
    """
    finished = True
    items = repository.stored_by(owner)
    while some := list(islice(items, _AT_ONCE)):
        if not may_go_on():
            return False
        removals = [
            in_background(_remove, item, writer, now) for item in some if _written(item, writer)
        ]
        for removal in removals:
            try:
                removal.result()
            except TryAgain:
                finished = False
    return finished


def _remove(item: Stored, writer: str | None, now: datetime) -> None:
    """Raises TryAgain when others always came first."""
    standing: Stored | None = item
    for attempt in range(_ATTEMPTS):
        if standing is None or _take_out(standing, now):
            return
        wait_before_retry(attempt)
        standing = _in_place_of(item, writer)
    raise TryAgain


def _take_out(item: Stored, now: datetime) -> bool:
    if isinstance(item, Artifact):
        return service.forget(item, now=now)
    return repository.refuse(item, now=now)


def _in_place_of(item: Stored, writer: str | None) -> Stored | None:
    """What stands there now that has to go too: another upload of the hash, or the offered one, which has come."""
    upload = item.upload
    entry = repository.read_entry(upload.owner, upload.hash)
    standing: Stored | None = entry.artifact
    if isinstance(item, PendingUpload) and entry.pending is not None:
        standing = entry.pending
    return standing if standing is not None and _written(standing, writer) else None


def _written(item: Stored, writer: str | None) -> bool:
    return writer is None or (item.writer is not None and item.writer.goes_by(writer))
