"""The daily figures that usage events add up to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, timedelta

from larder.usage.events import Reporter, UsageEvent, tool_of
from larder.usage.uploads import Stored, Uploads

KEPT_EVENTS_PER_HOUR = 1_000_000
"""The most events of one key or session in an hour that are stored for an owner: 2,000 builds of 500 tasks. More are
only counted. They are counted in several parts, so a little less can be stored."""

MAX_CI_VENDORS = 10
"""The most CI vendors of a day, and of each of its items. Clients choose the names, which must not let items grow."""

MAX_KEY_PARTS = 50
"""The most keys that the usage by key names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one batch, a day or a period.

    `time_saved_ms` is the sum of the durations of hits. `untimed_hits` counts hits without a duration, as of artifacts
    that were uploaded straight to S3. `interactive_events` counts events of clients that report an interactive shell.
    """

    events: int = 0
    interactive_events: int = 0
    hits: int = 0
    misses: int = 0
    local_hits: int = 0
    local_misses: int = 0
    remote_hits: int = 0
    remote_misses: int = 0
    time_saved_ms: int = 0
    untimed_hits: int = 0

    @property
    def tasks(self) -> int:
        """As docs/usage.md counts them: a task that this cache restored was missed on the client's disk."""
        return self.local_hits + self.remote_hits + self.remote_misses


FIGURES = tuple(figure.name for figure in fields(Figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day's figures, the parts of them by CI vendor and by build tool, and the day's uploads.

    Events without a vendor are in no part by vendor, and those of turbo in no part by tool.

    `stored` is what the owner stored at the last check of that day, None without one.
    """

    total: Figures = Figures()
    by_ci: Mapping[str, Figures] = field(default_factory=dict)
    by_tool: Mapping[str, Figures] = field(default_factory=dict)
    uploads: Uploads = field(default_factory=Uploads)
    stored: Stored | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """The figures of one key, session or rule in a period. `user_id` is None for a rule."""

    id: str
    user_id: str | None
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageByKey:
    """The keys of a period with the most tasks, at most MAX_KEY_PARTS, and what all others add up to."""

    parts: Sequence[KeyPart]
    others: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The days from `first` to `last`, both included, in UTC."""

    first: date
    last: date

    @property
    def days(self) -> list[date]:
        return [
            self.first + timedelta(days=day) for day in range((self.last - self.first).days + 1)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The figures of a period: each day, in order, and their total."""

    period: Period
    days: Sequence[Day]

    @property
    def total(self) -> Day:
        return add_days(self.days)


def period_until(last: date, days: int) -> Period:
    """The period of `days` days that ends with `last`."""
    return Period(first=last - timedelta(days=days - 1), last=last)


def add_days(days: Sequence[Day]) -> Day:
    """The sum of the days. What is stored is that of the last day which has it."""
    return Day(
        total=add_figures(day.total for day in days),
        by_ci=_add_parts([day.by_ci for day in days]),
        by_tool=_add_parts([day.by_tool for day in days]),
        uploads=Uploads(
            count=sum(day.uploads.count for day in days),
            size_bytes=sum(day.uploads.size_bytes for day in days),
        ),
        stored=next((day.stored for day in reversed(days) if day.stored is not None), None),
    )


def _add_parts(days: Sequence[Mapping[str, Figures]]) -> dict[str, Figures]:
    names = sorted({name for parts in days for name in parts})
    return {name: add_figures(parts[name] for parts in days if name in parts) for name in names}


def without_parts(day: Day, parts: Mapping[str, Figures]) -> Figures:
    """What the parts leave of a day's figures: those without a CI vendor for `by_ci`, those of turbo for `by_tool`."""
    named = add_figures(parts.values())
    return Figures(**{name: getattr(day.total, name) - getattr(named, name) for name in FIGURES})


def add_figures(parts: Iterable[Figures]) -> Figures:
    added = tuple(parts)
    return Figures(**{name: sum(getattr(part, name) for part in added) for name in FIGURES})


def add_up(events: Sequence[UsageEvent], reporter: Reporter) -> Figures:
    def count(*wanted: tuple[str, str]) -> int:
        return sum(1 for event in events if (event.source, event.event) in wanted)

    local_hits, local_misses = count(("LOCAL", "HIT")), count(("LOCAL", "MISS"))
    remote_hits, remote_misses = count(("REMOTE", "HIT")), count(("REMOTE", "MISS"))
    return Figures(
        events=len(events),
        interactive_events=len(events) if reporter.interactive else 0,
        hits=local_hits + remote_hits,
        misses=local_misses + remote_misses,
        local_hits=local_hits,
        local_misses=local_misses,
        remote_hits=remote_hits,
        remote_misses=remote_misses,
        time_saved_ms=round(sum(event.duration_ms for event in events if event.event == "HIT")),
        untimed_hits=sum(1 for event in events if event.event == "HIT" and not event.duration_ms),
    )


def add_up_by_tool(events: Sequence[UsageEvent], reporter: Reporter) -> dict[str, Figures]:
    """The figures of each build tool but turbo."""
    by_tool: dict[str, list[UsageEvent]] = {}
    for event in events:
        if (tool := tool_of(event.hash)) is not None:
            by_tool.setdefault(tool, []).append(event)
    return {tool: add_up(its, reporter) for tool, its in by_tool.items()}
