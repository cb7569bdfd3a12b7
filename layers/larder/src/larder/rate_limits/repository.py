"""The table of rate limits: one item per counter and window. Its time to live deletes it."""

from larder.conditions import below, missing
from larder.errors import TryAgain
from larder.tables import RATE_LIMITS, ClientError, commit

_KEPT_S = 60
"""How many seconds an item is kept after its window, because clocks differ."""


def count(what: str, *, window: int, window_s: int, most: int) -> bool:
    """Add one to the count of a window. False if it is `most` already.

    Always one conditional write: the window is part of the key, so a new window needs no reset. Raises TryAgain for
    every failure of DynamoDB.
    """
    has_room = missing("request_count") | below(request_count=most)
    ends = {"expires_at": window + window_s + _KEPT_S}
    try:
        return commit(
            RATE_LIMITS.update(what, window, set=ends, add={"request_count": 1}, when=has_room)
        )
    except ClientError as error:
        raise TryAgain from error
