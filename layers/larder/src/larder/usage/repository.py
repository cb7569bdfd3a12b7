"""The usage table: `(owner, "day#<day>#<part>")` has figures of a day, `(owner, "<day>#<batch id>")` a reported batch.

Days are UTC, written YYYY-MM-DD. Batches have a time to live; the figures stay. Only one transaction at a time can
change an item, so a day has 16 parts, which readers add up: builds that end at the same moment use different ones
(docs/decisions/usage.md). A batch counts in the part that is the last digit of its id.

Each figure is an attribute with its name, and another one for each CI vendor, `ci.<vendor>.<name>`, and for each build
tool but turbo, `tool.<tool>.<name>`. `ci_vendors` is the set of the vendors, which has at most MAX_CI_VENDORS. The
tools are a closed list, so old days and days of turbo alone take no more space.

`(owner, "<hour>#<key id>#<part>")` counts the events that a key has reported in an hour, and
`(owner, "by#<day>#<id>#<part>")` has its figures of the day, where the id is that of the key, or of the rule that gave
it to a job.

`(owner, "<day>")` has the day's uploads, which the sweep copies here from the owner's totals
(artifacts/repository/totals.py), what the owner stored at the day's check of the totals, and the figures that version
0.1.0 counted.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain
from math import ceil

from larder.clock import to_epoch_seconds, to_ms
from larder.concurrency import in_parallel, map_concurrently
from larder.conditions import at_most, between, contains, equals, missing, size_below
from larder.errors import TooManyRequests
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.tables import USAGE, Item, Write, commit, commit_returning, in_batches
from larder.usage.events import Reporter, UsageEvent
from larder.usage.models import (
    FIGURES,
    KEPT_EVENTS_PER_HOUR,
    MAX_CI_VENDORS,
    Day,
    Figures,
    KeyPart,
    add_days,
    add_figures,
)
from larder.usage.uploads import Stored, Uploads
from larder.usage.vendors import OTHER_CI, ci_vendor

EventRow = tuple[str, str, str, str, int]

_DAY = "day#"
_BY = "by#"
_TOOL = "tool."
_DAY_LENGTH = len("YYYY-MM-DD")

KEY_DAYS = 366
"""How long the figures of each key are stored."""

PARTS = 16
"""The parts of a day, and of the events of a key in an hour."""


def add_batch(
    owner: str,
    events: Sequence[UsageEvent],
    figures: Figures,
    reporter: Reporter,
    *,
    by_tool: Mapping[str, Figures],
    now: datetime,
) -> None:
    """Add the figures of a batch to its day, and store it, if the key has not reported too many in this hour for that.

    `by_tool` has the parts of the figures that are not turbo's. No transaction, because builds that end at the same
    moment write the same items. Raises TryAgain: then some figures can be counted. Raises TooManyRequests, and counts
    nothing, if the key has reported more than `MaxEventsPerHour`.
    """
    day, batch_id = now.date().isoformat(), time_ordered_id(now)
    part = batch_id[-1]
    counter = f"{reporter.user_id or reporter.key_id}#{part}"
    fits, counted = commit_returning(_count(owner, counter, len(events), now))
    if not fits:
        raise TooManyRequests(ceil((_end_of_hour(now) - now).total_seconds()))
    item, vendor = f"{_DAY}{day}#{part}", ci_vendor(reporter.ci)
    writes = [
        _roll_up(owner, item, figures, vendor, by_tool),
        _roll_up_key(owner, f"{_BY}{day}#{reporter.counted_as}#{part}", figures, reporter, now),
    ]
    if counted["events"] <= KEPT_EVENTS_PER_HOUR // PARTS:
        writes.append(_batch(owner, f"{day}#{batch_id}", events, reporter, now))
    if not map_concurrently(commit, writes)[0]:
        # The day has MAX_CI_VENDORS vendors already.
        commit(_roll_up(owner, item, figures, OTHER_CI, by_tool))


def _batch(
    owner: str, name: str, events: Sequence[UsageEvent], reporter: Reporter, now: datetime
) -> Write:
    rows = [
        (each.session_id, each.source, each.event, each.hash, round(each.duration_ms))
        for each in events
    ]
    return USAGE.put(
        {
            "owner": owner,
            "day": name,
            "received_at": to_ms(now),
            "expires_at": to_epoch_seconds(now + timedelta(days=settings().event_retention_days)),
            "key_id": reporter.key_id,
            "ci": reporter.ci,
            "interactive": reporter.interactive,
            "packed": b64encode(zlib.compress(json.dumps(rows).encode())).decode(),
        }
    )


def read_batches(
    owner: str, first: datetime, end: datetime, *, most: int
) -> Iterator[tuple[str, list[EventRow]]]:
    """The key and the events of each batch that was reported from `first` on, but before `end`.

    An event is its session, source, event, hash and milliseconds. Reads `most` batches at most of each day.
    """
    days = [first.date() + timedelta(days=number) for number in range((end - first).days + 2)]
    for day in days:
        name = day.isoformat()
        within = between("day", f"{name}#{to_ms(first):012x}", f"{name}#{to_ms(end):012x}")
        items, _ = USAGE.page(equals(owner=owner) & within, consistent=True, limit=most)
        for item in items:
            if "packed" in item:  # 0.2.0 stored them in another form
                yield item["key_id"], json.loads(zlib.decompress(b64decode(item["packed"])))


def read_days(owner: str, days: Sequence[date]) -> list[Day]:
    """The figures of each day; zeros for a day without events. Reads the days' parts, not the batches.

    At the same time as the parts, calls for a hundred days each read the uploads.
    """
    with in_parallel(_read_parts, owner, min(days), max(days)) as reading:
        found = map_concurrently(partial(_read, owner), in_batches(days))
    by_day: dict[str, list[Day]] = defaultdict(list)
    for item in chain.from_iterable([*found, reading.result()]):
        by_day[item["day"].removeprefix(_DAY)[:_DAY_LENGTH]].append(_day(item))
    return [_one_day(by_day[day.isoformat()]) for day in days]


def read_keys(owner: str, first: date, last: date) -> list[KeyPart]:
    """The figures of each key, in no order. The cost grows with the keys that reported on each day."""
    sums: dict[str, dict[str, int]] = {}
    users: dict[str, str | None] = {}
    within = between("day", f"{_BY}{first.isoformat()}#", f"{_BY}{last.isoformat()}#~")
    for item in USAGE.query(equals(owner=owner) & within, consistent=False):
        id = item["day"].split("#")[2]
        figures = sums.setdefault(id, dict.fromkeys(FIGURES, 0))
        for name in FIGURES:
            figures[name] += item.get(name, 0)
        users[id] = item.get("user_id")
    return [
        KeyPart(id=id, user_id=users[id], figures=Figures(**figures))
        for id, figures in sums.items()
    ]


def set_uploads(owner: str, day: date, uploads: Uploads) -> None:
    """Store the uploads of a past day. Safe to repeat."""
    figures = {"uploads": uploads.count, "uploaded_bytes": uploads.size_bytes}
    commit(USAGE.update(owner, day.isoformat(), set=figures))


def set_stored(owner: str, day: date, stored: Stored) -> None:
    """Note what the owner stores on the day. The last note of a day counts."""
    figures = {
        "stored_bytes": stored.size_bytes,
        "stored_artifacts": stored.artifacts,
        "scoped_bytes": stored.scoped_bytes or None,
    }
    commit(USAGE.update(owner, day.isoformat(), set=figures))


def delete_usage(owner: str, has_time: Callable[[], bool]) -> bool:
    """Delete all items of a deleted owner. False if time ran out."""
    items = USAGE.query(equals(owner=owner), only=("owner", "day"), consistent=False)
    return USAGE.delete_each(items, has_time)


def _read(owner: str, days: Sequence[date]) -> list[Item]:
    return USAGE.get_many([(owner, day.isoformat()) for day in days])


def _read_parts(owner: str, first: date, last: date) -> list[Item]:
    within = between("day", f"{_DAY}{first.isoformat()}#", f"{_DAY}{last.isoformat()}#~")
    return [*USAGE.query(equals(owner=owner) & within)]


def _one_day(parts: Sequence[Day]) -> Day:
    """The sum of the parts. Each part limits the vendors, so the sum keeps those with the most events."""
    day = add_days(parts)
    named = sorted(day.by_ci.keys() - {OTHER_CI}, key=lambda name: -day.by_ci[name].events)
    kept = set(named[:MAX_CI_VENDORS])
    by_ci = {name: figures for name, figures in day.by_ci.items() if name in kept}
    if others := [figures for name, figures in day.by_ci.items() if name not in kept]:
        by_ci[OTHER_CI] = add_figures(others)
    return replace(day, by_ci=by_ci)


def _day(item: Item) -> Day:
    vendors = sorted(item.get("ci_vendors", ()))
    if any(name.startswith(_part_of(OTHER_CI, "")) for name in item):
        vendors.append(OTHER_CI)
    tools = sorted({name.split(".")[1] for name in item if name.startswith(_TOOL)})
    return Day(
        total=_figures(item, ""),
        by_ci={vendor: _figures(item, _part_of(vendor, "")) for vendor in vendors},
        by_tool={tool: _figures(item, f"{_TOOL}{tool}.") for tool in tools},
        uploads=Uploads(count=item.get("uploads", 0), size_bytes=item.get("uploaded_bytes", 0)),
        stored=_stored(item) if "stored_bytes" in item else None,
    )


def _figures(item: Item, prefix: str) -> Figures:
    return Figures(**{name: item.get(f"{prefix}{name}", 0) for name in FIGURES})


def _stored(item: Item) -> Stored:
    return Stored(
        size_bytes=item["stored_bytes"],
        artifacts=item["stored_artifacts"],
        scoped_bytes=item.get("scoped_bytes", 0),
    )


def _roll_up(
    owner: str, item: str, figures: Figures, vendor: str | None, by_tool: Mapping[str, Figures]
) -> Write:
    """Add to the figures of a part, in total, by vendor and by tool.

    Fails if the vendor is new and the part has too many.
    """
    added: Item = _added(figures, "")
    if vendor is not None:
        added |= _added(figures, _part_of(vendor, ""))
    for tool, part in by_tool.items():
        added |= _added(part, f"{_TOOL}{tool}.")
    fits = None
    if vendor is not None and vendor != OTHER_CI:
        added["ci_vendors"] = {vendor}
        fits = (
            missing("ci_vendors")
            | contains("ci_vendors", vendor)
            | size_below(ci_vendors=MAX_CI_VENDORS)
        )
    return USAGE.update(owner, item, add=added, when=fits)


def _roll_up_key(
    owner: str, item: str, figures: Figures, reporter: Reporter, now: datetime
) -> Write:
    """Add to the figures of a key in a part of the day."""
    ends_at = now + timedelta(days=KEY_DAYS)
    return USAGE.update(
        owner,
        item,
        add=_added(figures, ""),
        set={
            "user_id": reporter.user_id,
            "expires_at": to_epoch_seconds(ends_at),
        },
    )


def _count(owner: str, counter: str, events: int, now: datetime) -> Write:
    """Count the key's events of this hour. Fails above this part's share of `MaxEventsPerHour`."""
    ends_at = _end_of_hour(now)
    return USAGE.update(
        owner,
        f"{now:%Y-%m-%dT%H}#{counter}",
        add={"events": events},
        set={"expires_at": to_epoch_seconds(ends_at)},
        when=missing("events") | at_most(events=settings().max_events_per_hour // PARTS - events),
    )


def _end_of_hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _added(figures: Figures, prefix: str) -> Item:
    return {f"{prefix}{name}": number for name, number in asdict(figures).items() if number}


def _part_of(vendor: str, name: str) -> str:
    return f"ci.{vendor}.{name}"
