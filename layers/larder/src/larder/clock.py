"""Times as the tables and the wire hold them. Every other module takes `now` as an argument, an aware UTC datetime."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present, to the millisecond, as the tables keep it."""
    return from_ms(to_ms(datetime.now(UTC)))


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def from_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def to_iso(moment: datetime | None) -> str | None:
    """`2026-11-21T08:35:00.000Z`: exactly three fractional digits, which is what JavaScript's Date reads right."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_epoch_seconds(moment: datetime) -> int:
    """Whole seconds since 1970, as DynamoDB's time to live reads them."""
    return int(moment.timestamp())
