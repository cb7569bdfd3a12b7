"""The table of rate limits: one item per counter and window, or per account with wrong passwords.

Its time to live deletes an item.
"""

from datetime import datetime

from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import at_most, below, equals, exists, missing
from larder.errors import TryAgain
from larder.rate_limits.models import Guesses
from larder.tables import RATE_LIMITS, ClientError, Item, Write, commit

_NO_WINDOW = 0
"""The window of an item that is not counted in windows."""

_KEPT_S = 60
"""How many seconds an item is kept after its window, because clocks differ."""


def count(what: str, *, window: int, window_s: int, most: int, amount: int = 1) -> bool:
    """Add the amount to the count of a window. False if it is `most` already.

    Always one conditional write: the window is part of the key, so a new window needs no reset. Raises TryAgain for
    every failure of DynamoDB.
    """
    try:
        return commit(counting(what, window=window, window_s=window_s, most=most, amount=amount))
    except ClientError as error:
        raise TryAgain from error


def counting(what: str, *, window: int, window_s: int, most: int, amount: int = 1) -> Write:
    """The write that adds the amount to the count of a window. It fails if the count is `most` already."""
    fits = missing("request_count") | below(request_count=most)
    ends = {"expires_at": window + window_s + _KEPT_S}
    return RATE_LIMITS.update(what, window, set=ends, add={"request_count": amount}, when=fits)


def give_back(what: str, *, window: int) -> None:
    """Take one request out of the count of a window. Raises TryAgain for every failure of DynamoDB."""
    counted = exists("request_count")
    try:
        commit(RATE_LIMITS.update(what, window, add={"request_count": -1}, when=counted))
    except ClientError as error:
        raise TryAgain from error


def find_guesses(what: str) -> Guesses | None:
    item = RATE_LIMITS.get(what, _NO_WINDOW)
    if item is None:
        return None
    until = item.get("refused_until")
    return Guesses(
        wrong=item["wrong"],
        since=from_ms(item["since"]),
        refused_until=None if until is None else from_ms(until),
    )


def replace_guesses(what: str, old: Guesses | None, new: Guesses) -> bool:
    """Store the new count. False if another request has changed it since `old` was read."""
    unchanged = missing("what")
    if old is not None:
        unchanged = equals(wrong=old.wrong, since=to_ms(old.since))
    return commit(RATE_LIMITS.put(_guesses_item(what, new), when=unchanged))


def put_guesses(what: str, guesses: Guesses) -> Write:
    return RATE_LIMITS.put(_guesses_item(what, guesses))


def forget_guesses(what: str, *, now: datetime) -> Write:
    """Delete the count, unless a delay is running."""
    open_now = missing("refused_until") | at_most(refused_until=to_ms(now))
    return RATE_LIMITS.delete(what, _NO_WINDOW, when=open_now)


def forget_now(what: str, *, now: datetime) -> bool:
    """Delete the count. False if a delay is running."""
    return commit(forget_guesses(what, now=now))


def _guesses_item(what: str, guesses: Guesses) -> Item:
    until = guesses.refused_until
    return {
        "what": what,
        "window": _NO_WINDOW,
        "wrong": guesses.wrong,
        "since": to_ms(guesses.since),
        "refused_until": None if until is None else to_ms(until),
        "expires_at": to_epoch_seconds(guesses.ends_at) + _KEPT_S,
    }
