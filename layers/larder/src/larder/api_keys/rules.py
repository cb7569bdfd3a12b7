"""What the properties of an API key may be: the bounds that the deployment's options set, and those that hold always.

Every function raises InvalidRequest, or the subclass with the code that clients know
(docs/clients/better-auth.md#error-codes).
"""

import json
import math
import re
from typing import Any

from larder.api_keys.models import MAX_NUMBER, Permissions, RateLimit, Refill
from larder.errors import (
    ExpiresInTooLarge,
    ExpiresInTooSmall,
    InvalidMetadata,
    InvalidNameLength,
    InvalidPrefixLength,
    InvalidRequest,
    KeyExpirationDisabled,
    MetadataDisabled,
    NameRequired,
)
from larder.names import CONTROL
from larder.settings import settings

MAX_METADATA_LENGTH = 10_000
"""Every verification reads and writes the whole item, and pays for each kilobyte of it."""

MAX_METADATA_DEPTH = 20

MAX_GRANTED = 100
"""Resources, and actions of all resources together, that one key may hold."""

VERCELS_OWN = "vca_"
"""The prefix of Vercel's tokens. The build client would send any token that has it to Vercel for an exchange
(docs/clients/turbo.md#status-codes).
"""

_PREFIX = re.compile(r"[a-zA-Z0-9_-]*")
_WORD = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_PROTOTYPES = frozenset({"__proto__", "constructor", "prototype"})
"""Names that change more than themselves when a program in JavaScript copies an object."""


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
        raise InvalidRequest("name", "must hold no control character")


def fit_name(name: str) -> str:
    """A name that Larder gives by itself, cut or filled up with dots to the length that names have here."""
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
        raise InvalidRequest("prefix", "must be letters, digits, underscores or hyphens")
    if prefix.startswith(VERCELS_OWN):
        raise InvalidRequest("prefix", f"must not begin with {VERCELS_OWN}, as tokens of Vercel do")


def check_expires_in(expires_in_s: int | None) -> None:
    """A lifetime that somebody chose."""
    options = settings()
    if options.disable_custom_key_expiry:
        raise KeyExpirationDisabled(
            "expiresIn", "cannot be chosen here: every key has the same lifetime"
        )
    if expires_in_s is None:
        return
    least, most = options.minimum_key_expires_in_seconds, options.maximum_key_expires_in_seconds
    rule = f"must be a whole number of seconds from {least} to {most}"
    if expires_in_s < least:
        raise ExpiresInTooSmall("expiresIn", rule)
    if expires_in_s > most:
        raise ExpiresInTooLarge("expiresIn", rule)


def check_metadata(metadata: Any) -> None:
    if metadata is None:
        return
    if not settings().enable_key_metadata:
        raise MetadataDisabled("metadata", "is switched off here")
    if not _can_be_kept(metadata, MAX_METADATA_DEPTH):
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
    if not all(_WORD.fullmatch(name) for name in names) or not _PROTOTYPES.isdisjoint(names):
        raise InvalidRequest("permissions", "must map resource names to lists of action names")
    if max(len(permissions), len(names) - len(permissions)) > MAX_GRANTED:
        raise InvalidRequest(
            "permissions", f"must name at most {MAX_GRANTED} resources and {MAX_GRANTED} actions"
        )


def check_limits(remaining: int | None, refill: Refill | None, rate_limit: RateLimit) -> None:
    """Allowance, refill and rate limit, which depend on each other."""
    _check_number("rateLimitTimeWindow", rate_limit.window_ms)
    _check_number("rateLimitMax", rate_limit.max_requests)
    if remaining is not None:
        _check_number("remaining", remaining, least=0)
    if refill is not None:
        _check_number("refillInterval", refill.interval_ms)
        _check_number("refillAmount", refill.amount)
        if remaining is None:
            raise InvalidRequest("remaining", "is needed with refillAmount and refillInterval")


def _check_number(field: str, number: int, *, least: int = 1) -> None:
    if not least <= number <= MAX_NUMBER:
        raise InvalidRequest(field, f"must be a whole number from {least} to {MAX_NUMBER}")


def _can_be_kept(value: Any, levels: int) -> bool:
    """Whether no part of a JSON value is too deep, is named like a prototype, or is a number that JSON cannot write."""
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, dict | list):
        return True
    if levels == 0 or (isinstance(value, dict) and not _PROTOTYPES.isdisjoint(value)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return all(_can_be_kept(one, levels - 1) for one in inner)
