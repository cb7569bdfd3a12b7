"""What the attributes of the table of API keys are called.

A deployment may call those that are no keys, neither of the table nor of an index, as programs of its own know them.
Keys of tables are fixed by the template.
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
"""Fields of the record whose attributes can have another name, and the names that they have without the option."""

_FIXED = frozenset(
    {
        *("key_hash", "id", "user_id", "team_id", "created_at", "expires_at", "expiring"),
        *("has_allowance", "refill_at", "window_ends_at", "not_before"),
    }
)


def attribute_names() -> Mapping[str, str]:
    """Our names of the attributes that the deployment calls otherwise, and what it calls them."""
    return _parse(settings().api_key_schema)


@cache
def _parse(option: str) -> Mapping[str, str]:
    def refused(rule: str) -> SettingsError:
        return SettingsError(f"{environment_name(_OPTION)} {rule}")

    try:
        given = json.loads(option)
    except ValueError:
        raise refused("must be JSON") from None
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given.values()):
        raise refused("must map fields of the record to names of attributes")
    if unknown := sorted(given.keys() - _ATTRIBUTES.keys()):
        raise refused(f"cannot rename {', '.join(unknown)}; it can {', '.join(_ATTRIBUTES)}")
    named = [given.get(field, attribute) for field, attribute in _ATTRIBUTES.items()]
    if "" in named or len({*named, *_FIXED}) < len(named) + len(_FIXED):
        raise refused("must give each attribute a name that no other has")
    return MappingProxyType({_ATTRIBUTES[field]: name for field, name in given.items()})
