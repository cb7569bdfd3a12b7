"""Record what clients report."""

from collections.abc import Sequence
from datetime import date, datetime

from larder.usage import repository
from larder.usage.models import Reporter, UsageEvent, add_up
from larder.usage.uploads import Uploads


def record(owner: str, events: Sequence[UsageEvent], reporter: Reporter, *, now: datetime) -> None:
    """Keep a batch and add it to the day's figures: both or neither. An empty batch is nothing. Raises TryAgain."""
    if events:
        repository.add_batch(owner, events, add_up(events, reporter), reporter, now=now)


def set_uploads(owner: str, day: date, uploads: Uploads) -> None:
    """Keep what was uploaded on a day that is over. Setting it twice changes nothing."""
    repository.set_uploads(owner, day, uploads)
