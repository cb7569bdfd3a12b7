"""Delete what a deleted owner stored: a team's artifacts, or those that a user stored without a team."""

from collections.abc import Callable
from datetime import datetime, timedelta

from larder.artifacts.removal_targets import EVERYTHING
from larder.artifacts.removals import delete_target
from larder.artifacts.repository import breakdowns, index, scopes
from larder.artifacts.repository.allotments import delete_with_allotment
from larder.usage import service as usage

UPLOADS_ARE_OVER_AFTER = index.PENDING_LIFETIME + timedelta(hours=1)
"""An upload that was offered just before the deletion can still arrive until then. Index lag is much shorter."""


def delete_owner_data(owner: str, *, now: datetime, has_time: Callable[[], bool]) -> bool:
    """Delete the owner's artifacts one by one, then what is recorded of its scopes, usage figures and totals.

    Returns False if time ran out, or if the totals are not zero yet. Call it again then: the daily check corrects the
    totals. Safe to repeat after an interrupted call, and safe to run in parallel.
    """
    gone = (
        delete_target(owner, EVERYTHING, now=now, has_time=has_time)
        and scopes.delete_all(owner, has_time=has_time)
        and usage.delete_usage(owner, has_time=has_time)
        and delete_with_allotment(owner)
    )
    if gone:
        # After the totals, because the sweep writes it at their check.
        breakdowns.delete_breakdown(owner)
    return gone
