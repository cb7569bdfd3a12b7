"""Jobs that the function SweepArtifacts hands to itself: what it had no time for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from larder.artifacts.jobs import start
from larder.artifacts.models import Totals

MOST_SWEEPS = 4
"""How often the work of one sweep is handed on. A call takes up to 15 minutes, and the next sweep begins in an hour."""

MOST_CHECKS = 12
"""How often a check is handed on. AWS stops a function that invokes itself 16 times in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepJob:
    """Sweep what is due in a shard."""

    shard: str
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob:
    """Check the totals of an owner, as they were at `now_ms`.

    `packed` is what the calls before have added up (`breakdown.Collector`), and `after` where they have stopped.
    """

    owner: str
    now_ms: int
    totals: Totals
    drift_before: Totals
    packed: str = ""
    after: dict[str, Any] | None = None
    calls: int = 0


Job = SweepJob | CheckJob


def hand_over(job: Job, *, function: str) -> None:
    """Start the function with one asynchronous invocation. Raises TryAgain."""
    start(function, {type(job).__name__: asdict(job)})


def parse_job(event: Mapping[str, Any]) -> Job | None:
    """Parse what `hand_over` sent. None for the event of the schedule."""
    if "SweepJob" in event:
        return SweepJob(**event["SweepJob"])
    if "CheckJob" in event:
        job = event["CheckJob"]
        both = {name: Totals(**{**job[name], "uploads": {}}) for name in ("totals", "drift_before")}
        return CheckJob(**{**job, **both})
    return None
