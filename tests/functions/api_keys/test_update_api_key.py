"""POST /api/auth/api-key/update"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys.keys import create_key, find_key, revoke_key
from larder.api_keys.models import ApiKey, Refill, Refusal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.api_keys.verification import stored_form, verify
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.api_keys.people import API, member, refused, stored_keys
from tests.principals import by_session
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = f"{API}/update"
READ = {"artifacts": ("read",)}


def update(send: Sender, key: ApiKey, /, **body: Any) -> Reply:
    return send("POST", PATH, json_body={"keyId": key.id, **body})


def stored(key: ApiKey) -> ApiKey:
    found = find_key(key.id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "deploy"),
        ("enabled", False),
        ("metadata", {"repo": "web"}),
        ("metadata", None),
        ("permissions", {"artifacts": ["read"]}),
        ("permissions", {}),
    ],
)
def test_only_the_fields_of_the_body_change(ada: Sender, cloud: Cloud, field: str, value: Any) -> None:
    before = ada("GET", f"{API}/list").json[0]
    reply = update(ada, cloud.key, **{field: value})
    assert reply.status == 200, reply.body
    assert reply.json[field] == value
    changed = {name for name in reply.json if reply.json[name] != before[name]}
    assert changed <= {field, "updatedAt"}
    assert reply.json["updatedAt"] > before["updatedAt"]
    assert "key" not in reply.json
    assert ada("GET", f"{API}/list").json[0] == reply.json


def test_expires_in_counts_from_now_and_null_removes_the_expiry(ada: Sender, cloud: Cloud) -> None:
    expires_at = datetime.fromisoformat(update(ada, cloud.key, expiresIn=60).json["expiresAt"])
    assert timedelta(seconds=50) < expires_at - clock.now() <= timedelta(seconds=60)
    assert update(ada, cloud.key, expiresIn=None).json["expiresAt"] is None
    assert stored(cloud.key).expires_at is None


def test_a_disabled_key_is_refused_until_it_is_enabled_again(ada: Sender, cloud: Cloud) -> None:
    update(ada, cloud.key, enabled=False)
    assert verify(cloud.key.key_hash, READ, now=clock.now()).refusal is Refusal.DISABLED
    update(ada, cloud.key, enabled=True)
    assert verify(cloud.key.key_hash, READ, now=clock.now()).valid


def test_uses_during_an_update_are_still_counted(ada: Sender, cloud: Cloud) -> None:
    key, _ = create_key(NewKey(user_id=cloud.user.id, remaining=10), now=clock.now())

    def use() -> None:
        assert verify(key.key_hash, READ, now=clock.now()).valid

    with just_before("dynamodb", "TransactWriteItems", use):
        assert update(ada, key, name="busy").json["remaining"] == 9
    assert stored(key).remaining == 9


def test_400_for_a_body_that_changes_nothing(ada: Sender, cloud: Cloud) -> None:
    assert refused(update(ada, cloud.key)) == (400, "NO_VALUES_TO_UPDATE")
    reply = update(ada, cloud.key, prefix="new_", teamId="team_x", start="chosen")
    assert refused(reply) == (400, "NO_VALUES_TO_UPDATE")


def test_fields_that_cannot_be_changed_are_ignored(ada: Sender, cloud: Cloud) -> None:
    update(ada, cloud.key, name="new", prefix="new_", teamId="team_x")
    assert (stored(cloud.key).team_id, stored(cloud.key).prefix) == (cloud.team.id, None)


@pytest.mark.parametrize("seconds", [60, None])
def test_400_for_expires_in_when_every_key_has_the_same_lifetime(
    ada: Sender, cloud: Cloud, option: SetOption, seconds: int | None
) -> None:
    option("disable_custom_key_expiry", "true")
    reply = update(ada, cloud.key, expiresIn=seconds)
    assert refused(reply) == (400, "KEY_DISABLED_EXPIRATION")


def test_404_for_another_users_key(mallory: Sender, cloud: Cloud) -> None:
    before = stored_keys()
    assert refused(update(mallory, cloud.key, name="mine")) == (404, "KEY_NOT_FOUND")
    assert stored_keys() == before


def test_404_for_a_key_that_is_deleted_during_the_request(ada: Sender, cloud: Cloud) -> None:
    def end() -> None:
        assert revoke_key(cloud.key)

    with just_before("dynamodb", "TransactWriteItems", end):
        reply = update(ada, cloud.key, name="late")
    assert refused(reply) == (404, "KEY_NOT_FOUND")
    assert stored_keys() == []


def test_permissions_cannot_exceed_the_role_in_the_keys_team(ada: Sender, cloud: Cloud) -> None:
    member(cloud, Role.OWNER)
    add_member(cloud.team.id, cloud.user.id, Role.VIEWER, now=clock.now())
    both = {"artifacts": ["read", "write"]}
    assert refused(update(ada, cloud.key, permissions=both)) == (403, "PERMISSION_NOT_HELD")
    assert update(ada, cloud.key, permissions={"artifacts": ["read"]}).status == 200
    remove_member(cloud.team.id, cloud.user.id, by=None)
    reply = update(ada, cloud.key, permissions={"artifacts": ["read"]})
    assert refused(reply) == (403, "NOT_A_TEAM_MEMBER")
    assert update(ada, cloud.key, name="still mine").status == 200


def test_a_key_that_has_no_uses_left_is_disabled(operator: Sender, cloud: Cloud) -> None:
    """The next use deletes it."""
    ended = update(operator, cloud.key, userId=cloud.user.id, remaining=0).json
    assert (ended["enabled"], ended["remaining"]) == (False, 0)
    again = update(operator, cloud.key, userId=cloud.user.id, remaining=1).json
    assert (again["enabled"], again["remaining"]) == (True, 1)
    refilled = update(operator, cloud.key, remaining=0, refillAmount=5, refillInterval=1000).json
    assert (refilled["enabled"], refilled["remaining"]) == (True, 0)


def test_an_operator_changes_any_key_and_its_limits(operator: Sender, cloud: Cloud) -> None:
    reply = update(
        operator,
        cloud.key,
        userId=cloud.user.id,
        remaining=3,
        refillAmount=5,
        refillInterval=86_400_000,
        rateLimitEnabled=True,
        rateLimitMax=7,
        permissions={"billing": ["refund"]},
    )
    record = reply.json
    assert reply.status == 200, record
    assert (record["remaining"], record["refillAmount"], record["rateLimitMax"]) == (3, 5, 7)
    assert (record["rateLimitEnabled"], record["rateLimitTimeWindow"]) == (True, 86_400_000)
    assert record["permissions"] == {"billing": ["refund"]}
    uses = [verify(cloud.key.key_hash, {}, now=clock.now()) for _ in range(4)]
    assert [use.refusal for use in uses] == [None, None, None, Refusal.USED_UP]
    off = update(operator, cloud.key, remaining=None, refillAmount=None, rateLimitEnabled=False)
    assert (off.json["remaining"], off.json["refillAmount"]) == (None, None)
    assert all(verify(cloud.key.key_hash, {}, now=clock.now()).valid for _ in range(20))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"remaining": -1}, "remaining"),
        ({"refillAmount": 1, "refillInterval": 1}, "remaining"),
        ({"refillAmount": 1}, "refillInterval"),
        ({"rateLimitMax": 0}, "rateLimitMax"),
        ({"rateLimitTimeWindow": 10**20}, "rateLimitTimeWindow"),
    ],
)
def test_400_names_the_bad_limit_of_an_operator(operator: Sender, cloud: Cloud, body: Any, field: str) -> None:
    reply = update(operator, cloud.key, **body)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")


def test_a_concurrent_refill_is_not_lost(operator: Sender, cloud: Cloud) -> None:
    now = clock.now()
    refill = Refill(interval_ms=1000, amount=5)
    new = NewKey(user_id=cloud.user.id, remaining=1, refill=refill)
    key, _ = create_key(new, now=now - timedelta(seconds=1.5))

    def use() -> None:
        assert verify(key.key_hash, READ, now=clock.now()).valid

    with just_before("dynamodb", "TransactWriteItems", use):
        reply = update(operator, key, refillAmount=9, refillInterval=60_000)
    assert (reply.json["remaining"], reply.json["refillAmount"]) == (5, 9)
    assert reply.json["lastRefillAt"] == clock.to_iso(key.created_at + timedelta(seconds=1))
    changed_at = datetime.fromisoformat(reply.json["updatedAt"])
    assert stored(key).refill_due_at == changed_at + timedelta(minutes=1)


def test_two_changes_at_once_never_leave_half_of_a_refill(operator: Sender, cloud: Cloud) -> None:
    refill = Refill(interval_ms=60_000, amount=5)
    key, _ = create_key(NewKey(user_id=cloud.user.id, remaining=1, refill=refill), now=clock.now())

    def end() -> None:
        by = by_session(cloud.user.id, is_operator=True)
        update_key(by, key.id, KeyChanges(remaining=None, refill=None), now=clock.now())

    with just_before("dynamodb", "TransactWriteItems", end):
        reply = update(operator, key, refillAmount=9, refillInterval=60_000)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert (stored(key).remaining, stored(key).refill) == (None, None)


def test_an_operator_revokes_a_key_by_setting_its_uses_to_0(operator: Sender, cloud: Cloud) -> None:
    assert update(operator, cloud.key, remaining=0).json["remaining"] == 0
    assert cloud.send("GET", "/v8/artifacts/status").status == 401
    assert refused(update(operator, cloud.key, remaining=5)) == (404, "KEY_NOT_FOUND")


def test_a_whole_number_can_have_decimals(operator: Sender, cloud: Cloud) -> None:
    reply = update(operator, cloud.key, remaining=7.0, rateLimitMax=9.0, expiresIn=60.0)
    assert (reply.json["remaining"], reply.json["rateLimitMax"]) == (7, 9)
    assert refused(update(operator, cloud.key, remaining=7.5)) == (400, "VALIDATION_ERROR")


def test_it_reads_the_session_the_index_and_the_key_and_writes_in_one_transaction(ada: Sender, cloud: Cloud) -> None:
    update(ada, cloud.key, name="one")
    with counted() as calls:
        update(ada, cloud.key, name="two", enabled=False, metadata=None, expiresIn=60)
    read, write = [["BatchGetItem"], ["Query"], ["GetItem"]], ["TransactWriteItems"]
    # Read again, because a transaction returns no items.
    assert calls.steps == [*read, write, ["GetItem"]]
    with counted() as calls:
        assert update(ada, cloud.key, metadata=[1]).json["metadata"] == [1]
    assert calls.steps == [*read, write, ["GetItem"], ["GetItem"]]


def test_null_uses_on_an_unlimited_key_stay_null(cloud: Cloud, operator: Sender) -> None:
    """The stored count of an unlimited key goes below 0, but no reply shows it."""
    key, raw = create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    for _ in range(3):
        verify(stored_form(raw), {}, now=clock.now())
    reply = update(operator, key, remaining=0, refillAmount=5, refillInterval=60_000)
    assert reply.json["remaining"] == 0
