"""How long background work begins anything more, before Lambda would end its function."""

from collections.abc import Callable
from typing import Protocol

MARGIN_MS = 30_000
"""What is left of the function's time when nothing more is begun: a hundred artifacts may be under way."""


class Clocked(Protocol):
    """The context of an invocation, as far as it tells the time."""

    def get_remaining_time_in_millis(self) -> int: ...


def time_for_more(context: Clocked) -> Callable[[], bool]:
    """What tells, whenever it is called, whether there is time to begin more."""
    return lambda: context.get_remaining_time_in_millis() > MARGIN_MS
