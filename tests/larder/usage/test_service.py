"""Record usage events."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from larder import clock
from larder.conditions import begins_with, equals
from larder.errors import TryAgain
from larder.tables import USAGE, Item, commit
from larder.usage.events import OTHER_TOOL, TOOLS, Reporter, UsageEvent
from larder.usage.models import MAX_CI_VENDORS, Day, Figures
from larder.usage.repository import PARTS, read_days
from larder.usage.service import record
from larder.usage.vendors import OTHER_CI, ci_vendor
from tests.faults import about, answering, error
from tests.proofs.aws_calls import counted

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HIT = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=10)
REPORTER = Reporter(key_id="key", user_id="user", ci=None, interactive=None)
MISS = UsageEvent(session_id="s", source="LOCAL", event="MISS", hash="abc", duration_ms=0)


def by(ci: str | None, *, interactive: bool | None = None) -> Reporter:
    return Reporter(key_id="key", user_id="user", ci=ci, interactive=interactive)


def figures_of_today(owner: str) -> Figures:
    return read_days(owner, [clock.now().date()])[0].total


def day_of(owner: str, at: datetime = NOON) -> Day:
    return read_days(owner, [at.date()])[0]


def stored_parts(owner: str) -> list[Item]:
    return [*USAGE.query(equals(owner=owner) & begins_with(day=f"day#{NOON.date().isoformat()}"))]


def test_a_write_that_fails_leaves_the_other_figures(aws_in_memory: None) -> None:
    failing = answering("dynamodb", "UpdateItem", error("InternalServerError", 500), only=about("by#"))
    with failing, pytest.raises(TryAgain):
        record("team_a", [HIT], REPORTER, now=clock.now())
    assert figures_of_today("team_a").hits == 1


@pytest.mark.parametrize(
    ("sent", "counted_as"),
    [
        (None, None),
        ("GITHUB_ACTIONS", "GITHUB_ACTIONS"),
        ("github-actions", "GITHUB_ACTIONS"),
        ("GitHub Actions", "GITHUB_ACTIONS"),
        (" Xcode  Cloud ", "XCODE_CLOUD"),
        ("other", "OTHER"),
        ("a" * 32, "A" * 32),
        ("a" * 33, OTHER_CI),
        ("%%%", OTHER_CI),
        ("ci.X.hits", "CI_X_HITS"),
    ],
)
def test_spellings_of_a_vendor_are_one(sent: str | None, counted_as: str | None) -> None:
    assert ci_vendor(sent) == counted_as


def test_each_ci_vendor_has_its_part_of_the_day(aws_in_memory: None) -> None:
    for events, ci in (([HIT, MISS], "GITHUB_ACTIONS"), ([HIT], "GITLAB"), ([MISS], None)):
        record("team_a", events, by(ci), now=NOON)
    record("team_a", [HIT], by("github_actions"), now=NOON)
    record("team_b", [HIT], by("CIRCLE"), now=NOON)
    day = day_of("team_a")
    assert (day.total.events, day.total.hits, day.total.time_saved_ms) == (5, 3, 30)
    assert day.by_ci == {
        "GITHUB_ACTIONS": Figures(events=3, hits=2, misses=1, local_misses=1, remote_hits=2, time_saved_ms=20),
        "GITLAB": Figures(events=1, hits=1, remote_hits=1, time_saved_ms=10),
    }


def test_events_of_interactive_shells_are_counted_separately(aws_in_memory: None) -> None:
    for interactive in (True, False, None):
        record("team_a", [HIT, MISS], by("GITLAB", interactive=interactive), now=NOON)
    day = day_of("team_a")
    assert day.total.interactive_events == day.by_ci["GITLAB"].interactive_events == 2


def test_a_batch_is_four_writes_for_every_tool_and_vendor(aws_in_memory: None) -> None:
    hashes = [f"{tool}-{number}" for tool in (*TOOLS, "invented") for number in range(9)]
    events = [replace(HIT, hash=hash) for hash in hashes]
    with counted() as calls:
        record("team_a", events, by("GITHUB_ACTIONS"), now=NOON)
    assert calls.steps == [["UpdateItem"], ["PutItem", "UpdateItem", "UpdateItem"]]
    day = day_of("team_a")
    hits = {tool: part.hits for tool, part in day.by_tool.items()}
    assert hits == dict.fromkeys((*TOOLS, OTHER_TOOL), 9)
    for part in stored_parts("team_a"):
        assert sum(len(name) for name in part) < 2_000


@pytest.mark.thorough
def test_invented_vendor_names_do_not_grow_the_day_without_limit(aws_in_memory: None) -> None:
    invented = PARTS * MAX_CI_VENDORS + 40
    for number in range(invented):
        record("team_a", [HIT], by(f"MADE-UP {number}"), now=NOON)
    for _ in range(3):
        record("team_a", [HIT], by("?" * 50), now=NOON)
    day = day_of("team_a")
    assert len(day.by_ci) == MAX_CI_VENDORS + 1
    assert day.by_ci[OTHER_CI].hits == invented - MAX_CI_VENDORS + 3
    assert sum(part.hits for part in day.by_ci.values()) == day.total.hits == invented + 3
    for part in stored_parts("team_a"):
        assert sum(len(name) for name in part) < 2_000


def test_a_day_lists_the_vendors_with_the_most_events(aws_in_memory: None) -> None:
    for number in range(MAX_CI_VENDORS):
        record("team_a", [HIT] * 2, by(f"MADE-UP {number}"), now=NOON)
    record("team_a", [HIT], by("GITLAB"), now=NOON)
    record("team_a", [HIT], by("GITLAB"), now=NOON + timedelta(days=1))
    assert "GITLAB" not in day_of("team_a").by_ci
    assert day_of("team_a", NOON + timedelta(days=1)).by_ci["GITLAB"].hits == 1


def test_a_day_from_before_vendors_were_counted_can_be_read_and_continued(aws_in_memory: None) -> None:
    item = {"owner": "team_a", "day": "2026-11-21", "events": 4, "hits": 3, "misses": 1}
    assert commit(USAGE.put(item))
    assert day_of("team_a") == Day(total=Figures(events=4, hits=3, misses=1))
    record("team_a", [HIT], by("GITLAB"), now=NOON)
    day = day_of("team_a")
    assert (day.total.hits, day.by_ci["GITLAB"].hits) == (4, 1)


def test_days_are_in_the_requested_order_without_gaps(aws_in_memory: None) -> None:
    days = [NOON.date() - timedelta(days=ago) for ago in range(366)]
    for ago in (0, 99, 100, 250, 365):
        record("team_a", [HIT], by(None), now=NOON - timedelta(days=ago))
    with counted() as calls:
        found = read_days("team_a", days)
    assert [ago for ago, day in enumerate(found) if day.total.hits] == [0, 99, 100, 250, 365]
    assert calls.steps == [["BatchGetItem"] * 4 + ["Query"]]
