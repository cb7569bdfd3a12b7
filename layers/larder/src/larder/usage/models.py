"""Usage events and the daily figures that they add up to."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One look-up of one artifact in one cache, as a client reports it (spec 1, Cache usage event)."""

    session_id: str
    source: str
    event: str
    hash: str
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """Where a batch of events comes from."""

    key_id: str
    ci: str | None
    interactive: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one batch adds to a day, or what a day comes to. `time_saved_ms` sums the durations of hits."""

    events: int = 0
    hits: int = 0
    misses: int = 0
    local_hits: int = 0
    local_misses: int = 0
    remote_hits: int = 0
    remote_misses: int = 0
    time_saved_ms: int = 0


def add_up(events: Sequence[UsageEvent]) -> Figures:
    def count(*wanted: tuple[str, str]) -> int:
        return sum(1 for one in events if (one.source, one.event) in wanted)

    local_hits, local_misses = count(("LOCAL", "HIT")), count(("LOCAL", "MISS"))
    remote_hits, remote_misses = count(("REMOTE", "HIT")), count(("REMOTE", "MISS"))
    return Figures(
        events=len(events),
        hits=local_hits + remote_hits,
        misses=local_misses + remote_misses,
        local_hits=local_hits,
        local_misses=local_misses,
        remote_hits=remote_hits,
        remote_misses=remote_misses,
        time_saved_ms=round(sum(one.duration_ms for one in events if one.event == "HIT")),
    )
