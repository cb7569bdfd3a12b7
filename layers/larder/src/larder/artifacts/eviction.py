"""Evict the least recently used artifacts when the quota is full (docs/decisions/quota.md).

The stored bytes never exceed the quota. Above 95 % of the quota, Larder starts the function RemoveArtifacts, which
evicts until a tenth is free. An upload that still finds the quota full evicts a few artifacts itself.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile

from larder.artifacts import jobs
from larder.artifacts.jobs import JobKind, RemovalJob
from larder.artifacts.models import Artifact, Upload
from larder.artifacts.records import Eviction, Unused
from larder.artifacts.repository import index
from larder.artifacts.repository.eviction import (
    claim_eviction,
    end_eviction,
    evict,
    least_recently_used,
    read_eviction,
)
from larder.artifacts.repository.totals import read_totals
from larder.concurrency import in_parallel, map_concurrently
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.state import quota_bytes as quota_of

AT_ONCE = 40
"""Artifacts per transaction: each takes two of its hundred items, and the totals one. A request evicts as many."""

_LOOKS = 8
"""How many evictions an upload tries each time. Parallel evictions and uses can make them fail."""

_FUNCTION_TAKES = timedelta(minutes=15)
_LISTED_AT_ONCE = 100


@dataclass(slots=True)
class EvictionReport:
    """The evicted artifacts, and whether there is now enough free space."""

    artifacts: int = 0
    size_bytes: int = 0
    finished: bool = True


def evict_for_upload(upload: Upload, size_bytes: int, *, quota_bytes: int, now: datetime) -> None:
    """Evict a few artifacts to free `size_bytes`, but keep the artifact that the upload replaces.

    An upload to an own scope evicts only from own scopes. An error does not fail the upload: the next count finds out
    whether there is enough space.
    """
    looks = iter(range(_LOOKS))
    with suppress(TryAgain):
        free_space(
            upload.owner,
            quota_bytes=quota_bytes,
            needed_bytes=size_bytes,
            sparing=upload.index_key,
            only_scoped=upload.scope is not None,
            most=AT_ONCE,
            now=now,
            has_time=lambda: next(looks, None) is not None,
        )


def last_eviction(owner: str, *, scoped: bool) -> Eviction | None:
    """The last eviction of artifacts in the shared scope, or in own scopes. None if there was none."""
    return read_eviction(owner, scoped=scoped)


def passes_mark(before_bytes: int, after_bytes: int, quota_bytes: int) -> bool:
    """Whether this growth passes 95 % of the quota, so that the owner needs an eviction."""
    mark = quota_bytes - quota_bytes // 20
    return before_bytes <= mark < after_bytes


def start_eviction(owner: str, *, now: datetime) -> None:
    """Start the function that evicts, unless it was started already. An error does not fail the upload."""
    with suppress(TryAgain):
        if claim_eviction(owner, now=now, until=now + _FUNCTION_TAKES):
            jobs.hand_over(RemovalJob(kind=JobKind.LEAST_RECENTLY_USED, owner=owner))


def do_job(
    owner: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> EvictionReport:
    """Evict until a tenth of the quota is free."""
    quota_bytes = quota_of(owner)
    if quota_bytes is None or not settings().evicts:
        return EvictionReport()
    free = partial(
        free_space, owner, quota_bytes=quota_bytes, alone=True, now=now, has_time=has_time
    )
    report = free()
    if not report.finished and has_time():
        # Artifacts from before the deployment evicted are not listed yet.
        list_all(owner, has_time=has_time)
        rest = free()
        report.artifacts += rest.artifacts
        report.size_bytes += rest.size_bytes
        report.finished = rest.finished
    end_eviction(owner)
    return report


def free_space(
    owner: str,
    *,
    quota_bytes: int,
    needed_bytes: int = 0,
    sparing: str | None = None,
    only_scoped: bool = False,
    most: int | None = None,
    alone: bool = False,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> EvictionReport:
    """Evict at most `most` artifacts, until a tenth of the quota and `needed_bytes` are free. Raises TryAgain.

    Parallel callers together evict at most one artifact too many, because each transaction checks the totals. A caller
    that claimed the eviction is `alone`: its transactions leave the totals to the uploads, and it evicts at most one
    transaction too many.
    Larder never evicts the artifact with the index key `sparing`, and with `only_scoped` none of the shared scope.
    """
    report = EvictionReport()
    aim_bytes = min(quota_bytes - quota_bytes // 10, quota_bytes - needed_bytes)
    listed: Iterable[Unused] = least_recently_used(owner, page=AT_ONCE)
    if only_scoped:
        # They come first.
        listed = takewhile(lambda artifact: artifact.upload.scope is not None, listed)
    candidates = _once(listed, sparing)
    with in_parallel(read_totals, owner) as reading:
        waiting = list(islice(candidates, 1))
    stored_bytes = reading.result().size_bytes
    while stored_bytes > aim_bytes and has_time():
        excess = stored_bytes - aim_bytes
        count = AT_ONCE if most is None else min(AT_ONCE, most - report.artifacts)
        while len(waiting) < count and _size(waiting) < excess:
            more = list(islice(candidates, 1))
            if not more:
                break
            waiting += more
        chosen = _enough(waiting[:count], excess)
        if not chosen:
            break
        gone, freed_bytes = _evict(owner, chosen, aim_bytes, now, alone=alone)
        report.artifacts += len(chosen) if freed_bytes else 0
        report.size_bytes += freed_bytes
        if freed_bytes >= excess:
            return report
        waiting = [artifact for artifact in waiting if artifact.upload not in gone]
        stored_bytes = read_totals(owner).size_bytes
    report.finished = stored_bytes <= aim_bytes
    return report


def list_all(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> None:
    """Add the owner's unlisted artifacts to the index of last uses, with the time of their upload.

    Reads all artifacts of the owner: for background work only.
    """
    unlisted: list[Artifact] = []
    for item in index.stored_by(owner):
        if isinstance(item, Artifact) and item.last_used_at is None:
            unlisted.append(item)
        if len(unlisted) == _LISTED_AT_ONCE:
            if not has_time():
                return
            map_concurrently(_list, unlisted)
            unlisted = []
    map_concurrently(_list, unlisted)


def _list(artifact: Artifact) -> None:
    index.note_use(artifact, at=artifact.created_at)


def _once(listed: Iterable[Unused], sparing: str | None) -> Iterator[Unused]:
    """Each artifact once, without `sparing`. An artifact that is used during the read moves, and is listed twice."""
    seen = {sparing}
    for artifact in listed:
        if artifact.upload.index_key not in seen:
            seen.add(artifact.upload.index_key)
            yield artifact


def _enough(unused: list[Unused], excess: int) -> list[Unused]:
    """The first artifacts that together free `excess` bytes."""
    chosen: list[Unused] = []
    for artifact in unused:
        if _size(chosen) >= excess:
            break
        chosen.append(artifact)
    return chosen


def _size(unused: list[Unused]) -> int:
    return sum(artifact.size_bytes for artifact in unused)


def _evict(
    owner: str, chosen: list[Unused], aim_bytes: int, now: datetime, *, alone: bool
) -> tuple[frozenset[Upload], int]:
    """Returns the uploads to drop from the candidates (evicted, or used since), and the freed bytes."""
    # Fails if parallel evictions have freed so much that the last of these artifacts could stay.
    above_bytes = None if alone else aim_bytes + _size(chosen[:-1])
    used_meanwhile = evict(owner, chosen, above_bytes=above_bytes, now=now)
    if used_meanwhile is None:
        return frozenset(), 0
    if used_meanwhile:
        return used_meanwhile, 0
    return frozenset(artifact.upload for artifact in chosen), _size(chosen)
