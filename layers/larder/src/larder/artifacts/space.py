"""What takes the space of an owner, for members who manage it."""

from larder.artifacts.breakdown import Breakdown
from larder.artifacts.repository import breakdowns


def read_breakdown(owner: str) -> Breakdown | None:
    """What takes the space, as the last complete check of the totals found it. None if there was none."""
    return breakdowns.read_breakdown(owner)
