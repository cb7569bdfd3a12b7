"""Count requests against a limit. If DynamoDB fails, requests pass, and a metric counts them."""

from contextlib import suppress
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, NoReturn

from larder.deadline import short_deadline
from larder.errors import TooManyRequests, TryAgain
from larder.instance import Remembered
from larder.metrics import count
from larder.rate_limits import repository
from larder.rate_limits.models import BY_PATH, Limit
from larder.settings import settings

if TYPE_CHECKING:
    from larder.tables import Write

# Windows that this instance has seen full. A count never decreases, so there is no need to write again. Otherwise a
# flood of requests could throttle the partition of its own counter, and then pass because the write fails.
_full: Remembered[tuple[str, int], None] = Remembered(1000)


def limit_of(path: str) -> Limit | None:
    """The limit of a path, given without the prefix `/api/auth`. None if its requests are not counted."""
    options = settings()
    if not options.http_rate_limit_enabled:
        return None
    for prefix, limit in BY_PATH.items():
        if path == prefix or path.startswith(f"{prefix}/"):
            return limit
    return Limit(most=options.http_rate_limit_max, window_s=options.http_rate_limit_window_seconds)


def take(what: str, limit: Limit, *, now: datetime, amount: int = 1) -> None:
    """Count one request for the counter `what`. Raises TooManyRequests if the current window is full.

    `amount` is what it counts as. The last one of a window can exceed the limit.

    Exact under parallel requests, because one conditional write checks and counts.
    """
    window = limit.window_at(now)
    if (what, window) not in _full:
        try:
            with short_deadline():
                counted = repository.count(
                    what, window=window, window_s=limit.window_s, most=limit.most, amount=amount
                )
            if counted:
                return
        except TryAgain:
            report_store_failure("http")
            return
    refuse(what, limit, now=now)


def take_if_counted(what: str, limit: Limit, *, now: datetime, amount: int = 1) -> None:
    """Like `take`, but does nothing if the deployment has disabled these limits."""
    if settings().http_rate_limit_enabled:
        take(what, limit, now=now, amount=amount)


def give_back_if_counted(what: str, limit: Limit, *, now: datetime) -> None:
    """Undo `take_if_counted` of the same moment, for a request that does not count after all. A failure is ignored."""
    if settings().http_rate_limit_enabled:
        with suppress(TryAgain), short_deadline():
            repository.give_back(what, window=limit.window_at(now))


def counting_if_counted(what: str, limit: Limit, *, now: datetime) -> "tuple[Write, ...]":
    """The writes that count one request in a transaction. If they fail, call `refuse`.

    Raises TooManyRequests if this instance has seen the window full.
    """
    if not settings().http_rate_limit_enabled:
        return ()
    window = limit.window_at(now)
    if (what, window) in _full:
        refuse(what, limit, now=now)
    write = repository.counting(what, window=window, window_s=limit.window_s, most=limit.most)
    return (write,)


def refuse(what: str, limit: Limit, *, now: datetime) -> NoReturn:
    """Remember that the current window is full. Raises TooManyRequests."""
    window = limit.window_at(now)
    _full[what, window] = None
    raise TooManyRequests(max(1, ceil(window + limit.window_s - now.timestamp())))


def report_store_failure(limit: str) -> None:
    """Emit the metric for a request that passed uncounted. `limit` is `http`, or `key` for an API key's own limit."""
    count("RateLimitStoreFailures", limit=limit)
