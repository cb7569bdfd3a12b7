"""What people write on the command line: sizes, times, permissions. Each function is a type of option for click."""

import re
from decimal import Decimal

import click

_SIZE = re.compile(
    r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,3})?)\s*(?:(?P<power>[kmgtp])(?P<binary>i?))?b?",
    re.IGNORECASE,
)
_POWERS = "kmgtp"

_DURATION = re.compile(r"(?P<number>[0-9]{1,9})\s*(?P<unit>[smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_S = 36_500 * 86_400


def size_bytes(text: str) -> int:
    """Bytes: `500MB`, `1.5 TB` (thousands), `50GiB` (1024s), or a plain number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no size: write 50GB, 1.5TB, 500MiB or bytes")
    power = _POWERS.index(match["power"].lower()) + 1 if match["power"] else 0
    base = 1024 if match["binary"] else 1000
    return int(Decimal(match["number"]) * base**power)


def seconds(text: str) -> int:
    """Seconds: `90s`, `30m`, `12h`, `30d`, `4w`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time: write 90s, 30m, 12h, 30d or 4w")
    duration_s = int(match["number"]) * _SECONDS[match["unit"].lower()]
    if not 1 <= duration_s <= _LONGEST_S:
        raise click.BadParameter(f"{text!r} is out of bounds: from 1s to 36500d")
    return duration_s


def permission(text: str) -> tuple[str, tuple[str, ...]]:
    """What may be done with one kind of resource: `artifacts=read,write`."""
    resource, _, listed = text.partition("=")
    actions = tuple(action.strip() for action in listed.split(","))
    if not resource.strip() or not all(actions):
        raise click.BadParameter(f"{text!r} is no permission: write artifacts=read,write")
    return resource.strip(), actions
