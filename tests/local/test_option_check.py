"""The check of settings with which requests would fail."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from larder import extensions
from larder.extensions import HOOKS
from larder.settings import SettingsError
from local.option_check import check_options, handler
from tests.conftest import SetOption


def test_the_defaults_pass(option: SetOption) -> None:
    check_options(loads=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowed_email_domains", "@example.com, b\u00fccher.example"),
        ("scrypt_cost", "32768"),
        ("trusted_origins", "https://*.example.com, http://localhost:5173/"),
        ("default_key_prefix", "acme_"),
        ("base_url", "https://cache.example.com:443/"),
        ("base_url", "http://[::1]:3000"),
        ("operator_emails", "ada@example.com, operator@larder.local"),
        ("default_key_permissions", '{"artifacts":["read"],"reports":[]}'),
        ("api_key_schema", '{"name":"label"}'),
        ("default_key_permissions", "{}"),
    ],
)
def test_valid_settings_pass(name: str, value: str, option: SetOption) -> None:
    option(name, value)
    assert handler({"loads": True}, None) == {"wrong": None}


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("retention_days", "0", "must be at least 1, not 0"),
        ("allowed_email_domains", "a@b.example", "must hold domains such as example.com"),
        ("scrypt_cost", "20000", "must be a power of two from 1024 to 262144, not '20000'"),
        ("trusted_origins", "app.example.com", "must hold origins such as"),
        ("default_key_prefix", "vca_", "must not begin with vca_"),
        ("default_key_prefix", "acme ci", "must be letters, digits or any of"),
        ("default_key_prefix", "x" * 33, "must have at most 32 characters, not 33"),
        ("allowed_networks", "203.0.113.0/24,203.0.113.5/24", "must be networks in CIDR notation: 203.0.113.5/24 has"),
        ("allowed_networks", "office", "must be networks in CIDR notation: 'office'"),
        ("base_url", "cache.example.com", "must be an origin, https://host"),
        ("base_url", "https://cache.example.com/larder", "must be an origin, https://host"),
        ("operator_emails", "ada@example.com, foo", "must contain addresses .*, not 'foo'"),
        ("api_key_schema", "{", "must be JSON"),
        ("default_key_permissions", "{", "must be JSON"),
        ("default_key_permissions", '{"artifacts":"read"}', "must map resource names"),
        ("default_key_permissions", '{"a\\u0007b":["read"]}', "must have names of 1 to 128"),
        ("default_key_permissions", "read", "must be JSON"),
    ],
)
def test_an_invalid_setting_is_reported_with_its_rule(name: str, value: str, rule: str, option: SetOption) -> None:
    option(name, value)
    with pytest.raises(SettingsError, match=f"^LARDER_{name.upper()} {rule}"):
        check_options(loads=True)


@pytest.mark.parametrize("what", ["password_length", "key_prefix_length", "key_name_length", "key_expires_in_seconds"])
def test_a_minimum_above_its_maximum_is_rejected(what: str, option: SetOption) -> None:
    option(f"minimum_{what}", 20)
    option(f"maximum_{what}", 10)
    name = what.upper()
    with pytest.raises(
        SettingsError, match=f"^LARDER_MINIMUM_{name} must be at most LARDER_MAXIMUM_{name}, 10, not 20"
    ):  # fmt: skip
        check_options(loads=True)


@pytest.mark.parametrize(
    ("least", "most", "rule"), [(8, 32, "must be 8 to 32 characters long"), (1, 4, "must be 1 to 4 characters long")]
)
def test_a_default_prefix_outside_its_bounds_names_all_three_options(
    least: int, most: int, rule: str, option: SetOption
) -> None:
    option("default_key_prefix", "acme_")
    option("minimum_key_prefix_length", least)
    option("maximum_key_prefix_length", most)
    with pytest.raises(SettingsError) as refused:
        check_options(loads=True)
    bounds = "LARDER_MINIMUM_KEY_PREFIX_LENGTH and LARDER_MAXIMUM_KEY_PREFIX_LENGTH"
    assert str(refused.value) == f"LARDER_DEFAULT_KEY_PREFIX {rule} ({bounds}), not 'acme_'"


def test_the_module_must_be_named_correctly_and_exist(option: SetOption) -> None:
    option("extensions", "company.hooks:deliver")
    with pytest.raises(SettingsError, match=r"^LARDER_EXTENSIONS must name a module such as"):
        check_options(loads=False)
    option("extensions", "no_such_module")
    check_options(loads=False)
    with pytest.raises(SettingsError, match=r"^LARDER_EXTENSIONS: no_such_module cannot be import"):
        check_options(loads=True)


@pytest.fixture
def integrator(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = ModuleType("integrator")
    monkeypatch.setitem(sys.modules, "integrator", module)
    yield module
    extensions.clear_hooks()


FITTING: dict[str, list[Callable[..., object]]] = {
    "generate_key": [lambda length, prefix: "", lambda prefix, length=64, more=1: ""],
    "validate_key": [lambda key: True, lambda key, ctx: True, lambda **given: True],
    "default_key_permissions": [lambda user_id: {}, lambda user_id, ctx=None: {}],
    "find_api_key": [lambda ctx: None, lambda headers: None, lambda headers, ctx: None],
    "hash_password": [lambda password: ""],
    "verify_password": [lambda hash, password: True],
    "on_password_reset": [lambda data, request: None, lambda user, request_data, more=1: None],
    "send_verification_email": [lambda data, request: None, lambda *given: None],
    "send_reset_password": [lambda data, request: None],
    "send_team_invitation": [lambda data, request: None],
}
UNFITTING: dict[str, Callable[..., object]] = {
    "takes something else": lambda token: None,
    "needs more": lambda key, ctx, headers, user_id, length, prefix, more: None,
    "takes nothing": lambda: None,
}


def given(integrator: ModuleType, option: SetOption, **functions: object) -> None:
    """Replace the functions of the module by these."""
    for name in HOOKS.keys() & vars(integrator).keys():
        delattr(integrator, name)
    vars(integrator).update(functions)
    option("extensions", "integrator")
    extensions.clear_hooks()


@pytest.mark.parametrize("name", FITTING)
def test_a_function_with_matching_parameters_passes(name: str, option: SetOption, integrator: ModuleType) -> None:
    needed = {"verify_password": lambda hash, password: True} if name == "hash_password" else {}
    for function in FITTING[name]:
        given(integrator, option, **{**needed, name: function})
        check_options(loads=True)


@pytest.mark.parametrize("name", FITTING)
@pytest.mark.parametrize("unfitting", UNFITTING)
def test_a_function_with_other_parameters_is_reported_by_its_name(
    name: str, unfitting: str, option: SetOption, integrator: ModuleType
) -> None:
    given(integrator, option, **{name: UNFITTING[unfitting]})
    rule = rf"^LARDER_EXTENSIONS: integrator\.{name} must be a function that takes \("
    with pytest.raises(SettingsError, match=rule):
        check_options(loads=True)


@pytest.mark.parametrize(
    ("functions", "rule"),
    [
        ({"validate_key": dict}, r"validate_key must be .* takes \(key, ctx\) or \(key\)$"),
        ({"validate_key": "yes"}, "validate_key is not a function$"),
        ({"genrate_key": len}, " must name a module with one of generate_key, "),
        ({"hash_password": lambda password: ""}, "must have verify_password with hash_password$"),
    ],
)
def test_a_module_that_larder_cannot_use_is_reported(
    functions: dict[str, object], rule: str, option: SetOption, integrator: ModuleType
) -> None:
    given(integrator, option, **functions)
    with pytest.raises(SettingsError, match=f"^LARDER_EXTENSIONS.*{rule}"):
        check_options(loads=True)


def test_the_cases_include_every_function() -> None:
    assert FITTING.keys() == HOOKS.keys()
