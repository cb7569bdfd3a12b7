"""POST /api/auth/api-key/verify"""

import re
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys import repository
from larder.api_keys.models import NewKey, RateLimit, Refill
from larder.api_keys.service import create_key
from larder.instance import restart
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = "/api/auth/api-key/verify"
anonymous = Sender(None)


def verify(key: Any, **more: Any) -> Reply:
    return anonymous("POST", PATH, json_body={"key": key, **more})


def make(cloud: Cloud, **properties: Any) -> str:
    return create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())[1]


def test_a_valid_key_returns_its_record_without_the_key(cloud: Cloud) -> None:
    reply = verify(cloud.token)
    record = reply.json["key"]
    assert (reply.status, reply.json["valid"], reply.json["error"]) == (200, True, None)
    assert cloud.token not in reply.body.decode()
    assert cloud.key.key_hash not in reply.body.decode()
    assert set(record) == {
        "id", "name", "start", "prefix", "userId", "referenceId", "teamId", "refillInterval",
        "refillAmount", "lastRefillAt", "enabled", "rateLimitEnabled", "rateLimitTimeWindow",
        "rateLimitMax", "requestCount", "remaining", "lastRequest", "expiresAt", "createdAt",
        "updatedAt", "permissions", "metadata",
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
def test_a_valid_key_returns_its_metadata_at_its_last_use_too(
    cloud: Cloud, properties: dict[str, Any]
) -> None:
    key = make(cloud, metadata={"repo": "web"}, **properties)
    assert verify(key).json["key"]["metadata"] == {"repo": "web"}


def test_only_a_valid_key_with_metadata_takes_another_read(cloud: Cloud) -> None:
    plain, key = make(cloud), make(cloud, metadata=[1])
    verify(plain)

    def steps(key: str, **more: Any) -> list[list[str]]:
        with counted() as calls:
            verify(key, **more)
        return calls.steps

    assert steps(plain) == [["UpdateItem"], ["BatchGetItem"]]
    assert steps(key, permissions={"artifacts": ["manage"]}) == [["UpdateItem"]]
    assert steps(key) == [["UpdateItem"], ["GetItem"], ["BatchGetItem"]]


def test_a_refusal_has_a_code(cloud: Cloud) -> None:
    used_up = make(cloud, remaining=1, refill=Refill(interval_ms=60_000, amount=1))
    limited = make(cloud, rate_limit=RateLimit(enabled=True, window_ms=60_000, max_requests=1))
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


@pytest.mark.parametrize(
    "key", ["", "x", "é" * 100, "\x00", "\ud800", "a" * 1025, "../..", "#clean-up"]
)
def test_a_malformed_key_is_invalid_and_not_an_error(cloud: Cloud, key: str) -> None:
    assert verify(key).json["error"]["code"] == "INVALID_API_KEY"


def test_a_key_of_a_megabyte_is_invalid_without_a_lookup(cloud: Cloud) -> None:
    with unreachable("dynamodb", "UpdateItem"), unreachable("dynamodb", "GetItem"):
        reply = verify("a" * 2**20)
    assert (reply.status, reply.json["valid"]) == (200, False)
    assert reply.json["error"]["code"] == "INVALID_API_KEY"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "key"),
        ({"key": None}, "key"),
        ({"key": 12}, "key"),
        ({"key": ["k"]}, "key"),
        ({"key": "k", "permissions": "read"}, "permissions"),
        ({"key": "k", "permissions": {"artifacts": "read"}}, "permissions.artifacts"),
        ({"key": "k", "permissions": {"artifacts": [1]}}, "permissions.artifacts.0"),
        ({"key": "k", "permissions": {"artifacts": [""]}}, "permissions.artifacts.0"),
        ({"key": "k", "permissions": {"artifacts": ["a"] * 21}}, "permissions"),
        ({"key": "k", "permissions": {f"r{n}": [] for n in range(21)}}, "permissions"),
        ([], "body"),
    ],
)
def test_400_names_the_field(cloud: Cloud, body: Any, field: str) -> None:
    reply = anonymous("POST", PATH, json_body=body)
    assert (reply.status, reply.json["code"]) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")


def test_no_body_is_the_same_as_an_empty_object(cloud: Cloud) -> None:
    reply = anonymous("POST", PATH)
    assert (reply.status, reply.json["code"]) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith("[body.key] ")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 50_000])
def test_400_for_malformed_json(cloud: Cloud, body: bytes) -> None:
    reply = anonymous("POST", PATH, body=body, headers={"content-type": "application/json"})
    assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_415_for_another_content_type(cloud: Cloud, content_type: str) -> None:
    reply = anonymous("POST", PATH, body=b'{"key":"k"}', headers={"content-type": content_type})
    assert (reply.status, reply.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_any_verification_deletes_expired_keys_at_most_once_in_ten_seconds(
    cloud: Cloud,
) -> None:
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
def test_an_impossible_key_is_invalid_when_keys_are_not_hashed(
    cloud: Cloud, option: SetOption, key: str
) -> None:
    """DynamoDB rejects a key that is empty or longer than 2,048 bytes. Looking one up would cause a 500."""
    option("disable_key_hashing", "true")
    with unreachable("dynamodb", "UpdateItem"), unreachable("dynamodb", "GetItem"):
        reply = verify(key)
    assert (reply.status, reply.json["valid"]) == (200, False)
    assert reply.json["error"]["code"] == "INVALID_API_KEY"
