"""Record the events that clients report, and read the figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from larder.usage import repository
from larder.usage.events import Reporter, UsageEvent
from larder.usage.models import (
    MAX_KEY_PARTS,
    Period,
    Usage,
    UsageByKey,
    add_figures,
    add_up,
    add_up_by_tool,
)
from larder.usage.uploads import Stored, Uploads

MAX_BATCHES = 200
"""The most batches of a day that are searched for look-ups."""


def record(owner: str, events: Sequence[UsageEvent], reporter: Reporter, *, now: datetime) -> None:
    """Store a batch and add it to the day's figures. Ignores an empty batch, and that of a public read key.

    Raises TryAgain, TooManyRequests.
    """
    if events and not reporter.is_public:
        figures, by_tool = add_up(events, reporter), add_up_by_tool(events, reporter)
        repository.add_batch(owner, events, figures, reporter, by_tool=by_tool, now=now)


def read_lookups(
    owner: str, first: datetime, end: datetime
) -> dict[str, dict[str, set[tuple[str, str]]]]:
    """The look-ups that were reported in a time: the source and the event of each, by hash and credential."""
    found: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for reporter, events in repository.read_batches(owner, first, end, most=MAX_BATCHES):
        for _, source, event, hash, _ in events:
            found.setdefault(hash, {}).setdefault(reporter, set()).add((source, event))
    return found


def set_uploads(owner: str, day: date, uploads: Uploads) -> None:
    """Store the uploads of a past day. Safe to repeat."""
    repository.set_uploads(owner, day, uploads)


def set_stored(owner: str, day: date, stored: Stored) -> None:
    """Note what the owner stores on the day. The last note of a day counts."""
    repository.set_stored(owner, day, stored)


def read_usage(
    owner: str,
    period: Period,
    *,
    recent_uploads: Mapping[date, Uploads],
    stored_now: Stored,
    now: datetime,
) -> Usage:
    """The owner's figures of the period. The cost grows with the number of days, not of events.

    `recent_uploads` and `stored_now` are from the owner's totals. If a day is in both places, these take precedence.
    """
    days = zip(period.days, repository.read_days(owner, period.days), strict=True)
    return Usage(
        period=period,
        days=[
            replace(
                kept,
                uploads=recent_uploads.get(day, kept.uploads),
                stored=stored_now if day == now.date() else kept.stored,
            )
            for day, kept in days
        ],
    )


def read_usage_by_key(owner: str, period: Period) -> UsageByKey:
    """The figures of each key, session and rule in the period. The ones with the most tasks come first."""
    found = sorted(
        repository.read_keys(owner, period.first, period.last),
        key=lambda part: (-part.figures.tasks, part.id),
    )
    others = add_figures(part.figures for part in found[MAX_KEY_PARTS:])
    return UsageByKey(parts=found[:MAX_KEY_PARTS], others=others)


def delete_usage(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> bool:
    """Delete the figures and batches of a deleted owner. False if time ran out."""
    return repository.delete_usage(owner, has_time)
