"""Properties that callers give to a new key or change, and their bounds: the deployment's options, and fixed ones.

Every `check_` function raises InvalidValue, or the subclass with the code that clients expect
(docs/clients/better-auth.md#error-codes).
"""

import json
import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from larder.api_keys.models import (
    FETCH,
    FETCHES_ONLY,
    MAX_NUMBER,
    NEVER_OF_A_TEAM,
    VERCELS_OWN,
    Daily,
    Permissions,
    RateLimit,
    Refill,
)
from larder.errors import (
    ExpiresInTooLarge,
    ExpiresInTooSmall,
    InvalidMetadata,
    InvalidNameLength,
    InvalidPrefixLength,
    InvalidValue,
    KeyExpirationDisabled,
    MetadataDisabled,
    NameRequired,
    RemainingRequired,
)
from larder.names import CONTROL
from larder.settings import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """Properties of a new key. With a `team_id` it acts for that team only, else for its user and all of their teams.

    Without a `user_id`, the team owns it. `made_by` is the user who makes such a key, None for the operator.

    With `remaining`, its number of uses is limited. For a prefix, lifetime, permissions or rate limit of None, the
    deployment's option applies. With `daily`, it is a public read key.
    """

    user_id: str | None
    team_id: str | None = None
    made_by: str | None = None
    name: str | None = None
    prefix: str | None = None
    expires_in_s: int | None = None
    permissions: Permissions | None = None
    metadata: Any = None
    remaining: int | None = None
    refill: Refill | None = None
    rate_limit: RateLimit | None = None
    daily: Daily | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The id of the key that a new key replaces, and for how many seconds it still works."""

    key_id: str
    overlap_s: int


class Unset(Enum):
    """Distinguishes a property that does not change from one that is set to None."""

    UNSET = "unset"


UNSET: Literal[Unset.UNSET] = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """Changes to a key. A property that is not given stays.

    For metadata, expiry, allowance and refill, None removes the property, and UNSET leaves it.
    """

    name: str | None = None
    enabled: bool | None = None
    permissions: Permissions | None = None
    metadata: Any = UNSET
    expires_in_s: int | Unset | None = UNSET
    remaining: int | Unset | None = UNSET
    refill: Refill | Unset | None = UNSET
    rate_limit_enabled: bool | None = None
    rate_limit_window_ms: int | None = None
    rate_limit_max: int | None = None


MAX_METADATA_LENGTH = 10_000
"""In characters of JSON. Replies with many keys have to fit into Lambda's 6 MB."""

MAX_METADATA_DEPTH = 20

MAX_GRANTED = 100
"""The most resources that one key may have, and the most actions over all resources."""

MAX_PERMISSIONS_LENGTH = 10_000
"""In characters of JSON, as for metadata."""

MAX_WORD_LENGTH = 128
"""Of the name of a resource or an action."""

_PREFIX = re.compile(r"[a-zA-Z0-9_.:~-]*")
_PROTOTYPES = frozenset({"__proto__", "constructor", "prototype"})
"""Names that can change the prototype when a JavaScript program copies an object (prototype pollution)."""


def check_new(
    new: NewKey, *, prefix: str | None, permissions: Permissions, rate_limit: RateLimit
) -> None:
    """Check a new key, with the prefix, permissions and rate limit that it gets."""
    check_name(new.name)
    check_prefix(prefix)
    if new.expires_in_s is not None:
        check_expires_in(new.expires_in_s)
    check_metadata(new.metadata)
    check_permissions(permissions)
    if new.user_id is None:
        check_team_permissions(permissions)
    check_limits(new.remaining, new.refill, rate_limit)
    check_public(permissions, new.daily, of_team=new.user_id is None)
    if new.daily is not None:
        if new.remaining is not None or rate_limit.enabled:
            raise InvalidValue("daily_requests", "is the only limit of a public read key")
        _check_number("daily_requests", new.daily.max_requests)
        _check_number("daily_bytes", new.daily.max_bytes)


def check_name(name: str | None) -> None:
    options = settings()
    if name is None:
        if options.require_key_name:
            raise NameRequired("name", "is required")
        return
    least, most = options.minimum_key_name_length, options.maximum_key_name_length
    if not least <= len(name) <= most:
        raise InvalidNameLength("name", f"must hold {least} to {most} characters")
    if CONTROL.search(name):
        raise InvalidValue("name", "must not contain control characters")


def fit_name(name: str) -> str:
    """A generated name, cut or padded with dots to the length that the deployment requires."""
    options = settings()
    shortened = name[: options.maximum_key_name_length].strip()
    return shortened.ljust(options.minimum_key_name_length, ".")


def check_prefix(prefix: str | None) -> None:
    if prefix is None:
        return
    least, most = settings().minimum_key_prefix_length, settings().maximum_key_prefix_length
    if not least <= len(prefix) <= most:
        raise InvalidPrefixLength("prefix", f"must be {least} to {most} characters long")
    if not _PREFIX.fullmatch(prefix):
        raise InvalidValue("prefix", "must be letters, digits or any of . _ : ~ -")
    if prefix.startswith(VERCELS_OWN):
        raise InvalidValue("prefix", f"must not begin with {VERCELS_OWN}, as tokens of Vercel do")


def check_expires_in(expires_in_s: int | None) -> None:
    """Check a lifetime from a request."""
    options = settings()
    if options.disable_custom_key_expiry:
        raise KeyExpirationDisabled(
            "expires_in", "cannot be set: all keys of this deployment have the same lifetime"
        )
    if expires_in_s is None:
        return
    least, most = options.minimum_key_expires_in_seconds, options.maximum_key_expires_in_seconds
    rule = f"must be a whole number of seconds from {least} to {most}"
    if expires_in_s < least:
        raise ExpiresInTooSmall("expires_in", rule)
    if expires_in_s > most:
        raise ExpiresInTooLarge("expires_in", rule)


def check_metadata(metadata: Any) -> None:
    if metadata is None:
        return
    if not settings().enable_key_metadata:
        raise MetadataDisabled("metadata", "is disabled in this deployment")
    if not _is_storable(metadata, MAX_METADATA_DEPTH):
        names = ", ".join(sorted(_PROTOTYPES))
        raise InvalidMetadata(
            "metadata",
            f"must be JSON of at most {MAX_METADATA_DEPTH} levels, without the names {names}",
        )
    if len(json.dumps(metadata)) > MAX_METADATA_LENGTH:
        raise InvalidMetadata(
            "metadata", f"must be at most {MAX_METADATA_LENGTH} characters of JSON"
        )


def check_permissions(permissions: Permissions) -> None:
    names = [*permissions, *(action for actions in permissions.values() for action in actions)]
    if not all(0 < len(name) <= MAX_WORD_LENGTH and name.isprintable() for name in names):
        raise InvalidValue(
            "permissions",
            f"must have names of 1 to {MAX_WORD_LENGTH} characters, without control characters",
        )
    if not _PROTOTYPES.isdisjoint(names):
        raise InvalidValue(
            "permissions", f"must not have the names {', '.join(sorted(_PROTOTYPES))}"
        )
    if max(len(permissions), len(names) - len(permissions)) > MAX_GRANTED:
        raise InvalidValue(
            "permissions", f"must name at most {MAX_GRANTED} resources and {MAX_GRANTED} actions"
        )
    if len(json.dumps(permissions)) > MAX_PERMISSIONS_LENGTH:
        raise InvalidValue(
            "permissions", f"must be at most {MAX_PERMISSIONS_LENGTH} characters of JSON"
        )


def check_team_permissions(permissions: Permissions) -> None:
    """Check the permissions of a team's own key."""
    if forbidden := [resource for resource in NEVER_OF_A_TEAM if resource in permissions]:
        raise InvalidValue(
            "permissions", f"of a key that a team owns must not have {' or '.join(forbidden)}"
        )


def check_public(permissions: Permissions, daily: Daily | None, *, of_team: bool) -> None:
    """Check that a public read key has bounds, and can do nothing else, and that no other key is one."""
    if daily is None and FETCH in permissions.get("artifacts", ()):
        raise InvalidValue(
            "permissions", "can have artifacts: fetch only with daily_requests and daily_bytes"
        )
    if daily is not None and permissions != FETCHES_ONLY:
        raise InvalidValue("permissions", "of a public read key must be artifacts: fetch alone")
    if daily is not None and not of_team:
        raise InvalidValue("daily_requests", "is for keys that a team owns")


def check_limits(remaining: int | None, refill: Refill | None, rate_limit: RateLimit) -> None:
    """Check allowance, refill and rate limit."""
    _check_number("rate_limit_time_window", rate_limit.window_ms)
    _check_number("rate_limit_max", rate_limit.max_requests)
    if remaining is not None:
        _check_number("remaining", remaining, least=0)
    if refill is not None:
        _check_number("refill_interval", refill.interval_ms)
        _check_number("refill_amount", refill.amount)
        if remaining is None:
            raise RemainingRequired


def _check_number(field: str, number: int, *, least: int = 1) -> None:
    if not least <= number <= MAX_NUMBER:
        raise InvalidValue(field, f"must be a whole number from {least} to {MAX_NUMBER}")


def _is_storable(value: Any, levels: int) -> bool:
    """False if a part of the value is too deep, has a forbidden name, or is a number that JSON does not have (NaN)."""
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, dict | list):
        return True
    if levels == 0 or (isinstance(value, dict) and not _PROTOTYPES.isdisjoint(value)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return all(_is_storable(one, levels - 1) for one in inner)
