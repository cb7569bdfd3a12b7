"""Attribute names of the API key table.

A deployment can rename attributes, for other programs that read the table. Keys of the table and of its indexes cannot
be renamed, because the template fixes them.
"""

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from larder.settings import SettingsError, environment_name, settings

_OPTION = "api_key_schema"
_ATTRIBUTES = {
    "name": "name",
    "start": "start",
    "prefix": "prefix",
    "refillInterval": "refill_interval",
    "refillAmount": "refill_amount",
    "lastRefillAt": "last_refill_at",
    "enabled": "enabled",
    "rateLimitEnabled": "rate_limit_enabled",
    "rateLimitTimeWindow": "rate_limit_window",
    "rateLimitMax": "rate_limit_max",
    "requestCount": "request_count",
    "remaining": "remaining",
    "lastRequest": "last_request",
    "updatedAt": "updated_at",
    "permissions": "permissions",
    "metadata": "metadata",
}
"""Fields of the record whose attributes can be renamed, and the default names of these attributes."""

_FIXED = frozenset(
    {
        *("key_hash", "id", "user_id", "team_id", "created_at", "expires_at", "expiring"),
        *("password_version", "has_metadata"),
        *("has_allowance", "refill_at", "window_ends_at", "not_before"),
        *("scope", "rule_id", "rule_version", "rule_team", "run", "uses"),
        *("owned_by", "made_by", "known_to", "role_cap"),
    }
)


def attribute_names() -> Mapping[str, str]:
    """The renamed attributes: the default name of each, and its name in this deployment."""
    return _parse(settings().api_key_schema)


@cache
def _parse(option: str) -> Mapping[str, str]:
    def error(rule: str) -> SettingsError:
        return SettingsError(f"{environment_name(_OPTION)} {rule}")

    try:
        renamed = json.loads(option)
    except ValueError:
        raise error("must be JSON") from None
    if not isinstance(renamed, dict) or not all(isinstance(name, str) for name in renamed.values()):
        raise error("must map fields of the record to names of attributes")
    if unknown := sorted(renamed.keys() - _ATTRIBUTES.keys()):
        raise error(f"cannot rename {', '.join(unknown)}; it can {', '.join(_ATTRIBUTES)}")
    names = [renamed.get(field, attribute) for field, attribute in _ATTRIBUTES.items()]
    if "" in names or len({*names, *_FIXED}) < len(names) + len(_FIXED):
        raise error("must give each attribute a name that no other has")
    return MappingProxyType({_ATTRIBUTES[field]: name for field, name in renamed.items()})
