"""Count requests against a limit. A store that fails lets them pass, and a metric tells."""

from datetime import datetime
from math import ceil

from larder.deadline import short_deadline
from larder.errors import TooManyRequests, TryAgain
from larder.instance import Remembered
from larder.metrics import count
from larder.rate_limits import repository
from larder.rate_limits.models import BY_PATH, Limit
from larder.settings import settings

# Windows that this instance has seen full. A count never goes down, so the store need not be asked again: who keeps
# asking costs no write, and cannot wear out the partition that counts them until it fails and lets them pass.
_full: Remembered[tuple[str, int], None] = Remembered(1000)


def limit_of(path: str) -> Limit | None:
    """The limit of a path under `/api/auth`, given without that prefix; None when requests are not counted."""
    options = settings()
    if not options.http_rate_limit_enabled:
        return None
    for prefix, limit in BY_PATH.items():
        if path == prefix or path.startswith(f"{prefix}/"):
            return limit
    return Limit(most=options.http_rate_limit_max, window_s=options.http_rate_limit_window_seconds)


def take(what: str, limit: Limit, *, now: datetime) -> None:
    """Count one request for `what`. Raises TooManyRequests when the window of `now` has no place left.

    Exact under parallel requests: the count and the check are one conditional write.
    """
    window = limit.window_at(now)
    if (what, window) not in _full:
        try:
            with short_deadline():
                counted = repository.count(
                    what, window=window, window_s=limit.window_s, most=limit.most
                )
            if counted:
                return
        except TryAgain:
            report_store_failure("http")
            return
        _full[what, window] = None
    raise TooManyRequests(max(1, ceil(window + limit.window_s - now.timestamp())))


def take_if_counted(what: str, limit: Limit, *, now: datetime) -> None:
    """The same, unless the deployment has switched these limits off."""
    if settings().http_rate_limit_enabled:
        take(what, limit, now=now)


def report_store_failure(limit: str) -> None:
    """Emit the metric of a request that passed uncounted. `limit` is `http`, or `key` for an API key's own limit."""
    count("RateLimitStoreFailures", limit=limit)
