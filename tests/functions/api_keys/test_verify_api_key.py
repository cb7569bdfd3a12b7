"""POST /api/auth/api-key/verify"""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.service import create_user, read_account
from larder.api_keys import repository
from larder.api_keys.keys import create_key
from larder.api_keys.models import RateLimit, Refill
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.hashing import hash_key
from larder.instance import restart
from tests.conftest import Clock, SetOption
from tests.faults import unreachable
from tests.principals import by_session
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = "/api/auth/api-key/verify"
SECOND, MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
anonymous = Sender(None)


def verify(key: Any, **more: Any) -> Reply:
    return anonymous("POST", PATH, json_body={"key": key, **more})


def make(cloud: Cloud, **properties: Any) -> str:
    return create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())[1]


def limit(most: int) -> RateLimit:
    return RateLimit(enabled=True, window_ms=60_000, max_requests=most)


def test_a_valid_key_returns_its_record_without_the_key(cloud: Cloud) -> None:
    reply = verify(cloud.token)
    record = reply.json["key"]
    assert (reply.status, reply.json["valid"], reply.json["error"]) == (200, True, None)
    assert cloud.token not in reply.body.decode()
    assert cloud.key.key_hash not in reply.body.decode()
    assert set(record) == {
        "id", "name", "start", "prefix", "userId", "referenceId", "configId", "teamId", "refillInterval",
        "refillAmount", "lastRefillAt", "enabled", "rateLimitEnabled", "rateLimitTimeWindow",
        "rateLimitMax", "requestCount", "remaining", "lastRequest", "expiresAt", "createdAt",
        "updatedAt", "permissions", "metadata", "dailyRequests", "dailyBytes", "pausedOn",
    }  # fmt: skip
    assert (record["id"], record["userId"]) == (cloud.key.id, cloud.user.id)
    assert record["permissions"] == {"artifacts": ["read", "write"]}
    assert (record["remaining"], record["expiresAt"]) == (None, None)


def test_times_have_three_fractional_digits(cloud: Cloud) -> None:
    record = verify(make(cloud, expires_in_s=60)).json["key"]
    for name in ("createdAt", "updatedAt", "lastRequest", "expiresAt"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record[name])


def test_a_successful_verification_takes_one_use(cloud: Cloud) -> None:
    key = make(cloud, remaining=2)
    assert verify(key).json["key"]["remaining"] == 1
    assert verify(key).json["key"]["remaining"] == 0
    assert verify(key).json == {
        "valid": False,
        "error": {"message": "Invalid API key.", "code": "INVALID_API_KEY"},
        "key": None,
    }


@pytest.mark.parametrize(
    ("held", "required", "valid"),
    [
        ({"artifacts": ("read", "write")}, {"artifacts": ["read"]}, True),
        ({"artifacts": ("read", "write")}, {"artifacts": ["read", "write"]}, True),
        ({"artifacts": ("read",)}, {"artifacts": ["read", "write"]}, False),
        ({"artifacts": ("read",), "teams": ("list",)}, {"artifacts": ["read"], "teams": ["list"]}, True),
        ({"artifacts": ("read",)}, {"artifacts": ["read"], "teams": ["list"]}, False),
        ({}, {"artifacts": []}, True),
        ({}, {}, True),
        ({}, {"artifacts": ["read"]}, False),
        ({"artifacts": ("read",)}, {"__proto__": ["read"]}, False),
        ({"artifacts": ("read",)}, {"#key.with:signs": ["a b"]}, False),
    ],
)  # fmt: skip
def test_all_required_permissions_must_be_granted(
    cloud: Cloud, held: Any, required: dict[str, list[str]], valid: bool
) -> None:
    answer = verify(make(cloud, permissions=held), permissions=required).json
    assert answer["valid"] is valid
    assert valid or answer["error"]["code"] == "KEY_NOT_FOUND"


@pytest.mark.parametrize("properties", [{}, {"remaining": 1}])
def test_a_valid_key_returns_its_metadata_at_its_last_use_too(cloud: Cloud, properties: dict[str, Any]) -> None:
    key = make(cloud, metadata={"repo": "web"}, **properties)
    assert verify(key).json["key"]["metadata"] == {"repo": "web"}


def steps(key: str, **more: Any) -> list[list[str]]:
    """The calls to AWS of a verification, without the deletion of expired keys."""
    with counted() as calls:
        verify(key, **more)
    return [step for step in calls.steps if step != ["Query"]]


@pytest.mark.parametrize("properties", [{}, {"metadata": [1]}, {"permissions": {}}])
def test_a_key_without_limits_is_only_read_and_its_use_recorded_once_a_second(
    cloud: Cloud, later: Clock, properties: dict[str, Any]
) -> None:
    verify("any")
    key = make(cloud, **properties)
    assert steps(key) == [["GetItem"], ["BatchGetItem", "UpdateItem"]]
    later.pass_(SECOND - MILLISECOND)
    assert steps(key) == [["BatchGetItem"]]
    assert steps(key, permissions={"artifacts": ["manage"]}) == [["BatchGetItem"]]
    later.pass_(MILLISECOND)
    assert steps(key) == [["BatchGetItem", "UpdateItem"]]


@pytest.mark.parametrize("properties", [{"remaining": 9}, {"rate_limit": limit(9)}, {"remaining": 9, "metadata": [1]}])
def test_a_use_of_a_key_with_a_limit_is_counted_while_its_user_is_read(
    cloud: Cloud, later: Clock, properties: dict[str, Any]
) -> None:
    verify("any")
    key = make(cloud, **properties)
    metadata = [["GetItem"]] if "metadata" in properties else []
    assert steps(key) == [["GetItem"], ["BatchGetItem", "UpdateItem"], *metadata]
    assert steps(key) == [["BatchGetItem", "UpdateItem"], *metadata]


def test_last_request_is_the_time_of_the_request_and_stored_to_the_second(cloud: Cloud, later: Clock) -> None:
    def seen() -> tuple[datetime, datetime | None]:
        shown = datetime.fromisoformat(verify(cloud.token).json["key"]["lastRequest"])
        key = repository.get(cloud.key.key_hash)
        assert key is not None
        return shown, key.last_request

    first = clock.now()
    assert seen() == (first, first)
    second = later.pass_(SECOND - MILLISECOND)
    assert seen() == (second, first)
    third = later.pass_(MILLISECOND)
    assert seen() == (third, third)


def test_uses_of_a_key_without_limits_are_not_counted(cloud: Cloud) -> None:
    assert [verify(cloud.token).json["key"]["requestCount"] for _ in range(3)] == [0, 0, 0]


def test_a_key_that_gets_a_limit_is_counted_at_the_next_use(cloud: Cloud) -> None:
    key = make(cloud)
    assert verify(key).json["key"]["remaining"] is None
    change = KeyChanges(remaining=1)
    stored = repository.get(hash_key(key))
    assert stored is not None
    update_key(by_session(cloud.user.id, is_operator=True), stored.id, change, now=clock.now())
    assert verify(key).json["key"]["remaining"] == 0
    assert verify(key).json["error"]["code"] == "INVALID_API_KEY"


def test_a_key_that_loses_its_limit_is_only_read_again(cloud: Cloud) -> None:
    key = make(cloud, remaining=9)
    verify(key)
    stored = repository.get(hash_key(key))
    assert stored is not None
    repository.change(stored, replace(stored, remaining=None))
    assert steps(key) == [["BatchGetItem", "UpdateItem"]]
    assert verify(key).json["key"]["remaining"] is None
    assert steps(key) == [["BatchGetItem"]]


def test_a_key_that_is_stored_again_belongs_to_its_new_user(cloud: Cloud) -> None:
    """A `generate_key` can return the same key again."""
    key = make(cloud)
    assert verify(key).json["valid"]
    stored, other = repository.get(hash_key(key)), create_user("o@x.example", "O", now=clock.now())
    assert stored is not None
    assert repository.delete(stored.key_hash)
    assert repository.add(replace(stored, holder_id=other.id))
    assert accounts.delete(read_account(cloud.user.id), now=clock.now())
    reply = verify(key).json
    assert (reply["valid"], reply["key"]["userId"]) == (True, other.id)


def test_a_deleted_key_is_invalid_at_the_next_request(cloud: Cloud) -> None:
    for properties in ({}, {"remaining": 9}):
        key = make(cloud, **properties)
        assert verify(key).json["valid"]
        assert repository.delete(hash_key(key))
        assert verify(key).json["error"]["code"] == "INVALID_API_KEY"
        # It is looked up first again, so that it costs no write.
        assert steps(key) == [["GetItem"]]


@pytest.mark.parametrize("heat", ["cold", "warm"])
def test_a_key_without_limits_works_if_its_use_cannot_be_recorded(cloud: Cloud, heat: str) -> None:
    if heat == "warm":
        verify(cloud.token)
    with unreachable("dynamodb", "UpdateItem"):
        assert verify(cloud.token).json["valid"]


@pytest.mark.parametrize(("heat", "read"), [("cold", "GetItem"), ("warm", "BatchGetItem")])
def test_503_if_the_key_cannot_be_read(cloud: Cloud, heat: str, read: str) -> None:
    if heat == "warm":
        verify(cloud.token)
    with unreachable("dynamodb", read):
        assert verify(cloud.token).status == 503


def test_a_refusal_has_a_code(cloud: Cloud) -> None:
    used_up = make(cloud, remaining=1, refill=Refill(interval_ms=60_000, amount=1))
    limited = make(cloud, rate_limit=limit(1))
    assert verify(used_up).json["valid"]
    assert verify(limited).json["valid"]
    # Create it after the first verification, which would have deleted it.
    new, then = NewKey(user_id=cloud.user.id, expires_in_s=1), clock.now() - timedelta(minutes=1)
    expired = create_key(new, now=then)[1]
    assert verify("unknown").json["error"]["code"] == "INVALID_API_KEY"
    assert verify(expired).json["error"]["code"] == "KEY_EXPIRED"
    assert verify(used_up).json["error"]["code"] == "USAGE_EXCEEDED"
    error = verify(limited).json["error"]
    assert error["code"] == "RATE_LIMITED"
    assert 0 < error["details"]["tryAgainIn"] <= 60_000


@pytest.mark.parametrize("key", ["", "x", "é" * 100, "\x00", "\ud800", "a" * 1025, "../..", "#clean-up"])
def test_a_malformed_key_is_invalid_and_not_an_error(cloud: Cloud, key: str) -> None:
    assert verify(key).json["error"]["code"] == "INVALID_API_KEY"


def test_a_key_of_a_megabyte_is_invalid_without_a_lookup(cloud: Cloud) -> None:
    with unreachable("dynamodb", "UpdateItem"), unreachable("dynamodb", "GetItem"):
        reply = verify("a" * 2**20)
    assert (reply.status, reply.json["valid"]) == (200, False)
    assert reply.json["error"]["code"] == "INVALID_API_KEY"


def test_any_verification_deletes_expired_keys_at_most_once_in_ten_seconds(cloud: Cloud) -> None:
    long_ago = clock.now() - timedelta(days=1)
    first, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=1), now=long_ago)
    verify("any")
    assert repository.get(first.key_hash) is None
    second, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=1), now=long_ago)
    restart()  # as another instance, which has not tried yet
    verify("any")
    assert repository.get(second.key_hash) is not None


def test_a_failed_deletion_of_expired_keys_does_not_fail_the_verification(cloud: Cloud) -> None:
    with unreachable("dynamodb", "Query"):
        assert verify(cloud.token).json["valid"] is True


@pytest.mark.parametrize("key", ["", "short", "x" * 257, "\N{GRINNING FACE}" * 600, " " * 64])
def test_an_impossible_key_is_invalid_when_keys_are_not_hashed(cloud: Cloud, option: SetOption, key: str) -> None:
    """DynamoDB rejects a key that is empty or longer than 2,048 bytes. Looking one up would cause a 500."""
    option("disable_key_hashing", "true")
    with unreachable("dynamodb", "UpdateItem"), unreachable("dynamodb", "GetItem"):
        reply = verify(key)
    assert (reply.status, reply.json["valid"]) == (200, False)
    assert reply.json["error"]["code"] == "INVALID_API_KEY"
