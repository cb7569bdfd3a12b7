"""Room for new artifacts where the quota is full: what was used longest ago goes (docs/decisions/0021).

What is stored never passes the quota. Above 95 % of it, the function RemoveArtifacts is asked to evict until a tenth is
free. An upload that finds it full all the same evicts a few itself.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from larder.artifacts import removal_jobs
from larder.artifacts.models import Artifact, ArtifactHash, Totals, Unused, Upload
from larder.artifacts.removal_jobs import JobKind, RemovalJob
from larder.artifacts.repository import index
from larder.artifacts.repository.eviction import (
    RoomMade,
    claim_eviction,
    end_eviction,
    evict,
    least_recently_used,
)
from larder.artifacts.repository.totals import read_totals
from larder.concurrency import map_concurrently, running
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.service import quota_bytes as quota_of

AT_ONCE = 40
"""Artifacts that one transaction evicts: two of its hundred items each, and the totals. A request evicts as many."""

_ROUNDS = 4
"""How often an upload asks whether there is room. It makes some in between, which others may take."""

_LOOKS = 8
"""How often it looks what there is to evict, while others evict and use the same."""

_FUNCTION_TAKES = timedelta(minutes=15)
_LISTED_AT_ONCE = 100


@dataclass(slots=True)
class EvictionReport:
    """What was evicted, and whether there is as much room now as there should be."""

    artifacts: int = 0
    size_bytes: int = 0
    finished: bool = True


def reserve_by_evicting(
    owner: str,
    size_bytes: int,
    count_in: Callable[[], Totals | None],
    *,
    quota_bytes: int,
    sparing: ArtifactHash,
    now: datetime,
) -> bool:
    """Count an upload in that lets what is stored grow by `size_bytes`, and make room for it if there is none.

    `count_in` does so unless the quota is passed, and returns what it comes to. False when others took the room each
    time that some was made.
    """
    for attempt in range(_ROUNDS):
        if attempt:
            looks = iter(range(_LOOKS))
            with suppress(TryAgain):
                make_room(
                    owner,
                    quota_bytes=quota_bytes,
                    needed_bytes=size_bytes,
                    sparing=sparing,
                    most=AT_ONCE,
                    now=now,
                    has_time=lambda looks=looks: next(looks, None) is not None,  # type: ignore[misc]
                )
        totals = count_in()
        if totals is not None:
            if _passes_mark(totals.size_bytes - size_bytes, totals.size_bytes, quota_bytes):
                ask_for_room(owner, now=now)
            return True
    ask_for_room(owner, now=now)
    return False


def _passes_mark(before_bytes: int, after_bytes: int, quota_bytes: int) -> bool:
    """Whether this growth is the one by which what is stored comes to need an eviction."""
    mark = quota_bytes - quota_bytes // 20
    return before_bytes <= mark < after_bytes


def ask_for_room(owner: str, *, now: datetime) -> None:
    """Have the function evict, unless somebody else has asked it to. That it is not reached fails nobody's upload."""
    with suppress(TryAgain):
        if claim_eviction(owner, now=now, until=now + _FUNCTION_TAKES):
            removal_jobs.hand_over(RemovalJob(kind=JobKind.LEAST_RECENTLY_USED, owner=owner))


def do_job(
    owner: str, *, now: datetime, has_time: Callable[[], bool] = lambda: True
) -> EvictionReport:
    """What such a job asks for: a tenth of the quota shall be free."""
    quota_bytes = quota_of(owner)
    if quota_bytes is None or not settings().evicts:
        return EvictionReport()
    report = make_room(owner, quota_bytes=quota_bytes, now=now, has_time=has_time)
    if not report.finished and has_time():
        # What was stored before the deployment evicted is not listed yet.
        list_all(owner, has_time=has_time)
        rest = make_room(owner, quota_bytes=quota_bytes, now=now, has_time=has_time)
        report.artifacts += rest.artifacts
        report.size_bytes += rest.size_bytes
        report.finished = rest.finished
    end_eviction(owner)
    return report


def make_room(
    owner: str,
    *,
    quota_bytes: int,
    needed_bytes: int = 0,
    sparing: ArtifactHash | None = None,
    most: int | None = None,
    now: datetime,
    has_time: Callable[[], bool] = lambda: True,
) -> EvictionReport:
    """Evict, `most` artifacts at most, until a tenth of the quota and `needed_bytes` are free.

    Any number of callers at once leave no more free than that and one artifact: the totals decide, in the transaction
    that evicts. `sparing` is a hash that stays. Raises TryAgain.
    """
    report = EvictionReport()
    aim_bytes = min(quota_bytes - quota_bytes // 10, quota_bytes - needed_bytes)
    listed = least_recently_used(owner, page=AT_ONCE)
    candidates = _once(listed, sparing)
    with running(read_totals, owner) as reading:
        waiting = list(islice(candidates, 1))
    stored_bytes = reading.result().size_bytes
    while stored_bytes > aim_bytes and has_time():
        excess = stored_bytes - aim_bytes
        room = AT_ONCE if most is None else min(AT_ONCE, most - report.artifacts)
        while len(waiting) < room and _size(waiting) < excess:
            more = list(islice(candidates, 1))
            if not more:
                break
            waiting += more
        chosen = _enough(waiting[:room], excess)
        if not chosen:
            break
        gone, freed_bytes = _evict(owner, chosen, aim_bytes, now)
        report.artifacts += len(chosen) if freed_bytes else 0
        report.size_bytes += freed_bytes
        if freed_bytes >= excess:
            return report
        waiting = [one for one in waiting if one.upload not in gone]
        stored_bytes = read_totals(owner).size_bytes
    report.finished = stored_bytes <= aim_bytes
    return report


def list_all(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> None:
    """Give every artifact of the owner a place in the index of last uses: those without one, that of their upload.

    Reads all of them: for background work.
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


def _once(listed: Iterable[Unused], sparing: ArtifactHash | None) -> Iterator[Unused]:
    """Those that may go. One that is used while the index is read moves on, and would come twice."""
    seen = {sparing}
    for one in listed:
        if one.upload.hash not in seen:
            seen.add(one.upload.hash)
            yield one


def _enough(unused: list[Unused], excess: int) -> list[Unused]:
    """The first of them that together free what is too much."""
    chosen: list[Unused] = []
    for one in unused:
        if _size(chosen) >= excess:
            break
        chosen.append(one)
    return chosen


def _size(unused: list[Unused]) -> int:
    return sum(one.size_bytes for one in unused)


def _evict(
    owner: str, chosen: list[Unused], aim_bytes: int, now: datetime
) -> tuple[frozenset[Upload], int]:
    """Returns which of the chosen need not be looked at again, evicted or not to be evicted, and the bytes freed."""
    # Without the last of them there would be too much, whatever others evict at the same time.
    above_bytes = aim_bytes + _size(chosen[:-1])
    try:
        used_meanwhile = evict(owner, chosen, above_bytes=above_bytes, now=now)
    except RoomMade:
        return frozenset(), 0
    if used_meanwhile:
        return used_meanwhile, 0
    return frozenset(one.upload for one in chosen), _size(chosen)
