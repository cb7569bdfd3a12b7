"""Parse sizes, durations, times, permissions and JSON from the command line.

Each function that takes a text serves as the type of a click option.
"""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import click

from larder.api_keys.models import OWN_ACTIONS

_SIZE = re.compile(
    r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,3})?)\s*(?:(?P<power>[kmgtp])(?P<binary>i?))?b?",
    re.IGNORECASE,
)
_POWERS = "kmgtp"

_DURATION = re.compile(r"(?P<number>[0-9]{1,9})\s*(?P<unit>[smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_S = 36_500 * 86_400
_LONGEST_PERIOD_S = 10_000 * 86_400
_EXAMPLE_OF_JSON = '{"repo": "web"}'


def size_bytes(text: str) -> int:
    """Bytes: `500MB`, `1.5 TB` (powers of 1000), `50GiB` (powers of 1024), or a plain number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"{text!r} is not a size: write for example 50GB, 1.5TB, 500MiB or a number of bytes"
        )
    power = _POWERS.index(match["power"].lower()) + 1 if match["power"] else 0
    base = 1024 if match["binary"] else 1000
    return int(Decimal(match["number"]) * base**power)


def seconds(text: str) -> int:
    """Seconds: `90s`, `30m`, `12h`, `30d`, `4w`."""
    return _seconds(text, least=1, most=_LONGEST_S)


def seconds_or_none(text: str) -> int:
    """Seconds as in `seconds`, or `0`."""
    return 0 if text.strip() == "0" else _seconds(text, least=0, most=_LONGEST_S)


def period_ms(text: str) -> int:
    """The length of a repeating period in milliseconds, in the format of `seconds`."""
    return _seconds(text, least=1, most=_LONGEST_PERIOD_S) * 1000


def period(duration_ms: int) -> str:
    """The inverse of `period_ms`: `1d` for 86,400,000 milliseconds, in the largest unit without a remainder."""
    for unit in "dhms":
        count, rest = divmod(duration_ms, _SECONDS[unit] * 1000)
        if count and not rest:
            return f"{count}{unit}"
    return f"{duration_ms}ms"


def _seconds(text: str, *, least: int, most: int) -> int:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"{text!r} is not a duration: write for example 90s, 30m, 12h, 30d or 4w"
        )
    duration_s = int(match["number"]) * _SECONDS[match["unit"].lower()]
    if not least <= duration_s <= most:
        raise click.BadParameter(
            f"{text!r} is out of range: it must be from {least}s to {most // _SECONDS['d']}d"
        )
    return duration_s


def moment(text: str) -> datetime:
    """A time: `2026-11-21T14:00`, `2026-11-21 14:00+01:00`, `2026-11-21`. In UTC, if it names no zone."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time: write for example 2026-11-21T14:00, which is in UTC, or 2026-11-21"
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def permission(text: str) -> tuple[str, tuple[str, ...]]:
    """The permitted actions on one resource: `artifacts=read,write`.

    For Larder's own resources, only the actions that Larder checks are accepted.
    """
    resource, _, listed = text.partition("=")
    actions = tuple(action.strip() for action in listed.split(","))
    if not resource.strip() or not all(actions):
        raise click.BadParameter(
            f"{text!r} is not a permission: write for example artifacts=read,write"
        )
    resource = resource.strip()
    known = OWN_ACTIONS.get(resource, actions)
    if unknown := [action for action in actions if action not in known]:
        raise click.BadParameter(
            f"{resource} has no action {', '.join(unknown)}: use {', '.join(known)}"
        )
    return resource, actions


def json_value(text: str) -> object:
    """Any JSON value."""
    try:
        value: object = json.loads(text)
        # Python accepts NaN and turns 1e999 into infinity, but neither is valid JSON.
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"this is not valid JSON: write for example {_EXAMPLE_OF_JSON}"
        ) from error
    return value
