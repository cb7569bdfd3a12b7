"""Options of API keys, about creating, storing and verifying them. tests/conformance has those of defaults and bounds.

Those of sessions from keys (headers, getter, session for API keys) are in tests/larder/web/principals/test_session.py.
"""

import asyncio
import json
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from larder import aws, clock, extensions
from larder.accounts.sessions import start_session
from larder.api_keys import repository
from larder.api_keys.keys import create_key, list_keys, rotate_key
from larder.api_keys.models import ApiKey, RateLimit, Refill, Refusal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.api_keys.verification import verify, verify_presented
from larder.settings import SettingsError, settings
from tests.conftest import SetOption
from tests.principals import by_session
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

READ = {"artifacts": ("read",)}


def make(cloud: Cloud, **properties: Any) -> tuple[ApiKey, str]:
    return create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())


def test_custom_api_key_validator_a_rejected_key_is_invalid_without_a_lookup(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.validate_key = lambda key: key.startswith("ours_")  # type: ignore[attr-defined]
    option("extensions", "integrator")
    with counted() as calls:
        assert cloud.send("GET", "/v8/artifacts/status").status == 401
    assert calls.made == []
    assert verify_presented(None, READ, now=clock.now()).refusal is Refusal.INVALID


def test_custom_api_key_validator_an_accepted_key_must_still_match_the_stored_one(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.validate_key = lambda key: True  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    assert Sender("a" * 64, slug="acme")("GET", "/v8/artifacts/status").status == 401


@pytest.mark.parametrize("answer", [True, 1, "yes", {"valid": False}])
def test_custom_api_key_validator_a_result_counts_as_true_or_false(
    cloud: Cloud, option: SetOption, integrator: ModuleType, answer: object
) -> None:
    integrator.validate_key = lambda key: answer  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    integrator.validate_key = lambda key: type(answer)()  # type: ignore[attr-defined]
    extensions.clear_hooks()
    assert cloud.send("GET", "/v8/artifacts/status").status == 401


def test_custom_api_key_validator_can_be_async(cloud: Cloud, option: SetOption, integrator: ModuleType) -> None:
    async def accepts(key: str) -> bool:
        await asyncio.sleep(0)
        return key == cloud.token

    integrator.validate_key = accepts  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    assert Sender("a" * 64, slug="acme")("GET", "/v8/artifacts/status").status == 401


def test_custom_api_key_validator_gets_the_request_without_credentials(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    seen: list[Any] = []

    def accepts(key: str, ctx: Any) -> bool:
        seen.append(ctx)
        return True

    integrator.validate_key = accepts  # type: ignore[attr-defined]
    option("extensions", "integrator")
    origin = "https://cache.example.com"
    secrets = {"cookie": "a=secret", "x-api-key": "secret"}
    headers = {**secrets, "origin": origin, "x-region": "eu"}
    assert cloud.send("GET", "/v8/artifacts/status", headers=headers).status == 200
    body = {"key": cloud.token}
    reply = Sender(None)("POST", "/api/auth/api-key/verify", json_body=body, headers=headers)
    assert reply.json["valid"] is True, reply.json
    first, second = seen
    assert (first["method"], first["path"]) == ("GET", "/v8/artifacts/status")
    assert (second["method"], second["path"]) == ("POST", "/api/auth/api-key/verify")
    for ctx in seen:
        assert ctx.keys() == {"method", "path", "headers"}
        assert ctx["headers"]["x-region"] == "eu"
        assert not {"authorization", "cookie", "x-api-key"} & ctx["headers"].keys()
        assert cloud.token not in str(ctx)


def test_a_function_with_a_wrong_signature_is_refused_with_its_name(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.generate_key = lambda size: "~" * size  # type: ignore[attr-defined]
    option("extensions", "integrator")
    rule = r"^LARDER_EXTENSIONS: integrator\.generate_key must be a function that takes \(length, prefix\)$"
    with pytest.raises(SettingsError, match=rule):
        make(cloud)


def test_custom_key_generator_creates_the_complete_key(cloud: Cloud, option: SetOption, integrator: ModuleType) -> None:
    integrator.generate_key = lambda length, prefix: f"{prefix}{length}" + "~" * 64  # type: ignore[attr-defined]
    option("extensions", "integrator")
    _, raw = make(cloud, prefix="p_")
    assert raw == "p_64" + "~" * 64
    assert Sender(raw, slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_custom_key_generator_can_be_async(cloud: Cloud, option: SetOption, integrator: ModuleType) -> None:
    async def generate(length: int, prefix: str) -> str:
        return f"{prefix}{length}" + "~" * 64

    integrator.generate_key = generate  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert make(cloud, prefix="p_")[1] == "p_64" + "~" * 64


def test_custom_key_generator_that_returns_a_key_twice_is_reported(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.generate_key = lambda length, prefix: "~" * 64  # type: ignore[attr-defined]
    option("extensions", "integrator")
    first, _ = make(cloud)
    with pytest.raises(SettingsError, match="returned a key that exists already"):
        make(cloud)
    assert repository.get(first.key_hash) == first


@pytest.mark.parametrize("made", ["short", "with space" + "a" * 64, None, "é" * 64, "vca_" + "a" * 64])
def test_custom_key_generator_must_return_a_valid_header_value(
    cloud: Cloud, option: SetOption, integrator: ModuleType, made: object
) -> None:
    integrator.generate_key = lambda length, prefix: made  # type: ignore[attr-defined]
    option("extensions", "integrator")
    with pytest.raises(SettingsError, match="must return 64 to 256"):
        make(cloud)


@pytest.mark.parametrize("name", ["nowhere", "json.nothing"])
def test_a_missing_module_is_reported(cloud: Cloud, option: SetOption, name: str) -> None:
    option("extensions", name)
    with pytest.raises(SettingsError, match=r"^LARDER_EXTENSIONS: .* cannot be imported"):
        make(cloud)


def test_larder_does_what_the_module_has_no_function_for(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    option("extensions", "integrator")
    key, raw = make(cloud, prefix="p_")
    assert raw.startswith("p_")
    assert key.start == raw[:8]


def test_starting_characters_config_sets_how_many_are_stored(cloud: Cloud, option: SetOption) -> None:
    option("key_start_length", 9)
    key, raw = make(cloud)
    assert key.start == raw[:9]
    key, raw = make(cloud, prefix="larder_")
    assert key.start == raw[: len("larder_") + 9]


def test_starting_characters_of_keys_with_the_same_prefix_differ(cloud: Cloud) -> None:
    keys = [make(cloud, prefix="larder_") for _ in range(3)]
    assert [key.start for key, _ in keys] == [raw[: len("larder_") + 6] for _, raw in keys]
    assert len({key.start for key, _ in keys}) == 3


def test_starting_characters_of_a_generated_key_without_its_prefix(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.generate_key = lambda length, prefix: "~" * 64  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert make(cloud, prefix="larder_")[0].start == "~" * 6


def test_default_key_length_without_the_prefix(cloud: Cloud, option: SetOption) -> None:
    option("default_key_length", 80)
    assert len(make(cloud, prefix="p_")[1]) == 82


def test_default_key_length_distinguishes_keys_from_session_tokens(option: SetOption) -> None:
    option("default_key_length", 63)
    with pytest.raises(SettingsError, match="LARDER_DEFAULT_KEY_LENGTH must be at least 64"):
        settings()


def test_permissions_default_permissions_as_a_function_of_the_user(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.default_key_permissions = lambda user_id: {"user": [user_id]}  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert make(cloud)[0].permissions == {"user": (cloud.user.id,)}


def test_permissions_default_permissions_as_a_function_of_the_user_and_the_request(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    contexts: list[Any] = []

    async def of(user_id: str, ctx: Any) -> dict[str, list[str]]:
        contexts.append(ctx)
        return {"artifacts": ["read"], "region": [ctx["headers"]["x-region"] if ctx else "none"]}

    integrator.default_key_permissions = of  # type: ignore[attr-defined]
    option("extensions", "integrator")
    ada = Sender(start_session(cloud.user, now=clock.now())[1])
    path = "/api/auth/api-key/create"
    reply = ada("POST", path, json_body={"name": "ci"}, headers={"x-region": "eu"})
    assert reply.json["permissions"] == {"artifacts": ["read"], "region": ["eu"]}
    assert all((ctx["method"], ctx["path"]) == ("POST", path) for ctx in contexts)
    assert not any("authorization" in ctx["headers"] for ctx in contexts)
    contexts.clear()
    assert make(cloud)[0].permissions == {"artifacts": ("read",), "region": ("none",)}
    assert contexts == [None], "the operator's command has no request"


def test_disable_key_hashing(cloud: Cloud, option: SetOption) -> None:
    option("disable_key_hashing", "true")
    key, raw = make(cloud)
    assert key.key_hash == raw
    assert repository.get(raw) == key
    assert Sender(raw, slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_with_key_hashing_the_table_does_not_contain_the_key(cloud: Cloud) -> None:
    _, raw = make(cloud, metadata={"note": "x"})
    table = str(aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"])
    assert raw not in table
    assert raw[6:] not in table


RENAMED = {
    "name": "label", "start": "first", "prefix": "kind", "refillInterval": "refill every",
    "refillAmount": "refill-by", "lastRefillAt": "refilled.at", "enabled": "on", "rateLimitEnabled": "limited",
    "rateLimitTimeWindow": "window", "rateLimitMax": "size", "requestCount": "count", "remaining": "left",
    "lastRequest": "used_at", "updatedAt": "changed_at", "permissions": "may", "metadata": "data",
}  # fmt: skip


def test_schema_renames_stored_attributes(cloud: Cloud, option: SetOption) -> None:
    option("api_key_schema", json.dumps(RENAMED))
    key, _ = make(
        cloud,
        name="ci",
        prefix="ci_",
        team_id=cloud.team.id,
        metadata={"a": 1},
        remaining=1,
        refill=Refill(interval_ms=60_000, amount=5),
        rate_limit=RateLimit(enabled=True, window_ms=30_000, max_requests=1),
    )
    later = key.created_at + timedelta(minutes=2)
    used = verify(key.key_hash, READ, now=later).key
    assert used is not None
    items = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    by_hash = {item["key_hash"]: item for item in map(aws.deserialize, items)}
    stored = by_hash[key.key_hash]
    assert {stored[name] for name in ("label", "kind", "team_id")} == {"ci", "ci_", cloud.team.id}
    assert (stored["left"], stored["count"], stored["may"]) == (5, 1, {"artifacts": ["read", "write"]})  # fmt: skip
    assert set(RENAMED.values()) - {"data"} <= stored.keys()
    assert by_hash[f"#metadata#{key.key_hash}"]["data"] == '{"a": 1}'
    assert not {"name", "remaining", "last_request", "permissions", "enabled"} & stored.keys()
    assert repository.get(key.key_hash) == used


def test_schema_applies_to_every_operation_on_a_key(cloud: Cloud, option: SetOption) -> None:
    option("api_key_schema", json.dumps(RENAMED))
    ada, now = by_session(cloud.user.id), clock.now()
    key, raw = make(cloud, name="ci", team_id=cloud.team.id)
    assert list_keys(cloud.user.id)[-1] == key
    assert Sender(raw, slug="acme")("PUT", "/v8/artifacts/abc", body=b"x").status == 202
    changed = update_key(ada, key.id, KeyChanges(enabled=False, metadata=[1]), now=now)
    assert (changed.enabled, changed.metadata) == (False, [1])
    assert verify(key.key_hash, READ, now=now).refusal is Refusal.DISABLED
    changed = update_key(ada, key.id, KeyChanges(enabled=True, metadata=None), now=now)
    assert (changed.enabled, changed.metadata) == (True, None)
    assert verify(key.key_hash, {"artifacts": ("x",)}, now=now).refusal is Refusal.LACKS_PERMISSION
    rotated = rotate_key(key.id, overlap_s=60, now=now)
    assert rotated is not None
    assert rotated[0].name == "ci"
    once, _ = make(cloud, remaining=1)
    assert verify(once.key_hash, READ, now=now).valid
    assert repository.get(once.key_hash) is None
    assert rotate_key(rotated[0].id, overlap_s=0, now=now) is not None


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ("{", "must be JSON"),
        ("[]", "must map fields"),
        ('{"name": 1}', "must map fields"),
        ('{"nothing": "x"}', "cannot rename nothing"),
        ('{"userId": "owner"}', "cannot rename userId"),
        ('{"name": ""}', "a name that no other has"),
        ('{"name": "prefix"}', "a name that no other has"),
        ('{"name": "refill_at"}', "a name that no other has"),
        ('{"name": "orphaned_at"}', "a name that no other has"),
        ('{"name": "x", "start": "x"}', "a name that no other has"),
    ],
)
def test_an_invalid_schema_is_reported(cloud: Cloud, option: SetOption, schema: str, rule: str) -> None:
    option("api_key_schema", schema)
    with pytest.raises(SettingsError, match=f"LARDER_API_KEY_SCHEMA .*{rule}"):
        make(cloud)


def test_schema_can_swap_two_names(cloud: Cloud, option: SetOption) -> None:
    option("api_key_schema", '{"name": "prefix", "prefix": "name"}')
    key, _ = make(cloud, name="ci", prefix="p_")
    stored = repository.get(key.key_hash)
    assert stored is not None
    assert (stored.name, stored.prefix) == ("ci", "p_")
