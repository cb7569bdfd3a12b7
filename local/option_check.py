"""Check settings that are texts or depend on one another. Runs in a worker, which has the settings.

A number out of its bounds already stops any process that reads the settings. Without these checks, the first request
that needs a wrong setting would find it, which is too late. Checking in every function would cost too much.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from ipaddress import ip_network
from typing import Any

from larder.accounts.sign_in import allowed_domains
from larder.addresses import parse_address
from larder.api_keys.properties import check_permissions, check_prefix
from larder.api_keys.repository import attribute_names
from larder.errors import InvalidEmail, InvalidPrefixLength, InvalidValue
from larder.extensions import HOOKS, hook
from larder.settings import (
    MODULE_PATTERN,
    Settings,
    SettingsError,
    environment_name,
    listed,
    settings,
)
from larder.web import origins


def handler(event: Mapping[str, Any], _context: object) -> dict[str, str | None]:
    """Takes `{"loads": ...}`: whether the integrator's module can be imported. Returns `wrong`, an error or null."""
    try:
        check_options(loads=event["loads"])
    except SettingsError as error:
        return {"wrong": str(error)}
    return {"wrong": None}


def check_options(*, loads: bool) -> None:
    """Raises SettingsError for the first wrong setting. With `loads`, also for functions of the integrator."""
    _check_bounds()
    _check_default_prefix()
    _check_operators()
    allowed_domains()
    _check_networks()
    attribute_names()
    origins.check_options()
    _check_extensions(loads=loads)
    _check_default_permissions()


def _check_bounds() -> None:
    names = {option.name for option in fields(Settings)}
    for lower in sorted(name for name in names if name.startswith("minimum_")):
        upper = lower.replace("minimum_", "maximum_")
        least, most = getattr(settings(), lower), getattr(settings(), upper)
        if least > most:
            raise _refused(lower, f"must be at most {environment_name(upper)}, {most}, not {least}")


def _check_default_prefix() -> None:
    prefix = settings().default_key_prefix
    try:
        check_prefix(prefix or None)
    except InvalidPrefixLength as error:
        bounds = [
            environment_name(f"{bound}_key_prefix_length") for bound in ("minimum", "maximum")
        ]
        rule = f"{error.rule} ({' and '.join(bounds)}), not {prefix!r}"
        raise _refused("default_key_prefix", rule) from None
    except InvalidValue as error:
        raise _refused("default_key_prefix", f"{error.rule}, not {prefix!r}") from None


def _check_operators() -> None:
    for email in listed(settings().operator_emails):
        try:
            parse_address(email)
        except InvalidEmail:
            raise _refused(
                "operator_emails", f"must contain addresses such as ada@example.com, not {email!r}"
            ) from None


def _check_networks() -> None:
    for network in listed(settings().allowed_networks):
        try:
            ip_network(network)
        except ValueError as error:
            raise _refused(
                "allowed_networks", f"must be networks in CIDR notation: {error}"
            ) from None


def _check_extensions(*, loads: bool) -> None:
    module = settings().extensions
    if not re.match(MODULE_PATTERN, module):
        raise _refused("extensions", f"must name a module such as company.larder, not {module!r}")
    if not module or not loads:
        return
    found = {name for name in HOOKS if hook(name) is not None}
    if not found:
        raise _refused("extensions", f"must name a module with one of {', '.join(HOOKS)}")
    if "hash_password" in found and "verify_password" not in found:
        raise _refused("extensions", f"{module} must have verify_password with hash_password")


def _check_default_permissions() -> None:
    option, text = "default_key_permissions", settings().default_key_permissions
    try:
        permissions = json.loads(text)
    except ValueError:
        raise _refused(option, f"must be JSON, not {text!r}") from None
    try:
        if not isinstance(permissions, dict) or not all(map(_names_actions, permissions.values())):
            raise InvalidValue("permissions", "must map resource names to lists of action names")
        check_permissions({resource: tuple(actions) for resource, actions in permissions.items()})
    except InvalidValue as error:
        raise _refused(option, f"{error.rule}, not {text!r}") from None


def _names_actions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(action, str) for action in value)


def _refused(option: str, rule: str) -> SettingsError:
    return SettingsError(f"{environment_name(option)} {rule}")
