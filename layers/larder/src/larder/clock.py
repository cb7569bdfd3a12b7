"""Times, in the formats of the tables and the API. Other modules take `now` as an argument, an aware UTC datetime."""

from datetime import UTC, date, datetime
from typing import NewType, overload

Milliseconds = NewType("Milliseconds", int)
"""Since 1970."""

IsoTime = NewType("IsoTime", str)
"""`2026-11-21T08:35:00.000Z`: exactly three fractional digits, which is what JavaScript's Date reads right."""

IsoDate = NewType("IsoDate", str)
"""`2026-11-21`"""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """The current time, rounded to the millisecond like stored times."""
    return from_ms(to_ms(datetime.now(UTC)))


def to_ms(moment: datetime) -> Milliseconds:
    return Milliseconds(round(moment.timestamp() * 1000))


def from_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@overload
def to_iso(moment: datetime) -> IsoTime: ...
@overload
def to_iso(moment: None) -> None: ...
def to_iso(moment: datetime | None) -> IsoTime | None:
    if moment is None:
        return None
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return IsoTime(text)


def to_iso_date(day: date) -> IsoDate:
    return IsoDate(day.isoformat())


def to_epoch_seconds(moment: datetime) -> int:
    """Whole seconds since 1970, as DynamoDB's time to live requires."""
    return int(moment.timestamp())
