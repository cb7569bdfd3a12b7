"""Public read keys: strangers have them, so what they give in a day of UTC has bounds.

docs/trust.md#forks-and-contributors-of-a-public-repository says what they are for.
"""

from datetime import datetime

from larder.api_keys import repository
from larder.api_keys.models import ApiKey, day_of
from larder.concurrency import attempts
from larder.errors import CachingPaused, TryAgain, Unauthenticated


def take(
    key: ApiKey | None, *, requests: int = 1, size_bytes: int = 0, base_url: str, now: datetime
) -> None:
    """Count what a request with a public read key asks for, before it gets it. Does nothing for any other credential.

    `base_url` is the origin of the link in the mail to the owners. One conditional write, as long as the key is within
    its bounds. Raises CachingPaused, Unauthenticated for a key that was deleted meanwhile, TryAgain.
    """
    daily = None if key is None else key.daily
    if key is None or daily is None:
        return
    for _ in attempts():
        # Another instance, whose clock is ahead, may have begun the next day.
        today = max(day_of(now), daily.day or "")
        given = (daily.requests, daily.size_bytes) if daily.day == today else (0, 0)
        if daily.paused_on == today:
            raise CachingPaused
        if given[0] + requests > daily.max_requests or given[1] + size_bytes > daily.max_bytes:
            repository.pause(key, today, base_url=base_url, now=now)
            raise CachingPaused
        passed, found = repository.take(key, daily, today, requests=requests, size_bytes=size_bytes)
        if passed:
            return
        if found is None or found.daily is None:
            raise Unauthenticated
        daily = found.daily
    raise TryAgain
