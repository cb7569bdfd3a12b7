"""The options of specification 2, a test for each row of its table that rules how keys are made and verified."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from larder import aws, clock, extensions
from larder.api_keys import repository
from larder.api_keys.models import ApiKey, NewKey, RateLimit, Refusal
from larder.api_keys.service import create_key, presented_form, verify
from larder.errors import InvalidRequest
from larder.settings import SettingsError, settings
from tests.conftest import SetOption
from tests.requests import Cloud, Sender

READ = {"artifacts": ("read",)}


def make(cloud: Cloud, **properties: Any) -> tuple[ApiKey, str]:
    return create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())


def refused_field(cloud: Cloud, **properties: Any) -> str:
    with pytest.raises(InvalidRequest) as refused:
        make(cloud, **properties)
    return refused.value.field


@pytest.fixture
def integrator() -> Iterator[ModuleType]:
    """A module of the integrator's, as their layer would bring it."""
    module = ModuleType("integrator")
    sys.modules["integrator"] = module
    yield module
    del sys.modules["integrator"]
    extensions.load.cache_clear()


def test_custom_api_key_validator_a_rejected_key_is_invalid_without_a_look_up(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.accepts = lambda key: key.startswith("ours_")  # type: ignore[attr-defined]
    option("key_validator", "integrator:accepts")
    assert presented_form("theirs_" + "a" * 64) is None
    assert verify(None, READ, now=clock.now()).refusal is Refusal.INVALID
    assert cloud.send("GET", "/v8/artifacts/status").status == 401


def test_custom_api_key_validator_an_accepted_key_must_still_match_the_stored_one(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.accepts = lambda key: True  # type: ignore[attr-defined]
    option("key_validator", "integrator:accepts")
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    assert Sender("a" * 64, slug="acme")("GET", "/v8/artifacts/status").status == 401


def test_custom_key_generator_makes_the_whole_key(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.make = lambda length, prefix: f"{prefix}{length}" + "~" * 64  # type: ignore[attr-defined]
    option("key_generator", "integrator:make")
    _, raw = make(cloud, prefix="p_")
    assert raw == "p_64" + "~" * 64
    assert Sender(raw, slug="acme")("GET", "/v8/artifacts/status").status == 200


@pytest.mark.parametrize("made", ["short", "with space" + "a" * 64, None, "é" * 64])
def test_custom_key_generator_must_return_what_a_header_can_carry(
    cloud: Cloud, option: SetOption, integrator: ModuleType, made: object
) -> None:
    integrator.make = lambda length, prefix: made  # type: ignore[attr-defined]
    option("key_generator", "integrator:make")
    with pytest.raises(SettingsError, match="must return 64 to 256"):
        make(cloud)


@pytest.mark.parametrize("name", ["nowhere:f", "json:nothing", "json", ":", "json:__doc__"])
def test_a_function_that_cannot_be_had_is_told(cloud: Cloud, option: SetOption, name: str) -> None:
    option("key_generator", name)
    with pytest.raises(SettingsError, match=r"names no function|is no function"):
        make(cloud)


def test_starting_characters_config_how_many_are_kept(cloud: Cloud, option: SetOption) -> None:
    option("key_start_length", 9)
    key, raw = make(cloud)
    assert key.start == raw[:9]


def test_starting_characters_config_none_are_kept(cloud: Cloud, option: SetOption) -> None:
    option("store_key_start", "false")
    assert make(cloud)[0].start is None


def test_default_key_length_without_the_prefix(cloud: Cloud, option: SetOption) -> None:
    option("default_key_length", 80)
    assert len(make(cloud, prefix="p_")[1]) == 82


def test_default_prefix(cloud: Cloud, option: SetOption) -> None:
    option("default_key_prefix", "acme_")
    key, raw = make(cloud)
    assert (key.prefix, raw[:5]) == ("acme_", "acme_")
    assert make(cloud, prefix="own_")[0].prefix == "own_"


def test_maximum_and_minimum_prefix_length(cloud: Cloud, option: SetOption) -> None:
    option("minimum_key_prefix_length", 3)
    option("maximum_key_prefix_length", 4)
    assert refused_field(cloud, prefix="ab") == "prefix"
    assert refused_field(cloud, prefix="abcde") == "prefix"
    assert make(cloud, prefix="abc")[0].prefix == "abc"


def test_require_name(cloud: Cloud, option: SetOption) -> None:
    assert make(cloud)[0].name is None
    option("require_key_name", "true")
    assert refused_field(cloud) == "name"
    assert make(cloud, name="ci")[0].name == "ci"


def test_maximum_and_minimum_name_length(cloud: Cloud, option: SetOption) -> None:
    option("minimum_key_name_length", 3)
    option("maximum_key_name_length", 4)
    assert refused_field(cloud, name="ab") == "name"
    assert refused_field(cloud, name="abcde") == "name"
    assert make(cloud, name="abcd")[0].name == "abcd"


def test_enable_metadata(cloud: Cloud, option: SetOption) -> None:
    assert make(cloud, metadata={"a": 1})[0].metadata == {"a": 1}
    option("enable_key_metadata", "false")
    assert refused_field(cloud, metadata={"a": 1}) == "metadata"
    assert make(cloud)[0].metadata is None


def test_key_expiration_default_expires_in(cloud: Cloud, option: SetOption) -> None:
    assert make(cloud)[0].expires_at is None
    option("default_key_expires_in_seconds", 3600)
    key, _ = make(cloud)
    assert key.expires_at == key.created_at + timedelta(hours=1)
    key, _ = make(cloud, expires_in_s=60)
    assert key.expires_at == key.created_at + timedelta(minutes=1)


def test_key_expiration_disable_custom_expires_time(cloud: Cloud, option: SetOption) -> None:
    option("disable_custom_key_expiry", "true")
    assert refused_field(cloud, expires_in_s=60) == "expiresIn"
    assert make(cloud)[0].expires_at is None


def test_key_expiration_min_and_max_expires_in(cloud: Cloud, option: SetOption) -> None:
    option("minimum_key_expires_in_seconds", 60)
    option("maximum_key_expires_in_seconds", 120)
    assert refused_field(cloud, expires_in_s=59) == "expiresIn"
    assert refused_field(cloud, expires_in_s=121) == "expiresIn"
    assert make(cloud, expires_in_s=120)[0].expires_at is not None


def test_rate_limit_is_off_so_that_a_fleet_may_share_a_key(cloud: Cloud) -> None:
    _, raw = make(cloud)
    now = clock.now()
    assert all(verify(presented_form(raw), READ, now=now).valid for _ in range(50))


def test_rate_limit_defaults_as_in_the_specifications_example(
    cloud: Cloud, option: SetOption
) -> None:
    option("key_rate_limit_enabled", "true")
    key, raw = make(cloud)
    assert key.rate_limit == RateLimit(enabled=True, window_ms=86_400_000, max_requests=10)
    now = clock.now()
    answers = [verify(presented_form(raw), READ, now=now) for _ in range(11)]
    assert [answer.valid for answer in answers] == [True] * 10 + [False]


def test_permissions_default_permissions_as_a_value(cloud: Cloud, option: SetOption) -> None:
    assert make(cloud)[0].permissions == {"artifacts": ("read", "write")}
    option("default_key_permissions", '{"artifacts":["read"]}')
    assert make(cloud)[0].permissions == {"artifacts": ("read",)}
    assert make(cloud, permissions={})[0].permissions == {}


def test_permissions_default_permissions_as_a_function_of_the_user(
    cloud: Cloud, option: SetOption, integrator: ModuleType
) -> None:
    integrator.of = lambda user_id: {"user": [user_id]}  # type: ignore[attr-defined]
    option("default_key_permissions", "integrator:of")
    assert make(cloud)[0].permissions == {"user": (cloud.user.id,)}


def test_disable_key_hashing(cloud: Cloud, option: SetOption) -> None:
    option("disable_key_hashing", "true")
    key, raw = make(cloud)
    assert key.key_hash == raw
    assert repository.get(raw) == key
    assert Sender(raw, slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_without_that_option_a_stolen_table_opens_nothing(cloud: Cloud) -> None:
    _, raw = make(cloud, metadata={"note": "x"})
    table = str(aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"])
    assert raw not in table
    assert raw[6:] not in table
