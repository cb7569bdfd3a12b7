"""Reserve storage quota: Larder counts an artifact into the owner's totals before it publishes the artifact."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from larder.artifacts.models import Artifact, Refusal, Totals, View
from larder.artifacts.repository.totals import (
    add_to_totals,
    scope_share,
    scoped_share,
    try_add_to_totals,
)
from larder.concurrency import in_parallel
from larder.errors import ScopesFull, StorageFull
from larder.settings import settings
from larder.usage.uploads import Uploads

_ROUNDS = 4
"""How often an upload that may evict tries to reserve. Parallel uploads may take the space that it frees."""


@dataclass(slots=True, kw_only=True)
class Reservation:
    """Whether there is space for an artifact. Set `kept` when the artifact is published.

    `storage_full` says that not the quota refused the artifact, but `MaxStoredBytes`. `scopes_full` says that there is
    no space that own scopes may take.
    `counted_on` is the day whose uploads include the artifact. None for an artifact that is not new. `view` is the
    uploader's.
    """

    artifact: Artifact
    replaces: Artifact | None
    counted_on: date | None
    view: View
    granted: bool = False
    storage_full: bool = False
    scopes_full: bool = False
    kept: bool = False

    @property
    def growth(self) -> tuple[int, int]:
        """The bytes and artifacts by which the totals grow."""
        if self.replaces is None:
            return self.artifact.size_bytes, 1
        return self.artifact.size_bytes - self.replaces.size_bytes, 0

    @property
    def refusal(self) -> Refusal:
        """Why it is not granted."""
        if self.storage_full:
            return Refusal.STORAGE_FULL
        return Refusal.SCOPES_FULL if self.scopes_full else Refusal.QUOTA_FULL

    @property
    def shrinks(self) -> bool:
        """Whether the artifact is smaller than the one it replaces."""
        return self.growth[0] < 0

    def count(self, *, times: int = 1) -> None:
        """Count the artifact, or with -1 uncount it, without limits. Raises TryAgain."""
        size_bytes, artifacts = self.growth
        add_to_totals(
            self.artifact.upload.owner,
            times * size_bytes,
            times * artifacts,
            scoped=self.artifact.upload.scope is not None,
            uploaded=self._uploaded(times),
        )

    def try_count(self) -> Totals | None:
        """Count the artifact within the limits. Returns None, and counts nothing, if it would exceed the quota.

        Returns the new totals. Raises ScopesFull, StorageFull, TryAgain.
        """
        size_bytes, artifacts = self.growth
        return try_add_to_totals(
            self.artifact.upload.owner,
            size_bytes,
            artifacts,
            quota_bytes=self.view.quota_bytes,
            scoped=self.artifact.upload.scope is not None,
            uploaded=self._uploaded(1),
            draw=None if self.counted_on is None else _draw,
        )

    def _uploaded(self, times: int) -> tuple[date, Uploads] | None:
        if self.counted_on is None:
            return None
        uploads = Uploads(count=times, size_bytes=times * self.artifact.size_bytes)
        return self.counted_on, uploads


def _draw(*args: Any, **more: Any) -> Totals | None:
    # Imported here: few uploads draw bytes, and requests start faster without it.
    from larder.artifacts.repository.allotments import draw

    return draw(*args, **more)


def can_fit(artifact: Artifact, view: View) -> bool:
    """Whether an eviction could free enough space. True without evictions: then the totals decide."""
    quota_bytes = view.quota_bytes
    return not settings().evicts or quota_bytes is None or artifact.size_bytes <= quota_bytes


def free_bytes(totals: Totals, *, replaces: Artifact | None, view: View) -> int:
    """How many bytes the largest upload has that may still fit: for a deployment that evicts, into an empty cache."""
    most, quota_bytes = settings().max_upload_bytes, view.quota_bytes
    if quota_bytes is None:
        return most
    used, freed = totals, 0 if replaces is None else replaces.size_bytes
    if settings().evicts:
        used, freed = Totals(), 0
    free = quota_bytes - used.size_bytes
    if view.scope is not None:
        free = min(free, scoped_share(quota_bytes) - used.scoped_bytes, scope_share(quota_bytes))
    return max(0, min(most, free + freed))


@contextmanager
def reservation(
    artifact: Artifact,
    replaces: Artifact | None,
    *,
    view: View,
    counted_on: date | None,
    evicts: bool,
    now: datetime,
) -> Generator[Reservation, None, None]:
    """Count the artifact into the totals, so that parallel uploads cannot exceed the quota together.

    If the block ends without `kept`, the count is taken back. If the block raises an error, the count stays, because
    the artifact may be published. The totals can then be too high until the sweep checks them, but never too low.

    An artifact that is smaller than the one it replaces is counted only when it is published. Otherwise, parallel
    uploads could take the space before it is free. With `evicts`, and if the deployment evicts, Larder frees space.
    """
    held = Reservation(artifact=artifact, replaces=replaces, counted_on=counted_on, view=view)
    scope, size_bytes = artifact.upload.scope, held.growth[0]
    if scope is None or view.quota_bytes is None or size_bytes <= 0:
        _reserve(held, now, evicts=evicts)
        yield held
    else:
        # Imported here: requests start faster without it.
        from larder.artifacts.repository.scopes import give_budget_back, take_budget

        place = (artifact.upload.owner, scope, size_bytes)
        with in_parallel(
            take_budget, *place, most=scope_share(view.quota_bytes), now=now
        ) as taking:
            _reserve(held, now, evicts=evicts, may_evict=taking.result)
        has_budget = taking.result()
        if not has_budget and held.granted:
            held.count(times=-1)
            held.granted = False
        held.scopes_full |= not has_budget
        yield held
        if has_budget and not held.kept:
            give_budget_back(*place, now=now)
    if held.shrinks and held.kept:
        held.count()
    elif not held.shrinks and held.granted and not held.kept:
        held.count(times=-1)


def _reserve(
    held: Reservation,
    now: datetime,
    *,
    evicts: bool,
    may_evict: Callable[[], bool] = lambda: True,
) -> None:
    quota_bytes = held.view.quota_bytes
    try:
        if held.growth[0] <= 0:
            if not held.shrinks:
                held.count()
            held.granted = True
        elif quota_bytes is not None and evicts and settings().evicts:
            held.granted = _count_by_evicting(held, quota_bytes, now, may_evict)
        else:
            held.granted = held.try_count() is not None
    except StorageFull:
        held.storage_full = True
    except ScopesFull:
        held.scopes_full = True


def _count_by_evicting(
    held: Reservation, quota_bytes: int, now: datetime, may_evict: Callable[[], bool]
) -> bool:
    """Returns False if parallel uploads took the space each time.

    An upload to an own scope evicts only from own scopes, and does not start the eviction in the background, which may
    evict from the shared one. Raises ScopesFull if it finds no space like this.
    """
    # Imported here: requests start faster without it.
    from larder.artifacts import eviction

    owner, size_bytes = held.artifact.upload.owner, held.growth[0]
    scoped = held.artifact.upload.scope is not None
    for attempt in range(_ROUNDS):
        if attempt:
            if not may_evict():
                raise ScopesFull
            eviction.evict_for_upload(
                held.artifact.upload, size_bytes, quota_bytes=quota_bytes, now=now
            )
        totals = held.try_count()
        if totals is not None:
            before_bytes = totals.size_bytes - size_bytes
            passes_mark = eviction.passes_mark(before_bytes, totals.size_bytes, quota_bytes)
            if passes_mark and not scoped:
                eviction.start_eviction(owner, now=now)
            return True
    if scoped:
        raise ScopesFull
    eviction.start_eviction(owner, now=now)
    return False
