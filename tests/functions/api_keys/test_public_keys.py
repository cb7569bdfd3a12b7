"""Public read keys: what strangers with one can do, and the bounds of a day."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import time_machine

from larder import clock
from larder.api_keys.keys import create_key, find_key, revoke_key, rotate_key
from larder.api_keys.models import FETCHES_ONLY, ApiKey, Daily, Refill
from larder.api_keys.properties import NewKey
from larder.api_keys.public import take
from larder.errors import CachingPaused, InvalidValue
from larder.settings import settings
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.protection import ProtectionChange, change_protection
from larder.usage.models import Period
from larder.usage.service import read_usage_by_key
from local.template import DEFAULT_PATH
from tests.catalogue import TURBO, valid
from tests.default_template import template
from tests.direct_uploads import upload
from tests.functions.api_keys.people import API, member, refused, signed_in, verified
from tests.mailbox import Mailbox
from tests.requests import Cloud, Context, Reply, Sender, invoke

SWEEP = "accounts.sweep_deleted_users.handler"
HASH = "abc"
BOUNDS = {"dailyRequests": 5, "dailyBytes": 1000}
FIELDS = {"configId": "team", "organizationId": "acme", "permissions": {"artifacts": ["fetch"]}, **BOUNDS}
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)

GIVEN = {
    "GET /v8/artifacts/status": 200,
    "GET /v8/artifacts/{hash}": 200,
    "HEAD /v8/artifacts/{hash}": 200,
    "POST /v8/artifacts": 200,
    "POST /v8/artifacts/events": 200,
}
"""All that a public read key can do."""


def create(by: Sender, **fields: Any) -> Reply:
    return by("POST", f"{API}/create", json_body={**FIELDS, **fields})


def public(cloud: Cloud, requests: int = 5, size_bytes: int = 1000) -> tuple[ApiKey, Sender]:
    daily = Daily(max_requests=requests, max_bytes=size_bytes)
    new = NewKey(user_id=None, team_id=cloud.team.id, permissions=FETCHES_ONLY, daily=daily)
    key, raw = create_key(new, now=clock.now())
    return key, Sender(raw, slug=cloud.team.slug)


def get(send: Sender, hash: str = HASH) -> Reply:
    return send("GET", f"/v8/artifacts/{hash}")


def asked(send: Sender, hashes: int) -> Reply:
    return send("POST", "/v8/artifacts", json_body={"hashes": [f"h{number}" for number in range(hashes)]})


def given(key: ApiKey) -> Daily:
    found = find_key(key.id)
    assert found is not None
    assert found.daily is not None
    return found.daily


# Creation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_only_owners_create_one(cloud: Cloud, role: Role) -> None:
    reply = create(signed_in(member(cloud, role)))
    if role is Role.OWNER:
        assert reply.status == 200
        assert (reply.json["permissions"], reply.json["dailyBytes"]) == ({"artifacts": ["fetch"]}, 1000)
    elif role is Role.ADMIN:
        assert refused(reply) == (403, "PERMISSION_NOT_HELD")
    else:
        assert refused(reply) == (403, "INSUFFICIENT_API_KEY_PERMISSIONS")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"dailyBytes": None}, "dailyBytes"),
        ({"dailyRequests": None, "dailyBytes": None}, "daily_requests"),
        ({"dailyRequests": 0}, "daily_requests"),
        ({"dailyBytes": 10**13}, "daily_bytes"),
        ({"permissions": {"artifacts": ["read"]}}, "artifacts: fetch"),
        ({"permissions": {"artifacts": ["fetch", "write"]}}, "artifacts: fetch"),
        ({"permissions": {"artifacts": ["fetch"], "own": ["fetch"]}}, "artifacts: fetch"),
        ({"configId": "default", "organizationId": None}, "team"),
    ],
)
def test_a_public_read_key_is_nothing_else(ada: Sender, cloud: Cloud, fields: dict[str, Any], word: str) -> None:
    reply = create(ada, **fields)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert word.replace("_", "").lower() in reply.json["message"].replace("_", "").lower()


def test_it_stays_one(ada: Sender, cloud: Cloud) -> None:
    key_id = create(ada).json["id"]
    body = {"configId": "team", "keyId": key_id}
    for changes in ({"artifacts": ["read"]}, {"artifacts": ["fetch", "write"]}, {}):
        reply = ada("POST", f"{API}/update", json_body={**body, "permissions": changes})
        assert refused(reply) == (400, "VALIDATION_ERROR")
    reply = ada("POST", f"{API}/update", json_body={**body, "name": "forks"})
    assert (reply.json["name"], reply.json["dailyRequests"]) == ("forks", 5)


def test_no_other_key_becomes_one(ada: Sender, cloud: Cloud) -> None:
    body = {"keyId": cloud.key.id, "permissions": {"artifacts": ["fetch"]}}
    assert refused(ada("POST", f"{API}/update", json_body=body)) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize("limits", [{"remaining": 5}, {"remaining": 5, "refill": Refill(interval_ms=1, amount=1)}])
def test_it_has_no_other_limit(cloud: Cloud, limits: dict[str, Any]) -> None:
    daily = Daily(max_requests=1, max_bytes=1)
    new = NewKey(user_id=None, team_id=cloud.team.id, permissions=FETCHES_ONLY, daily=daily, **limits)
    with pytest.raises(InvalidValue, match="only limit"):
        create_key(new, now=clock.now())


def test_a_rotated_key_has_the_bounds_and_begins_at_zero(cloud: Cloud) -> None:
    cloud.store(HASH)
    key, send = public(cloud)
    assert get(send).status == 200
    made = rotate_key(key.id, overlap_s=60, now=clock.now())
    assert made is not None
    assert made[0].daily == Daily(max_requests=5, max_bytes=1000)


def test_it_outlives_its_maker(ada: Sender, cloud: Cloud) -> None:
    """It only reads, so the departure of its maker must not end the builds of forks."""
    key = find_key(create(ada).json["id"])
    assert key is not None
    assert (key.does_more, key.role_cap) == (False, Role.VIEWER)


# What it can do ---------------------------------------------------------------------------------


def test_every_other_route_refuses_it(cloud: Cloud) -> None:
    """All routes that take a token, by the catalogue. Some of a session answer as they do without one."""
    cloud.store(HASH, b"x")
    _, send = public(cloud, requests=1000, size_bytes=10**6)
    nobody = Sender(None, slug="acme")
    seen: dict[str, object] = {}
    for route in template().routes:
        if route.path == DEFAULT_PATH:
            continue
        request = valid(f"{route.method} {route.path}", hash=HASH, team=cloud.team.slug)
        if request.by is not None:
            reply = request(send)
            is_refused = reply.status in (401, 403) or reply == request(nobody)
            seen[f"{route.method} {route.path}"] = "refused" if is_refused else reply.status
    assert {endpoint: outcome for endpoint, outcome in seen.items() if outcome != "refused"} == GIVEN
    assert len(seen) > 70


def test_it_sees_only_trusted_artifacts_of_a_protected_team(cloud: Cloud) -> None:
    cloud.store("old", b"x")
    change_protection(cloud.team.id, ProtectionChange(protected=True), by=None)
    with time_machine.travel(clock.now() + timedelta(minutes=1)):
        # The key is not trusted, so this is in its own scope.
        assert cloud.send("PUT", "/v8/artifacts/untrusted", body=b"x").status == 202
        trusted = NewKey(
            user_id=cloud.user.id, team_id=cloud.team.id, permissions={"artifacts": ("read", "write", "trust")}
        )
        main = Sender(create_key(trusted, now=clock.now())[1], slug="acme")
        assert main("PUT", "/v8/artifacts/trusted", body=b"x").status == 202
        _, send = public(cloud)
        assert [get(send, hash).status for hash in ("trusted", "untrusted", "old")] == [200, 404, 404]


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        (TURBO, "forbidden"),
        ("turbo 2.12.0 x", "forbidden"),
        ("turbo 2.11.10 x", "read_only"),
        ("turbo 2.3.4 x", "read_only"),
        ("larder-proxy", "read_only"),
    ],
)
def test_only_a_turbo_that_goes_on_reading_is_told_to_stop_uploading(cloud: Cloud, agent: str, code: str) -> None:
    """It prints that once. Others stop reading, or send their token away, when they read `forbidden`."""
    _, send = public(cloud)
    headers = {"user-agent": agent}
    reply = send("PUT", f"/v8/artifacts/{HASH}", body=b"x", headers=headers)
    assert (reply.status, reply.code) == (403, code)
    announced = valid("OPTIONS /v8/artifacts/{hash}", hash="new")
    reply = send("OPTIONS", announced.path, headers={**announced.headers, "user-agent": agent})
    # Without the edge, versions before 2.10.13 get no URL, and are refused at the upload.
    assert reply.status == (204 if "2.3.4" in agent else 403)


def test_an_ordinary_key_that_only_reads_never_gets_forbidden(cloud: Cloud) -> None:
    """Its token may be that of `turbo login`, which some versions send to Vercel."""
    reads: Any = {"artifacts": ("read",)}
    send = Sender(create_key(NewKey(user_id=cloud.user.id, permissions=reads), now=clock.now())[1], slug="acme")
    reply = send("PUT", f"/v8/artifacts/{HASH}", body=b"x", headers={"user-agent": TURBO})
    assert (reply.status, reply.code) == (403, "read_only")


def test_its_events_are_answered_and_not_counted(cloud: Cloud) -> None:
    _, send = public(cloud)
    assert valid("POST /v8/artifacts/events", hash=HASH)(send).status == 200
    period = Period(first=clock.now().date(), last=clock.now().date())
    assert read_usage_by_key(cloud.team.id, period).parts == []


def test_large_artifacts_do_not_exist_for_it(cloud: Cloud) -> None:
    """A URL of S3 could be used again and again, past any bound. What a function can return, it returns."""
    limit = settings().inline_limit_bytes
    cloud.store("inline", b"x" * 500_000)
    upload(cloud.send, "large", b"x" * (limit + 1))
    _, send = public(cloud, requests=100, size_bytes=10**9)
    assert [get(cloud.send, hash).status for hash in ("inline", "large")] == [302, 302]
    assert [get(send, hash).status for hash in ("inline", "large")] == [200, 404]
    assert send("HEAD", "/v8/artifacts/large").status == 404
    found = send("POST", "/v8/artifacts", json_body={"hashes": ["inline", "large"]}).json
    assert (found["large"], found["inline"]["size"]) == (None, 500_000)


# Bounds -----------------------------------------------------------------------------------------


def status_of(send: Sender) -> str:
    return str(send("GET", "/v8/artifacts/status").json["status"])


def exhaust_requests(send: Sender) -> Reply:
    assert [get(send).status for _ in range(3)] == [200] * 3
    assert send("HEAD", "/v8/artifacts/absent").status == 404
    assert asked(send, 1).status == 200
    return get(send)


def exhaust_bytes(send: Sender) -> Reply:
    assert get(send, "half").status == 200
    return get(send, "more")


def ask_for_many(send: Sender) -> Reply:
    return asked(send, 6)


@pytest.mark.parametrize("exhaust", [exhaust_requests, exhaust_bytes, ask_for_many])
def test_over_a_bound_it_is_paused_until_the_next_day(cloud: Cloud, exhaust: Callable[[Sender], Reply]) -> None:
    with time_machine.travel(NOON, tick=False) as now:
        for hash, size in ((HASH, 1), ("half", 500), ("more", 501)):
            cloud.store(hash, b"x" * size)
        key, send = public(cloud)
        assert status_of(send) == "enabled"
        reply = exhaust(send)
        assert (reply.status, reply.code) == (403, "remote_caching_paused")
        assert (status_of(send), status_of(cloud.send)) == ("paused", "enabled")
        assert get(send).code == send("POST", "/v8/artifacts", json_body={"hashes": [HASH]}).code == reply.code
        assert (get(cloud.send).status, send("HEAD", f"/v8/artifacts/{HASH}").status) == (200, 403)
        now.move_to(NOON + timedelta(hours=12))
        assert (status_of(send), get(send).status) == ("enabled", 200)
        assert given(key) == Daily(
            max_requests=5, max_bytes=1000, day="2026-11-30", requests=1, size_bytes=1, paused_on="2026-11-29"
        )


def test_parallel_requests_get_no_more_than_the_bound(cloud: Cloud) -> None:
    key, _ = public(cloud, requests=1000, size_bytes=1250)

    def passes(_: int) -> bool:
        with suppress(CachingPaused):
            take(key, size_bytes=100, base_url="", now=clock.now())
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(passes, range(30))) == 12
    assert (given(key).requests, given(key).size_bytes) == (12, 1200)


def test_an_instance_whose_clock_is_behind_counts_for_the_new_day(cloud: Cloud) -> None:
    cloud.store(HASH, b"x")
    with time_machine.travel(NOON + timedelta(hours=12), tick=False) as now:
        key, send = public(cloud)
        assert get(send).status == 200
        now.move_to(NOON + timedelta(hours=11, minutes=59))
        assert get(send).status == 200
        assert (given(key).day, given(key).requests) == ("2026-11-30", 2)


def test_a_deleted_key_is_refused(cloud: Cloud) -> None:
    key, send = public(cloud)
    assert asked(send, 1).status == 200
    assert revoke_key(key)
    assert asked(send, 1).status == 401


# Mail -------------------------------------------------------------------------------------------


def test_the_owners_get_one_mail_a_day(cloud: Cloud, mailbox: Mailbox) -> None:
    owner = verified(cloud.user)
    admin = verified(member(cloud, Role.ADMIN))
    add_member(cloud.team.id, admin.id, Role.ADMIN, now=clock.now())
    sweep = partial(invoke, SWEEP, {})
    with time_machine.travel(NOON, tick=False) as now:
        key, send = public(cloud)
        sweep()
        assert mailbox.deliver() == []
        assert [asked(send, 6).status for _ in range(3)] == [403] * 3
        sweep()
        sweep()
        (message,) = mailbox.deliver()
        assert message.to == owner.email
        assert key.id in message.text
        assert "2026-11-29" in message.text
        assert "https://cache.example.com/console/t/acme/keys" in message.text
        assert asked(send, 6).status == 403
        sweep()
        assert len(mailbox.deliver()) == 1
        now.move_to(NOON + timedelta(days=1))
        assert asked(send, 6).status == 403
        sweep()
        assert len(mailbox.deliver()) == 2


def test_without_time_the_mail_is_left_to_the_next_run(cloud: Cloud, mailbox: Mailbox) -> None:
    verified(cloud.user)
    _, send = public(cloud)
    assert asked(send, 6).status == 403
    invoke(SWEEP, {}, Context(remaining_ms=10))
    assert mailbox.deliver() == []
    invoke(SWEEP, {})
    assert len(mailbox.deliver()) == 1
