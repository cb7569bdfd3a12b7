"""`make serve` starts with every allowed value of every setting, and its first key gives access to the cache."""

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest
import time_machine

from larder import extensions
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey, check_name, check_prefix
from larder.settings import Settings, environment_name
from larder.teams.teams import find_team
from larder.web.gateway import HEADER
from local.environment import OPERATOR_EMAIL
from local.first_start import KEY_NAME, KEY_PREFIX, TEAM_SLUG, handler
from local.option_check import check_options
from local.turbo_env import read_turbo_env
from tests.conftest import SetOption
from tests.local.stub_service import ROOT, StubCloud
from tests.requests import Sender

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HASH = "0123456789abcdef"

TEXTS = {
    "default_key_prefix": ["acme_", "x" * 32],
    "default_key_permissions": ['{"artifacts":["read"]}', "{}"],
    "api_key_headers": ["x-api-key,x-acme-key"],
    "api_key_schema": ['{"name":"label","enabled":"active","permissions":"may"}'],
    "operator_emails": ["ada@acme.example, operator@larder.local"],
    "allowed_email_domains": ["acme.example"],
    "product_name": ["Acme cache"],
    "email_sender": ["cache@acme.example"],
    "base_url": ["https://cache.example.com"],
    "proxy_secret_hash": ["nEXHd35OmZ3o64SVI6TuwBiSYpNsOVbj+qQvjqDwQNU="],
    "allowed_networks": ["203.0.113.0/24,192.0.2.0/24,2001:db8::/32"],
    "edge_url": ["https://d111111abcdef8.cloudfront.net"],
    "trusted_issuers": ["https://gitlab.example.com, https://oidc.example.com/org/*"],
    "trusted_origins": ["https://*.example.com, http://localhost:5173"],
    "extensions": ["integrator"],
}
"""Allowed values of text settings without a list of choices."""


class Case(NamedTuple):
    """A setting that is no number, with a value."""

    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def named_by_the_stack(option: Any) -> bool:
    """Names of tables and similar settings without a default. The local cloud sets them itself."""
    return not isinstance(option.default, str | int)


OPTIONS = [option for option in fields(Settings) if not named_by_the_stack(option)]
BOUNDS = {
    option.name: {"lowest": option.metadata["min"], "highest": option.metadata["max"]}
    for option in OPTIONS
    if option.type is int
}


def cases() -> Iterator[Case]:
    for option in OPTIONS:
        name = option.name
        if option.type is bool:
            yield from (Case(name, value) for value in ("false", "true"))
        elif option.type is not int:
            values = option.metadata["choices"] or TEXTS[name]
            yield from (Case(name, value) for value in values)


@pytest.fixture(autouse=True)
def integrator(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module: Any = ModuleType("integrator")
    module.generate_key = lambda length, prefix: prefix + "~" * length
    module.default_key_permissions = lambda user_id: {"artifacts": ["read"]}
    module.validate_key = lambda key: True
    monkeypatch.setitem(sys.modules, "integrator", module)
    yield module
    extensions.clear_hooks()


def ask(token: str) -> int:
    """The status of a request for an artifact that is not stored: 404 if the key can read."""
    through_proxy = {HEADER: "the proxy's secret"}
    path = f"/v8/artifacts/{HASH}"
    return Sender(token, slug=TEAM_SLUG)("GET", path, headers=through_proxy).status


def first_start(token: str | None = None) -> dict[str, str]:
    return handler({"token": token}, None)


def test_the_cases_include_the_lowest_and_highest_value_of_every_setting() -> None:
    for name, bounds in BOUNDS.items():
        assert None not in bounds.values(), name
    assert {case.name for case in cases()} | BOUNDS.keys() == {option.name for option in OPTIONS}


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_it_starts_with_every_allowed_value_of_every_setting(
    case: Case, option: SetOption, aws_in_memory: None
) -> None:
    option(case.name, case.value)
    with time_machine.travel(NOW, tick=False):
        check_options(loads=True)
        made = first_start()
        assert "wrong" not in made
        assert ask(made["token"]) == 404
        assert first_start(made["token"]) == {"team": TEAM_SLUG, "key_id": made["key_id"]}


@pytest.mark.parametrize("extreme", ["lowest", "highest"])
def test_it_starts_with_all_numbers_at_one_extreme(extreme: str, option: SetOption, aws_in_memory: None) -> None:
    for name, bounds in BOUNDS.items():
        option(name, bounds[extreme])
    for name in ("require_key_name", "disable_custom_key_expiry"):
        option(name, "true")
    option("sign_up_policy", "closed")
    for name in ("enable_key_metadata", "enable_email_and_password"):
        option(name, "false")
    with time_machine.travel(NOW, tick=False):
        check_options(loads=True)
        assert ask(first_start()["token"]) == 404


@pytest.mark.parametrize(
    ("least", "most", "name"), [(1, 100, KEY_NAME), (1, 1, "t"), (1, 6, "turbo"), (40, 40, KEY_NAME.ljust(40, "."))]
)
def test_the_first_keys_name_has_an_allowed_length(
    least: int, most: int, name: str, option: SetOption, aws_in_memory: None
) -> None:
    option("minimum_key_name_length", least)
    option("maximum_key_name_length", most)
    first_start()
    assert first_key().name == name
    check_name(name)


@pytest.mark.parametrize(("least", "most", "prefix"), [(1, 32, KEY_PREFIX), (1, 3, "lar"), (9, 32, "larder___")])
def test_the_first_keys_prefix_has_an_allowed_length(
    least: int, most: int, prefix: str, option: SetOption, aws_in_memory: None
) -> None:
    option("minimum_key_prefix_length", least)
    option("maximum_key_prefix_length", most)
    made = first_start()
    assert first_key().prefix == prefix
    assert made["token"].startswith(prefix)
    check_prefix(prefix)


def first_key() -> Any:
    (key,) = list_keys(operator_id())
    return key


def operator_id() -> str:
    team = find_team(TEAM_SLUG)
    assert team is not None
    assert team.created_by is not None
    return team.created_by


def test_a_lost_key_is_revoked_and_users_own_keys_stay(aws_in_memory: None) -> None:
    lost = first_start()
    own_key, _ = create_key(NewKey(user_id=operator_id(), name=KEY_NAME), now=NOW)
    second = first_start()
    assert ask(lost["token"]) == 401
    assert ask(second["token"]) == 404
    assert {key.id for key in list_keys(operator_id())} == {own_key.id, second["key_id"]}


def test_an_expired_key_is_replaced(option: SetOption, aws_in_memory: None) -> None:
    option("default_key_expires_in_seconds", 60)
    with time_machine.travel(NOW, tick=False) as clock:
        first = first_start()
        clock.shift(61)
        second = first_start(first["token"])
        assert ask(second["token"]) == 404
        assert first_key().id == second["key_id"]


def test_a_key_that_changed_hashing_settings_no_longer_find_is_replaced(option: SetOption, aws_in_memory: None) -> None:
    first = first_start()
    option("disable_key_hashing", "true")
    second = first_start(first["token"])
    assert ask(second["token"]) == 404
    assert first_key().id == second["key_id"]


def test_a_key_with_another_name_is_kept(aws_in_memory: None) -> None:
    create_user(OPERATOR_EMAIL, "Operator", email_verified=True, now=NOW)
    first = first_start()
    other, token = create_key(NewKey(user_id=operator_id(), name="mine"), now=NOW)
    assert first_start(token) == {"team": TEAM_SLUG, "key_id": other.id}
    assert first_start(first["token"])["key_id"] == first["key_id"]


def test_renaming_attributes_with_existing_keys_is_an_error_that_names_the_setting(
    option: SetOption, aws_in_memory: None
) -> None:
    option("api_key_schema", '{"enabled":"active"}')
    first_start()
    option("api_key_schema", "{}")
    assert first_start() == {
        "wrong": "LARDER_API_KEY_SCHEMA cannot change once there are keys: the stored keys lack the attribute 'enabled'"
    }


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (lambda length, prefix: "short", r"integrator\.generate_key must return 64 to 256"),
        (lambda length: "x" * length, r"integrator\.generate_key must be a function that takes \(length, pre"),
        (lambda length, prefix: 1 // 0, "generate_key failed: ZeroDivisionError: "),
    ],
)
def test_a_failing_key_generator_is_named(
    made: Any, rule: str, option: SetOption, aws_in_memory: None, integrator: Any
) -> None:
    integrator.generate_key = made
    option("extensions", "integrator")
    assert re.match(f"LARDER_EXTENSIONS: {rule}", first_start()["wrong"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        # "lowest" has names of one character, too, and "highest" longer prefixes.
        pytest.param(
            {"LARDER_MAXIMUM_KEY_NAME_LENGTH": "1", "LARDER_MINIMUM_KEY_PREFIX_LENGTH": "8"}, marks=pytest.mark.thorough
        ),
        {
            environment_name(name): str(bounds["lowest"])
            for name, bounds in BOUNDS.items()
            # A key with a lifetime of a second could expire before the request.
            if name != "default_key_expires_in_seconds"
        },
        {environment_name(name): str(bounds["highest"]) for name, bounds in BOUNDS.items()},
        {environment_name(option.name): str(not option.default).lower() for option in OPTIONS if option.type is bool},
    ],
    ids=["short_names", "lowest", "highest", "switched"],
)
def test_the_local_cloud_starts_and_its_key_gives_access(variables: dict[str, str], tmp_path: Path) -> None:
    cloud = StubCloud(
        tmp_path,
        template=ROOT / "template.yaml",
        **variables,  # type: ignore[arg-type]  # none of them is called workers
    )
    try:
        turbo = read_turbo_env(cloud.data / "turbo.env")
        assert turbo is not None
        reply = httpx.get(
            f"{cloud.url}/v8/artifacts/{HASH}",
            params={"slug": turbo.team},
            headers={"authorization": f"Bearer {turbo.token}"},
            trust_env=False,
            timeout=30,
        )
        assert reply.status_code == 404
    finally:
        assert cloud.stop() == 0
