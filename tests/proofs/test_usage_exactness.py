"""Builds that end at the same time with different figures: the day counts all of them, and its item stays small."""

import heapq
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from random import Random

import pytest

from larder.conditions import equals
from larder.errors import TryAgain
from larder.tables import USAGE
from larder.usage.events import Reporter, UsageEvent
from larder.usage.models import MAX_CI_VENDORS, Figures
from larder.usage.repository import PARTS, read_days
from larder.usage.service import record
from larder.usage.vendors import OTHER_CI
from tests.requests import Cloud

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HIT = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=10)
VENDORS, BATCHES_EACH, AT_ONCE = 20, 12, 12
ATTEMPTS = 8


def reporting(owner: str, vendor: int) -> Callable[[], int]:
    """A build that reports until it succeeds, which no client does. Returns its number of events."""
    events = [HIT] * (1 + vendor)
    reporter = Reporter(key_id="key", user_id="user", ci=f"VENDOR_{vendor}", interactive=None)

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
    assert len(day.by_ci.keys() - {OTHER_CI}) == MAX_CI_VENDORS
    for vendor in range(VENDORS):
        named = day.by_ci.get(f"VENDOR_{vendor}", Figures())
        assert named.hits <= BATCHES_EACH * (1 + vendor)


def test_a_hundred_builds_that_end_in_one_second_are_counted_once_each(
    new_team: Cloud, report_lines: list[str]
) -> None:
    owner, builds = new_team.team.id, 100
    reporter = Reporter(key_id="key", user_id="user", ci="GITHUB_ACTIONS", interactive=None)

    def report(number: int) -> float:
        record(owner, [HIT] * (1 + number), reporter, now=NOON)
        return time.monotonic()

    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=builds) as pool:
        last = max(pool.map(report, range(builds)))
    report_lines.append(f"{builds} builds at once: recorded in {last - began:.2f} s")
    (day,) = read_days(owner, [NOON.date()])
    assert day.total.events == day.by_ci["GITHUB_ACTIONS"].events == builds * (builds + 1) // 2
    stored = list(USAGE.query(equals(owner=owner)))
    assert sum("packed" in item for item in stored) == builds


@pytest.mark.parametrize("held_ms", [10, 20, 30])
def test_no_build_of_a_hundred_in_one_second_meets_a_conflict_at_every_attempt(held_ms: int) -> None:
    """Simulated, because no engine reports conflicts: a transaction holds its items for some milliseconds."""
    assert lost(Random(1), parts=PARTS, held_s=held_ms / 1000) == 0
    assert lost(Random(1), parts=1, held_s=held_ms / 1000) > 0


def lost(random: Random, *, parts: int, held_s: float, rounds: int = 200) -> int:
    """How many of the builds of all rounds are not counted, with the pauses of `larder.concurrency.attempts`."""
    refused = 0
    for _ in range(rounds):
        free_at = [0.0] * parts
        waiting = [(random.random(), build, 0, random.randrange(parts)) for build in range(100)]
        heapq.heapify(waiting)
        while waiting:
            at, build, attempt, part = heapq.heappop(waiting)
            if at >= free_at[part]:
                free_at[part] = at + held_s
            elif attempt == ATTEMPTS - 1:
                refused += 1
            else:
                pause = held_s / 2 + random.uniform(0, 0.01 * 2**attempt)
                heapq.heappush(waiting, (at + pause, build, attempt + 1, part))
    return refused
