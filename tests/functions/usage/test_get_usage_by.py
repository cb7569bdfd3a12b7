"""GET /v1/usage/by"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.hashing import random_id
from larder.usage.events import Reporter, UsageEvent
from larder.usage.models import MAX_KEY_PARTS
from larder.usage.service import record
from tests.requests import Cloud, Sender

BY = "/v1/usage/by"
HIT = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=1000)
MISS = UsageEvent(session_id="s", source="REMOTE", event="MISS", hash="abc", duration_ms=0)
RULE = "rule_" + "a" * 27


def by_key(send: Sender, query: str = "") -> Any:
    reply = Sender(send.token, query=f"slug=acme&what=key{query}")("GET", BY)
    assert reply.status == 200, reply.body
    return reply.json


def report(owner: str, key: str, *events: UsageEvent, rule: str | None = None, days_ago: int = 0) -> None:
    user = None if rule else f"user of {key}"
    reporter = Reporter(key_id=key, user_id=user, rule_id=rule, ci="GITLAB", interactive=None)
    record(owner, events, reporter, now=clock.now() - timedelta(days=days_ago))


def test_the_events_of_a_key_count_for_it_and_its_user(cloud: Cloud, manage: Sender) -> None:
    session = "4f9d1c1e-6a5b-4d4e-9c57-0a2f6d1e8b11"
    hit = {"sessionId": session, "source": "REMOTE", "event": "HIT", "hash": "a", "duration": 40}
    for _ in range(2):
        assert cloud.send("POST", "/v8/artifacts/events", json_body=[hit]).status == 200
    found = by_key(manage)
    assert (found["owner"], found["from"] < found["to"]) == (cloud.team.id, True)
    (part,) = found["keys"]
    assert (part["id"], part["userId"]) == (cloud.key.id, cloud.user.id)
    assert (part["hits"], part["remoteHits"], part["timeSavedMs"]) == (2, 2, 80)
    assert found["others"]["events"] == 0


def test_jobs_count_for_their_rule(cloud: Cloud, manage: Sender) -> None:
    for job in ("job1", "job2"):
        report(cloud.team.id, job, HIT, MISS, rule=RULE)
    report(cloud.team.id, "key", HIT)
    found = by_key(manage)["keys"]
    assert [(part["id"], part["userId"], part["events"]) for part in found] == [
        (RULE, None, 4),
        ("key", "user of key", 1),
    ]


def test_a_period_adds_up_its_days(cloud: Cloud, manage: Sender) -> None:
    today = clock.now().date()
    for days_ago in (0, 1, 2, 3):
        report(cloud.team.id, "key", HIT, days_ago=days_ago)
    report("another", "key", HIT)
    first, last = today - timedelta(days=2), today - timedelta(days=1)
    assert by_key(manage, f"&from={first}&to={last}")["keys"][0]["hits"] == 2
    assert by_key(manage, f"&from={today}")["keys"][0]["hits"] == 1
    day = today - timedelta(days=9)
    assert by_key(manage, f"&from={day}&to={day}")["keys"] == []


def test_reports_at_the_same_time_are_all_counted(cloud: Cloud, manage: Sender) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: report(cloud.team.id, "key", HIT, MISS), range(40)))
    (part,) = by_key(manage)["keys"]
    assert (part["hits"], part["misses"], part["timeSavedMs"]) == (40, 40, 40_000)


def test_the_keys_with_the_fewest_tasks_are_added_up(cloud: Cloud, manage: Sender) -> None:
    for number in range(MAX_KEY_PARTS + 2):
        report(cloud.team.id, f"key{number:02}", *[HIT] * (1 if number < 2 else 2))
    found = by_key(manage)
    assert len(found["keys"]) == MAX_KEY_PARTS
    assert {part["hits"] for part in found["keys"]} == {2}
    assert found["others"]["hits"] == 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "what"),
        ("what=task", "what"),
        ("what=key&from=2026-01-01&to=2026-02-01", "from"),
        ("what=key&key=a", "key"),
    ],
)
def test_400_for_another_question(manage: Sender, query: str, field: str) -> None:
    reply = Sender(manage.token, query=f"slug=acme&{query}")("GET", BY)
    assert reply.status == 400
    assert field in reply.json["error"]["message"]


def test_a_key_of_builds_cannot_read_it(cloud: Cloud) -> None:
    report(cloud.team.id, random_id(), HIT)
    reply = Sender(cloud.token, query="slug=acme&what=key")("GET", BY)
    assert (reply.status, reply.json["error"]["code"]) == (403, "missing_permission")
