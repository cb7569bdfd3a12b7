"""`larder usage`."""

import uuid

from larder import clock
from tests.requests import Cloud

from .conftest import Larder


def report(cloud: Cloud, source: str, event: str, duration_ms: int) -> None:
    one = {
        "sessionId": str(uuid.uuid4()),
        "source": source,
        "event": event,
        "hash": "abc",
        "duration": duration_ms,
    }
    assert cloud.send("POST", "/v8/artifacts/events", json_body=[one]).status == 200


def test_the_days_and_their_total(larder: Larder, cloud: Cloud) -> None:
    report(cloud, "REMOTE", "HIT", 90_000)
    report(cloud, "LOCAL", "MISS", 0)
    told = larder.json("usage", "acme", "--days", "3")
    assert told["team"] == "acme"
    *before, today = told["days"]
    assert len(before) == 2
    assert all(day["events"] == 0 for day in before)
    assert today.pop("day") == clock.now().date().isoformat()
    assert today == told["total"]
    assert (today["hits"], today["misses"], today["remote_hits"]) == (1, 1, 1)
    assert today["time_saved_ms"] == 90_000


def test_the_table_shows_the_days_with_events(larder: Larder, cloud: Cloud) -> None:
    report(cloud, "REMOTE", "HIT", 90_000)
    shown = larder("usage", cloud.team.id).stdout
    assert [line.split()[0] for line in shown.splitlines()[2:]] == [
        clock.now().date().isoformat(),
        "total",
    ]
    assert "1 min 30 s" in shown


def test_a_team_that_reported_nothing(larder: Larder, cloud: Cloud) -> None:
    shown = larder("usage", "acme", "--days", "7").stdout
    assert shown == "no client of acme reported anything in the last 7 days\n"


def test_what_cannot_be_shown_is_refused(larder: Larder, cloud: Cloud) -> None:
    assert "there is no team nobody" in larder.refusal("usage", "nobody")
    assert "'--days'" in larder.refusal("usage", "acme", "--days", "0", status=2)
