"""Record what clients report, and tell what it comes to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from larder.usage import repository
from larder.usage.models import Period, Reporter, Usage, UsageEvent, add_up
from larder.usage.uploads import Uploads


def record(owner: str, events: Sequence[UsageEvent], reporter: Reporter, *, now: datetime) -> None:
    """Keep a batch and add it to the day's figures: both or neither. An empty batch is nothing. Raises TryAgain."""
    if events:
        repository.add_batch(owner, events, add_up(events, reporter), reporter, now=now)


def set_uploads(owner: str, day: date, uploads: Uploads) -> None:
    """Keep what was uploaded on a day that is over. Setting it twice changes nothing."""
    repository.set_uploads(owner, day, uploads)


def read_usage(owner: str, period: Period, *, recent_uploads: Mapping[date, Uploads]) -> Usage:
    """What the owner's clients did in the period. The cost grows with its days, not with what happened on them.

    `recent_uploads` are those that the owner's totals still have; of a day that both have they are right.
    """
    days = zip(period.days, repository.read_days(owner, period.days), strict=True)
    return Usage(
        period=period,
        days=[replace(kept, uploads=recent_uploads.get(day, kept.uploads)) for day, kept in days],
    )


def clear(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> bool:
    """Delete the figures and batches of an owner who is gone; False when there was no time for all of them."""
    return repository.clear(owner, has_time)
