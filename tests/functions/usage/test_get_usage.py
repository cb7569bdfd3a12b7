"""GET /v1/usage"""

from datetime import date, timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.teams.members import add_member
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.state import change_state
from larder.teams.teams import create_team
from larder.usage.events import Reporter, UsageEvent
from larder.usage.repository import set_stored, set_uploads
from larder.usage.service import record
from larder.usage.uploads import Stored, Uploads
from tests.conftest import SetOption
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender
from tests.trust.scene import protect, put, seconds_later

SESSION = "4f9d1c1e-6a5b-4d4e-9c57-0a2f6d1e8b11"
ZERO = {
    "events": 0,
    "interactiveEvents": 0,
    "hits": 0,
    "misses": 0,
    "localHits": 0,
    "localMisses": 0,
    "remoteHits": 0,
    "remoteMisses": 0,
    "timeSavedMs": 0,
    "untimedHits": 0,
}


def today() -> date:
    return clock.now().date()


def usage(send: Sender, query: str = "") -> Any:
    asking = Sender(send.token, query=f"slug=acme&{query}") if query else send
    reply = asking("GET", "/v1/usage")
    assert reply.status == 200, reply.body
    return reply.json


def hits(owner: str, days_ago: int, count: int, ci: str | None = None) -> None:
    event = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=1000)
    reporter = Reporter(key_id="key", user_id="user", ci=ci, interactive=None)
    record(owner, [event] * count, reporter, now=clock.now() - timedelta(days=days_ago))


def test_the_reply_says_whether_hidden_artifacts_count(cloud: Cloud) -> None:
    put(cloud.send, "abc", b"12345")
    assert usage(cloud.send)["countsHidden"] is False
    protect(cloud)
    for days, counts in ((0, True), (29, True), (31, False)):
        with seconds_later(days * 86_400):
            shown = usage(cloud.send)
            assert (shown["countsHidden"], shown["artifacts"]) == (counts, 1)
    protect(cloud, on=False)
    assert usage(cloud.send)["countsHidden"] is False
    protect(cloud, keep_stored=True)
    assert usage(cloud.send)["countsHidden"] is False


def test_a_team_that_was_created_protected_hides_nothing(cloud: Cloud, option: SetOption) -> None:
    option("protect_new_teams", "always")
    create_team("Safe", "safe", owner_user_id=cloud.user.id, now=clock.now())
    ada = Sender(start_session(cloud.user, now=clock.now())[1], slug="safe")
    assert usage(ada)["countsHidden"] is False


def test_figures_of_reported_events_and_uploads(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"12345")
    cloud.send("PUT", "/v8/artifacts/def", body=b"123")
    batch = [
        {"sessionId": SESSION, "source": source, "event": event, "hash": "abc", "duration": 400}
        for source, event in (("LOCAL", "MISS"), ("REMOTE", "HIT"), ("LOCAL", "HIT"))
    ]
    headers = {"x-artifact-client-ci": "GITHUB_ACTIONS", "x-artifact-client-interactive": "0"}
    cloud.send("POST", "/v8/artifacts/events", json_body=batch, headers=headers)
    cloud.send("POST", "/v8/artifacts/events", json_body=batch[:1])
    by_github = {
        **ZERO,
        "events": 3,
        "hits": 2,
        "misses": 1,
        "localHits": 1,
        "localMisses": 1,
        "remoteHits": 1,
        "timeSavedMs": 800,
    }
    by_nobody = {**ZERO, "events": 1, "misses": 1, "localMisses": 1}
    total = {**by_github, "events": 4, "misses": 2, "localMisses": 2}
    uploaded = {"uploads": 2, "uploadedBytes": 8}
    stored = {"storedBytes": 8, "scopedBytes": 0, "artifacts": 2}
    day = today().isoformat()
    assert usage(cloud.send, f"from={day}&to={day}") == {
        "owner": cloud.team.id,
        "status": "enabled",
        "block": None,
        "blockReason": None,
        "countsHidden": False,
        **stored,
        "quotaBytes": 10**11,
        "from": day,
        "to": day,
        "total": {**total, **uploaded},
        "ci": [{"ci": "GITHUB_ACTIONS", **by_github}, {"ci": None, **by_nobody}],
        "tools": [{"tool": "turbo", **total}],
        "days": [{"day": day, **total, **uploaded, **stored}],
    }


def test_each_build_tool_has_its_part(cloud: Cloud) -> None:
    hashes = ["abc", "nx-1", "nx-2", "moon-ac-1", "metro-1", "NX-1", "-"]
    batch = [{"sessionId": SESSION, "source": "REMOTE", "event": "HIT", "hash": one, "duration": 10} for one in hashes]
    cloud.send("POST", "/v8/artifacts/events", json_body=batch)
    cloud.send("POST", "/v8/artifacts/events", json_body=[{**batch[1], "event": "MISS"}])
    reply = usage(cloud.send)
    assert [(part["tool"], part["hits"], part["remoteMisses"], part["timeSavedMs"]) for part in reply["tools"]] == [
        ("moon", 1, 0, 10),
        ("nx", 2, 1, 20),
        ("other", 3, 0, 30),
        ("turbo", 1, 0, 10),
    ]
    assert sum(part["events"] for part in reply["tools"]) == reply["total"]["events"] == 8


def test_what_was_stored_on_each_day(cloud: Cloud) -> None:
    noted = Stored(size_bytes=70, artifacts=7, scoped_bytes=20)
    set_stored(cloud.team.id, today() - timedelta(days=2), noted)
    # An earlier check of today. The figures of today are those of now.
    set_stored(cloud.team.id, today(), noted)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"12345")
    days = usage(cloud.send)["days"][-3:]
    assert [(day["storedBytes"], day["scopedBytes"], day["artifacts"]) for day in days] == [
        (70, 20, 7),
        (None, None, None),
        (5, 0, 1),
    ]


def test_the_default_period_is_thirty_days_until_today(cloud: Cloud) -> None:
    hits(cloud.team.id, 29, 1)
    hits(cloud.team.id, 30, 5)
    reply = usage(cloud.send)
    days = [today() - timedelta(days=ago) for ago in reversed(range(30))]
    assert [day["day"] for day in reply["days"]] == [day.isoformat() for day in days]
    assert (reply["from"], reply["to"]) == (days[0].isoformat(), days[-1].isoformat())
    assert reply["total"]["hits"] == reply["days"][0]["hits"] == 1


def test_only_the_requested_days(cloud: Cloud) -> None:
    for ago in range(5):
        hits(cloud.team.id, ago, 1 + ago, "GITLAB")
    first, last = today() - timedelta(days=3), today() - timedelta(days=1)
    reply = usage(cloud.send, f"from={first}&to={last}")
    assert [day["hits"] for day in reply["days"]] == [4, 3, 2]
    assert [(part["ci"], part["hits"]) for part in reply["ci"]] == [("GITLAB", 9), (None, 0)]
    assert usage(cloud.send, f"to={last}")["to"] == last.isoformat()
    assert len(usage(cloud.send, f"from={first}")["days"]) == 4


def test_uploads_of_days_that_the_sweep_has_archived(cloud: Cloud) -> None:
    set_uploads(cloud.team.id, today() - timedelta(days=3), Uploads(count=7, size_bytes=70))
    # A crash has left this day in the totals too.
    set_uploads(cloud.team.id, today(), Uploads(count=1, size_bytes=10))
    cloud.send("PUT", "/v8/artifacts/abc", body=b"0123456789")
    reply = usage(cloud.send)
    assert (reply["total"]["uploads"], reply["total"]["uploadedBytes"]) == (8, 80)


@pytest.mark.usefixtures("refusing")
def test_the_effective_status_and_quota(cloud: Cloud, option: SetOption) -> None:
    option("default_quota_bytes", 100)
    assert usage(cloud.send)["quotaBytes"] == 100
    change_state(cloud.team.id, quota_bytes=5)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"12345")
    assert (usage(cloud.send)["quotaBytes"], usage(cloud.send)["status"]) == (5, "over_limit")
    change_state(cloud.team.id, caching=CachingStatus.DISABLED)
    assert usage(cloud.send)["status"] == "disabled"


def add(cloud: Cloud, role: Role) -> Any:
    from larder.accounts.service import create_user

    member = create_user("member@acme.example", "Member", now=clock.now())
    add_member(cloud.team.id, member.id, role, now=clock.now())
    return member


def test_a_user_reads_their_personal_usage(cloud: Cloud, personal: Sender) -> None:
    hits(cloud.team.id, 0, 3)
    hits(cloud.user.id, 0, 1)
    reply = usage(personal)
    assert (reply["owner"], reply["total"]["hits"]) == (cloud.user.id, 1)


@pytest.mark.parametrize("block", list(Block))
def test_a_blocked_owner_can_still_read_it(cloud: Cloud, block: Block) -> None:
    change_state(cloud.team.id, block=block, block_reason="ask Eve")
    assert cloud.send("GET", "/v8/artifacts/status").status == 402
    reply = usage(cloud.send)
    # The block does not change the caching status.
    assert (reply["block"], reply["blockReason"], reply["status"]) == (block, "ask Eve", "enabled")
    change_state(cloud.team.id, unblock=True)
    assert (usage(cloud.send)["block"], usage(cloud.send)["blockReason"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from=yesterday", "from: must be a day"),
        ("to=21.11.2026", "to: must be a day"),
        ("to=2026-02-30", "to: must be a day"),
        ("to=2026-1-1", "to: must be a day"),
        ("to=20261121", "to: must be a day"),
        ("to=0001-01-01", "to: must be a day"),
        ("to=9999-12-31", "to: must be a day"),
        ("to=2026-11-21T00:00", "to: must be a day"),
        ("to=2026-11-2%C2%B2", "to: must be a day"),
        ("from=", "from: must be a day"),
        ("to=2026-11-21&to=2026-11-21", "to: must be a day"),
        ("from=2026-11-21&to=2026-11-20", "from: must not be after `to`"),
        ("from=2099-12-31", "from: must not be after `to`"),
        ("from=2025-11-20&to=2026-11-21", "from: must be at most 366 days"),
        ("from=2000-01-01", "from: must be at most 366 days"),
    ],
)
def test_400_names_the_parameter(cloud: Cloud, query: str, message: str) -> None:
    with counted() as calls:
        reply = Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/usage")
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(message)
    assert calls.sequential == 0


@pytest.mark.parametrize("query", ["to=2000-01-01", "to=2099-12-31", "from=2024-01-01&to=2024-12-31"])
def test_the_longest_period_and_the_last_day(cloud: Cloud, query: str) -> None:
    reply = usage(cloud.send, query)
    assert len(reply["days"]) == (366 if "from" in query else 30)


def test_a_missing_token_is_reported_before_any_other_error(cloud: Cloud) -> None:
    assert Sender(None, query="from=never")("GET", "/v1/usage").status == 401


@pytest.mark.parametrize(("days", "reads"), [(1, 1), (30, 1), (100, 1), (366, 4)])
def test_the_cost_depends_on_the_days_and_not_on_their_events(cloud: Cloud, days: int, reads: int) -> None:
    for number in range(20):
        hits(cloud.team.id, 0, 50, f"CI_{number}")
    query = f"slug=acme&from={today() - timedelta(days=days - 1)}"
    with counted() as calls:
        assert Sender(cloud.token, query=query)("GET", "/v1/usage").status == 200
    assert calls.steps[-1] == [*["BatchGetItem"] * reads, "Query"]
    # The key and the slug; member, team and totals; the days.
    assert calls.sequential == 3
