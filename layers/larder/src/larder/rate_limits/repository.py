"""The table of rate limits: one item for what is counted in one window, removed by its time to live."""

from larder.conditions import below, missing
from larder.errors import TryAgain
from larder.tables import RATE_LIMITS, ClientError, commit

_KEPT_S = 60
"""A window's item outlives it by so much, so that clocks may differ."""


def count(what: str, *, window: int, window_s: int, most: int) -> bool:
    """Add one to a window's count unless it is `most` already; False when it is.

    One conditional write, whatever the outcome. The window is part of the key, so none ever has to be begun. Raises
    TryAgain for every failure of the store.
    """
    has_room = missing("request_count") | below(request_count=most)
    ends = {"expires_at": window + window_s + _KEPT_S}
    try:
        return commit(
            RATE_LIMITS.update(what, window, set=ends, add={"request_count": 1}, when=has_room)
        )
    except ClientError as error:
        raise TryAgain from error
