"""The allowances of reported runs and of their inputs: what is stored of them in a day.

Reports are kept for `RunRetentionDays` and are in no quota, so each day has its share of `MaxStoredBytes`. Trusted
jobs, other jobs, and the caches of people have shares of their own, so that one cannot use up another's. A writer comes
first, then the owner, then all owners together.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from larder.rate_limits.models import Limit
from larder.rate_limits.service import take_if_counted
from larder.settings import settings

DAY_S = 86_400

ALL_SHARE = 20
"""All owners have a twentieth of `MaxStoredBytes` for each sort and part: three tenths together."""

OWNERS_SHARE = 4
"""An owner has a quarter of that, or of the default's if there is no limit."""

WRITERS_SHARE = {True: 2, False: 8}
"""One trusted writer has half of what its owner has, and any other an eighth."""

_DEFAULT_BYTES = 10**12


class Sort(StrEnum):
    RUNS = "runs"
    INPUTS = "run-inputs"


class Part(StrEnum):
    TRUSTED = "trusted"
    """Who writes what everyone in the team reads."""
    OTHERS = "others"
    """Who writes an own scope in a team, such as pull requests."""
    PEOPLE = "people"
    """Users with a cache of their own, also those whose address is not proven."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who stores reports. All keys of a user are one `writer`, and so are the jobs of a rule or of an own scope."""

    owner: str
    part: Part
    writer: str


def take_stored(sort: Sort, sender: Sender, amount: int, *, now: datetime) -> None:
    """Count bytes that a report stores. Raises TooManyRequests."""
    most = settings().max_stored_bytes
    of_all = (most or _DEFAULT_BYTES) // settings().run_retention_days // ALL_SHARE
    of_owner = of_all // OWNERS_SHARE
    of_writer = of_owner // WRITERS_SHARE[sender.part is Part.TRUSTED]
    owner = f"{sort}#{sender.owner}#{sender.part}"
    counters = [(owner, of_owner)]
    if sender.part is not Part.PEOPLE:
        counters.insert(0, (f"{owner}#{sender.writer}", of_writer))
    if most:
        counters.append((f"{sort}##{sender.part}", of_all))
    for what, bytes_a_day in counters:
        take_if_counted(what, Limit(most=bytes_a_day, window_s=DAY_S), now=now, amount=amount)
