"""What is left of an owner who is gone: a team, or a person with what they stored without one."""

from collections.abc import Callable
from datetime import datetime, timedelta

from larder.artifacts.removal import remove_written
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import forget_totals
from larder.usage import service as usage

UPLOADS_ARE_OVER_AFTER = index.PENDING_LIFETIME + timedelta(hours=1)
"""An upload that was offered just before the deletion may come till then; indexes have followed long before."""


def clear_owner(owner: str, *, now: datetime, has_time: Callable[[], bool]) -> bool:
    """Delete the owner's artifacts as if each were deleted, then usage figures and totals.

    False when there was no time for all of it, or the totals seem to tell of something: another call does the rest,
    once the daily check has mended them. Safe after any part of an earlier call, and beside one.
    """
    return (
        remove_written(owner, writer=None, now=now, has_time=has_time)
        and usage.clear(owner, has_time=has_time)
        and forget_totals(owner)
    )
