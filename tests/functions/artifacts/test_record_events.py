"""POST /v8/artifacts/events"""

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine

from larder import aws, clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.settings import settings
from larder.tables import USAGE, Item, commit
from larder.usage.models import KEPT_EVENTS_PER_HOUR, Figures
from larder.usage.repository import PARTS, read_batches, read_days
from tests.conftest import SetOption
from tests.requests import Cloud, Reply, Sender

SESSION = "4f9d1c1e-6a5b-4d4e-9c57-0a2f6d1e8b11"


def event(**changes: Any) -> dict[str, Any]:
    usual = {"sessionId": SESSION, "source": "REMOTE", "event": "HIT", "hash": "abc"}
    return {**usual, "duration": 400, **changes}


def figures_of_today(owner: str) -> Figures:
    return read_days(owner, [clock.now().date()])[0].total


def usage_items() -> list[Item]:
    return [aws.deserialize(item) for item in aws.dynamodb().scan(TableName=settings().usage_table)["Items"]]


def test_200_without_a_body(send: Sender) -> None:
    reply = send("POST", "/v8/artifacts/events", json_body=[event()])
    assert (reply.status, reply.body) == (200, b"")


def test_a_day_sums_up_hits_misses_sources_and_time_saved(cloud: Cloud) -> None:
    batch = [
        event(source="LOCAL", event="MISS", duration=0),
        event(source="REMOTE", event="HIT", duration=1500),
        event(source="LOCAL", event="HIT", duration=250.4),
        event(source="REMOTE", event="MISS", duration=9000),
    ]
    cloud.send("POST", "/v8/artifacts/events", json_body=batch)
    cloud.send("POST", "/v8/artifacts/events", json_body=[event(duration=50)])
    assert figures_of_today(cloud.team.id) == Figures(
        events=5, hits=3, misses=2, local_hits=1, local_misses=1, remote_hits=2, remote_misses=1, time_saved_ms=1800
    )


def test_hits_without_a_duration_are_counted(cloud: Cloud) -> None:
    batch = [
        event(event="HIT", duration=0),
        event(source="LOCAL", event="HIT", duration=0),
        event(event="HIT", duration=0.4),
        event(event="MISS", duration=0),
    ]
    cloud.send("POST", "/v8/artifacts/events", json_body=batch)
    assert figures_of_today(cloud.team.id).untimed_hits == 2


def test_a_batch_is_one_item_for_any_number_of_events(cloud: Cloud) -> None:
    headers = {"x-artifact-client-ci": "GITHUB_ACTIONS", "x-artifact-client-interactive": "0"}
    cloud.send("POST", "/v8/artifacts/events", json_body=[event()] * 80, headers=headers)
    items = usage_items()
    (batch,) = [item for item in items if "packed" in item]
    assert len(items) == 4
    assert len(batch["packed"]) < 200
    ((_, events),) = read_batches(cloud.team.id, clock.now() - timedelta(minutes=1), clock.now(), most=10)
    assert {tuple(each) for each in events} == {(SESSION, "REMOTE", "HIT", "abc", 400)}
    assert len(events) == 80
    assert (batch["ci"], batch["interactive"]) == ("GITHUB_ACTIONS", False)
    assert batch["key_id"] == cloud.key.id


def test_a_day_has_figures_for_each_ci(cloud: Cloud) -> None:
    for ci in ("GITHUB_ACTIONS", "GITLAB", "GITHUB_ACTIONS"):
        headers = {"x-artifact-client-ci": ci}
        cloud.send("POST", "/v8/artifacts/events", json_body=[event()] * 3, headers=headers)
    cloud.send("POST", "/v8/artifacts/events", json_body=[event()])
    (today,) = read_days(cloud.team.id, [clock.now().date()])
    assert today.total.hits == 10
    assert {ci: part.hits for ci, part in today.by_ci.items()} == {"GITHUB_ACTIONS": 6, "GITLAB": 3}


def test_single_events_expire_and_daily_figures_stay(cloud: Cloud, option: SetOption) -> None:
    option("event_retention_days", 10)
    cloud.send("POST", "/v8/artifacts/events", json_body=[event()])
    items = usage_items()
    (batch,) = [item["expires_at"] for item in items if "packed" in item]
    (day,) = [item.get("expires_at") for item in items if item["day"].startswith("day#")]
    assert day is None
    assert batch == pytest.approx(clock.now().timestamp() + 10 * 86_400, abs=60)


def test_an_empty_array_stores_nothing(send: Sender) -> None:
    assert send("POST", "/v8/artifacts/events", json_body=[]).status == 200
    assert aws.dynamodb().scan(TableName=settings().usage_table)["Count"] == 0


def test_an_event_with_an_invalid_hash_is_skipped_and_logged(cloud: Cloud, log: StringIO) -> None:
    odd = ["", "a/b", "é", "abc\n", "f" * 129, "f" * 100_000, "status"]
    batch = [event(), *(event(hash=hash) for hash in odd), event(event="MISS")]
    assert cloud.send("POST", "/v8/artifacts/events", json_body=batch).status == 200
    today = figures_of_today(cloud.team.id)
    assert (today.events, today.hits, today.misses, today.time_saved_ms) == (2, 1, 1, 400)
    assert cloud.send("POST", "/v8/artifacts/events", json_body=[event()]).status == 200
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    answered = [line for line in lines if line["message"] == "answered"]
    assert [line.get("skipped_events") for line in answered] == [len(odd), None]


def test_events_with_only_invalid_hashes_store_nothing(send: Sender) -> None:
    assert send("POST", "/v8/artifacts/events", json_body=[event(hash="")]).status == 200
    assert aws.dynamodb().scan(TableName=settings().usage_table)["Count"] == 0


@pytest.mark.parametrize("duration", [-1, 10**10 + 1, 1e300, 10**400])
def test_a_duration_of_no_build_costs_one_event(cloud: Cloud, duration: float) -> None:
    batch = [event(duration=duration), event(event="HIT", duration=50)]
    assert cloud.send("POST", "/v8/artifacts/events", json_body=batch).status == 200
    assert figures_of_today(cloud.team.id).events == 1


def test_the_duration_is_optional(send: Sender) -> None:
    one = event()
    del one["duration"]
    assert send("POST", "/v8/artifacts/events", json_body=[one]).status == 200


def test_400_for_too_many_events(send: Sender, option: SetOption) -> None:
    option("max_events", 2)
    assert send("POST", "/v8/artifacts/events", json_body=[event()] * 2).status == 200
    reply = send("POST", "/v8/artifacts/events", json_body=[event()] * 3)
    assert reply.message == "body: must hold at most 2 events, not 3"


def test_429_for_a_user_who_reports_more_events_in_an_hour_than_the_limit(cloud: Cloud, option: SetOption) -> None:
    option("max_events_per_hour", PARTS * 100)
    another = replace(cloud.send, token=create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1])
    keys = NewKey(user_id=None, team_id=cloud.team.id)
    of_team = replace(cloud.send, token=create_key(keys, now=clock.now())[1])

    def report(send: Sender, events: int) -> Reply:
        return send("POST", "/v8/artifacts/events", json_body=[event()] * events)

    with time_machine.travel(clock.now().replace(hour=10, minute=59, second=0), tick=False):
        replies = [report(cloud.send, 50) for _ in range(PARTS * 6)]
        refused = [reply for reply in replies if reply.status != 200]
        assert {(reply.status, reply.headers["retry-after"]) for reply in refused} == {(429, "60")}
        accepted = len(replies) - len(refused)
        assert accepted <= PARTS * 2
        assert figures_of_today(cloud.team.id).events == 50 * accepted
        assert [report(another, 100).status for _ in range(PARTS)].count(200) <= PARTS * 2 - accepted
        assert report(of_team, 3).status == 200
    with time_machine.travel(clock.now().replace(hour=11, minute=0, second=0), tick=False):
        assert report(cloud.send, 50).status == 200


def test_above_a_million_events_in_an_hour_only_the_figures_are_stored(cloud: Cloud) -> None:
    with time_machine.travel(clock.now().replace(hour=10, minute=0, second=0), tick=False):
        for part in "0123456789abcdef":
            counted = {"owner": cloud.team.id, "day": f"{clock.now():%Y-%m-%dT%H}#{cloud.user.id}#{part}"}
            assert commit(USAGE.put({**counted, "events": KEPT_EVENTS_PER_HOUR // PARTS - 5}))
        replies = [cloud.send("POST", "/v8/artifacts/events", json_body=[event()] * 5) for _ in range(PARTS * 3)]
        assert {reply.status for reply in replies} == {200}
        assert figures_of_today(cloud.team.id).events == 5 * len(replies)
        assert 0 < sum("packed" in item for item in usage_items()) <= PARTS
