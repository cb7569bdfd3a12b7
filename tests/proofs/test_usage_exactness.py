"""Builds that end at the same time with different figures: the day counts all of them, and its item stays small."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from larder.errors import TryAgain
from larder.usage.models import MAX_CI_VENDORS, OTHER_CI, Reporter, UsageEvent
from larder.usage.repository import read_days
from larder.usage.service import record
from tests.requests import Cloud

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HIT = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=10)
VENDORS, BATCHES_EACH, AT_ONCE = 20, 12, 12


def reporting(owner: str, vendor: int) -> Callable[[], int]:
    """A build that reports until it succeeds, which no client does. Returns its number of events."""
    events = [HIT] * (1 + vendor)
    reporter = Reporter(key_id="key", ci=f"VENDOR_{vendor}", interactive=None)

    def report() -> int:
        for _ in range(10):
            try:
                record(owner, events, reporter, now=NOON)
            except TryAgain:
                continue
            return len(events)
        raise TryAgain

    return report


def test_a_day_counts_every_batch_once_in_total_and_by_ci(new_team: Cloud) -> None:
    owner = new_team.team.id
    jobs = [reporting(owner, vendor) for _ in range(BATCHES_EACH) for vendor in range(VENDORS)]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        reported = sum(pool.map(lambda job: job(), jobs))
    (day,) = read_days(owner, [NOON.date()])
    assert day.total.hits == sum(part.hits for part in day.by_ci.values()) == reported
    told_apart = {
        f"VENDOR_{vendor}": BATCHES_EACH * (1 + vendor)
        for vendor in range(VENDORS)
        if f"VENDOR_{vendor}" in day.by_ci
    }
    assert len(told_apart) == MAX_CI_VENDORS
    hits = {vendor: part.hits for vendor, part in day.by_ci.items()}
    assert hits == {**told_apart, OTHER_CI: reported - sum(told_apart.values())}
