"""Make, verify and revoke API keys."""

import re
from datetime import datetime, timedelta

from larder.api_keys import repository
from larder.api_keys.models import ApiKey, NewKey, Permissions
from larder.errors import (
    InvalidRequest,
    LarderError,
    MissingPermission,
    ReadOnly,
    Throttled,
    Unauthenticated,
)
from larder.hashing import hash_key, random_id, random_letters

KEY_LENGTH = 64
"""Letters of a key after its prefix (spec 2, defaultKeyLength)."""

START_LENGTH = 6
"""Characters of a key that are kept to recognise it by (reference: better-auth.md, 4)."""

_PREFIX = re.compile(r"[a-zA-Z0-9_-]{1,32}")
_RESOURCE = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def create_key(new: NewKey, *, now: datetime) -> tuple[ApiKey, str]:
    """Store a new key; returns the record and the key itself, which exists nowhere else. Raises InvalidRequest."""
    if new.name is not None and not 1 <= len(new.name) <= 32:
        raise InvalidRequest("name", "must hold 1 to 32 characters")
    if new.prefix is not None and not _PREFIX.fullmatch(new.prefix):
        raise InvalidRequest("prefix", "must be 1 to 32 letters, digits, underscores or hyphens")
    if new.expires_in_s is not None and new.expires_in_s < 1:
        raise InvalidRequest("expiresIn", "must be a positive number of seconds")
    for resource, actions in new.permissions.items():
        if not all(_RESOURCE.fullmatch(word) for word in (resource, *actions)):
            raise InvalidRequest("permissions", "must map resource names to lists of action names")
    raw = (new.prefix or "") + random_letters(KEY_LENGTH)
    key = ApiKey(
        id=random_id(),
        key_hash=hash_key(raw),
        user_id=new.user_id,
        team_id=new.team_id,
        name=new.name,
        start=raw[:START_LENGTH],
        prefix=new.prefix,
        enabled=True,
        permissions=new.permissions,
        expires_at=None if new.expires_in_s is None else now + timedelta(seconds=new.expires_in_s),
        created_at=now,
        updated_at=now,
        last_request=None,
    )
    repository.add(key)
    return key, raw


def verify_key(key_hash: str, required: Permissions, *, now: datetime) -> ApiKey:
    """Check that a key exists, is enabled, is not expired and holds `required`.

    Raises Unauthenticated (which of the first three failed is not told), ReadOnly or MissingPermission.

    One DynamoDB call. When a single key is used faster than one partition takes writes, its use is not noted and the
    same rules are checked on a read, so that a large build fleet is never refused for being large.
    """
    try:
        passed, key = repository.use(key_hash, required, now=now)
    except Throttled:
        key = repository.get(key_hash)
        passed = key is not None and _refusal(key, required, now) is None
    if key is None:
        raise Unauthenticated
    if not passed:
        raise _refusal(key, required, now) or Unauthenticated()
    return key


def _refusal(key: ApiKey, required: Permissions, now: datetime) -> LarderError | None:
    if not key.enabled or (key.expires_at is not None and key.expires_at <= now):
        return Unauthenticated()
    for resource, actions in required.items():
        held = key.permissions.get(resource, ())
        if missing := set(actions).difference(held):
            reads_only = resource == "artifacts" and missing == {"write"} and "read" in held
            return ReadOnly() if reads_only else MissingPermission()
    return None


def list_keys(user_id: str) -> list[ApiKey]:
    """Every key of one user, oldest first."""
    return repository.list_by_user(user_id)


def revoke_key(key_id: str) -> bool:
    """Delete a key. Returns False when there is none with this id."""
    key = repository.find_by_id(key_id)
    if key is None:
        return False
    repository.delete(key.key_hash)
    return True
