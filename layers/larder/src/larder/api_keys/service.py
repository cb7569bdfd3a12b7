"""Make, verify, change, rotate and end API keys."""

import json
import re
from contextlib import suppress
from datetime import datetime, timedelta

from larder.api_keys import repository
from larder.api_keys.models import (
    ApiKey,
    NewKey,
    Permissions,
    RateLimit,
    Refusal,
    Verification,
)
from larder.api_keys.rules import (
    VERCELS_OWN,
    check_expires_in,
    check_limits,
    check_metadata,
    check_name,
    check_permissions,
    check_prefix,
)
from larder.clock import to_ms
from larder.concurrency import attempts
from larder.deadline import short_deadline
from larder.errors import (
    InvalidRequest,
    MissingPermission,
    RateLimited,
    ReadOnly,
    TryAgain,
    Unauthenticated,
)
from larder.extensions import RequestContext, load
from larder.hashing import hash_key, random_id, random_letters
from larder.settings import SettingsError, settings

CLEAN_UP_SECONDS = 10
"""The least time between two automatic removals of expired keys (docs/clients/better-auth.md#allowance-and-refill)."""

_TOKEN = re.compile(r"[\x21-\x7e]{64,256}")


def create_key(new: NewKey, *, now: datetime) -> tuple[ApiKey, str]:
    """Store a new key without a request; returns the record and the key itself, which exists nowhere else.

    What the caller leaves open comes from the deployment's options. Raises InvalidRequest.
    """
    key, raw = prepare_key(new, now=now)
    store_key(key)
    return key, raw


def prepare_key(
    new: NewKey, *, now: datetime, ctx: RequestContext | None = None
) -> tuple[ApiKey, str]:
    """A new key as it will be, and the key itself. `ctx` is the request that asks for it. Raises InvalidRequest."""
    options = settings()
    prefix = options.default_key_prefix or None if new.prefix is None else new.prefix
    check_name(new.name)
    check_prefix(prefix)
    if new.expires_in_s is not None:
        check_expires_in(new.expires_in_s)
    check_metadata(new.metadata)
    permissions = new.permissions
    if permissions is None:
        permissions = default_permissions(new.user_id, ctx)
    check_permissions(permissions)
    expires_in_s = new.expires_in_s or options.default_key_expires_in_seconds or None
    rate_limit = new.rate_limit or default_rate_limit()
    check_limits(new.remaining, new.refill, rate_limit)
    raw = _generate(prefix or "")
    key = ApiKey(
        id=random_id(),
        key_hash=stored_form(raw),
        user_id=new.user_id,
        team_id=new.team_id,
        name=new.name,
        start=_start(raw, prefix or "") if options.store_key_start else None,
        prefix=prefix,
        enabled=True,
        permissions=permissions,
        metadata=new.metadata,
        remaining=new.remaining,
        refill=new.refill,
        refill_due_at=None if new.refill is None else new.refill.due_after(now),
        last_refill_at=None,
        rate_limit=rate_limit,
        request_count=0,
        window_ends_at=now + timedelta(milliseconds=rate_limit.window_ms),
        expires_at=None if expires_in_s is None else now + timedelta(seconds=expires_in_s),
        created_at=now,
        updated_at=now,
        last_request=None,
    )
    return key, raw


def store_key(key: ApiKey) -> None:
    """Raises InvalidRequest when its user does not exist, or not any more: nobody's key would never end."""
    if repository.add(key):
        return
    if repository.get(key.key_hash) is not None:
        raise SettingsError(f"{settings().key_generator} made a key that exists already")
    raise InvalidRequest("userId", "there is no such user")


def default_rate_limit() -> RateLimit:
    """The limit of a key that is given none: off by default, so that five hundred jobs may share a key."""
    options = settings()
    return RateLimit(
        enabled=options.key_rate_limit_enabled,
        window_ms=options.key_rate_limit_window_ms,
        max_requests=options.key_rate_limit_max,
    )


def stored_form(raw: str) -> str:
    """What the table keeps of a key: its hash, or the key itself where hashing is switched off."""
    return raw if settings().disable_key_hashing else hash_key(raw)


def presented_form(raw: str, ctx: RequestContext) -> str | None:
    """What a presented key is looked up by; None for what cannot be a key, or what the deployment's validator refuses.

    Unhashed, a text that is empty or too long could not even be looked up.
    """
    if not _TOKEN.fullmatch(raw):
        return None
    if settings().key_validator and not load("key_validator")(key=raw, ctx=ctx):
        return None
    return stored_form(raw)


def verify(key_hash: str | None, required: Permissions, *, now: datetime) -> Verification:
    """Check a key by every rule and take one use of it. Never raises for a bad key.

    `key_hash` is its `presented_form`; None is invalid without a look-up.

    The rules are checked, and the use is taken, in one conditional write: a refused use takes nothing from the
    allowance. A second write is needed when a window is over or a refill is due, and once in a key's life, to remove it
    with its last use.

    When the write fails, because the store does not answer or one partition takes no more writes, the key is read
    instead. One without an allowance then passes by its other rules: a rate limit gives way, and a metric tells. One
    with an allowance raises TryAgain: nothing can be promised without the count. So does a read that fails too.
    """
    if key_hash is None:
        return Verification(key=None, refusal=Refusal.INVALID)
    passed, key, turning = False, None, None
    try:
        # A window that is over or a refill that is due takes a second round: it need not wait.
        for _ in attempts(pausing_after=3):
            passed, key = repository.use(key_hash, required, now=now, turning=turning)
            if passed or key is None or _refusal(key, required, now) is not None:
                break
            # A window is over, a refill is due, or another request has just turned one of them.
            turning = key if key.turns(now) else None
    except TryAgain:
        key = repository.get(key_hash)
        if key is not None and key.remaining is not None:
            raise
        passed = key is not None and _refusal(key, required, now) is None
        if passed and key is not None and key.rate_limit.enabled:
            # Imported when it is needed: every request to the cache API loads this module.
            from larder.rate_limits.service import report_store_failure

            report_store_failure("key")
    if key is None:
        return Verification(key=None, refusal=Refusal.INVALID)
    if key.remaining == 0 and key.refill is None:
        # Its last use is taken, now or by a request that was cut off. One that cannot be removed now is refused all the
        # same, and removed by whoever presents it next.
        with suppress(TryAgain):
            repository.delete_if_ended(key_hash, now=now)
    if not passed:
        return _refused(key, required, now)
    return Verification(key=key)


def verify_key(key_hash: str | None, required: Permissions, *, now: datetime) -> ApiKey:
    """The same for a request that presents the key.

    Raises Unauthenticated for a key that is unknown, disabled, expired or used up, which of them is not told; ReadOnly
    or MissingPermission; RateLimited.
    """
    verification = verify(key_hash, required, now=now)
    if verification.valid and verification.key is not None:
        return verification.key
    match verification.refusal:
        case Refusal.RATE_LIMITED:
            raise RateLimited(verification.try_again_in_ms or 0)
        case Refusal.LACKS_PERMISSION if verification.key is not None:
            held = verification.key.permissions.get("artifacts", ())
            reads_only = required == {"artifacts": ("write",)} and "read" in held
            raise ReadOnly if reads_only else MissingPermission
    raise Unauthenticated


def list_keys(user_id: str) -> list[ApiKey]:
    """Every key of one user, oldest first."""
    return repository.list_by_user(user_id)


def find_key(key_id: str) -> ApiKey | None:
    return repository.find_by_id(key_id)


def revoke_key(key_id: str) -> bool:
    """Delete a key; no verification succeeds afterwards. Returns False when there is none with this id."""
    key = repository.find_by_id(key_id)
    return key is not None and repository.delete(key.key_hash)


def end_key(key: ApiKey) -> None:
    """The same for a key that is presented; one that has ended with this use is gone already."""
    repository.delete(key.key_hash)


def rotate_key(key_id: str, *, overlap_s: int, now: datetime) -> tuple[ApiKey, str] | None:
    """Make a key that takes over from another; the old one lives on for `overlap_s` seconds, or till its own expiry.

    The new key has the old one's user, team, name, prefix, permissions, metadata and limits, what is left of its
    allowance, and its lifetime anew. During an overlap both have what was left; without one, no use counts twice.
    Returns None when there is no key with this id. Raises InvalidRequest.
    """
    if overlap_s < 0:
        raise InvalidRequest("overlap", "must be a number of seconds from 0 on")
    old = repository.find_by_id(key_id)
    if old is None:
        return None
    if old.remaining == 0 and old.refill is None:
        raise InvalidRequest("key", "has no uses left to hand on")
    if not old.enabled:
        raise InvalidRequest("key", "is disabled; a rotation would make one that is not")
    if overlap_s == 0:
        # Off first, so that what is left is known; a crash before the end leaves a key that is off, not one too many.
        last = repository.disable(old.key_hash, now=now)
        if last is None or (last.remaining == 0 and last.refill is None):
            return None
        made = create_key(_successor(last, now), now=now)
        repository.delete(old.key_hash)
        return made
    made = create_key(_successor(old, now), now=now)
    end = now + timedelta(seconds=overlap_s)
    if old.expires_at is None or old.expires_at > end:
        repository.set_expiry(old.key_hash, end, now=now)
    return made


def _successor(old: ApiKey, now: datetime) -> NewKey:
    lifetime = None
    if old.expires_at is not None and not settings().disable_custom_key_expiry:
        lifetime = old.expires_at - old.created_at
    return NewKey(
        user_id=old.user_id,
        team_id=old.team_id,
        name=old.name,
        prefix=old.prefix,
        expires_in_s=None if lifetime is None else max(1, round(lifetime.total_seconds())),
        permissions=old.permissions,
        metadata=old.metadata,
        remaining=old.refilled(now).remaining,
        refill=old.refill,
        rate_limit=old.rate_limit,
    )


def delete_keys_of(user_id: str) -> int:
    """Delete every key of a user who is gone; returns how many. A key made a moment ago may not be found yet."""
    keys = list_keys(user_id)
    return sum(repository.delete(key.key_hash) for key in keys)


def delete_keys_of_team(team_id: str) -> int:
    """Delete every key that is bound to a team that is gone; returns how many. One made a moment ago may be missed."""
    return sum(repository.delete(key_hash) for key_hash in repository.bound_to(team_id))


def clean_up(*, now: datetime) -> None:
    """Remove expired keys, at most once in ten seconds across all instances.

    Tidying never fails the request that it comes with.
    """
    with suppress(TryAgain), short_deadline():
        if repository.claim_clean_up(now=now, every_s=CLEAN_UP_SECONDS):
            delete_expired_keys(now=now)


def delete_expired_keys(*, now: datetime) -> int:
    """Remove every key whose expiry has passed; returns how many. They have been refused since the moment it passed."""
    return sum(
        repository.delete_if_ended(key_hash, now=now) for key_hash in repository.expired(now=now)
    )


def _refused(key: ApiKey, required: Permissions, now: datetime) -> Verification:
    refusal = _refusal(key, required, now)
    if refusal is None:
        # Every rule would have let it pass: others were faster at each try.
        raise TryAgain
    wait_ms = None
    if refusal is Refusal.RATE_LIMITED:
        wait_ms = max(1, to_ms(key.window_ends_at) - to_ms(now))
    return Verification(key=key, refusal=refusal, try_again_in_ms=wait_ms)


def _refusal(key: ApiKey, required: Permissions, now: datetime) -> Refusal | None:
    """The first rule that the key breaks, in the order that clients know.

    docs/clients/better-auth.md#order-of-verification
    """
    if not key.enabled:
        return Refusal.DISABLED
    if key.expires_at is not None and key.expires_at <= now:
        return Refusal.EXPIRED
    for resource, actions in required.items():
        if not set(actions) <= set(key.permissions.get(resource, ())):
            return Refusal.LACKS_PERMISSION
    if key.remaining is not None and key.remaining <= 0 and not key.refill_is_due(now):
        return Refusal.USED_UP
    limit = key.rate_limit
    if limit.enabled and key.request_count >= limit.max_requests and now < key.window_ends_at:
        return Refusal.RATE_LIMITED
    return None


def _generate(prefix: str) -> str:
    length, generator = settings().default_key_length, settings().key_generator
    if not generator:
        return prefix + random_letters(length)
    raw = load("key_generator")(length=length, prefix=prefix)
    if not isinstance(raw, str) or not _TOKEN.fullmatch(raw) or raw.startswith(VERCELS_OWN):
        raise SettingsError(
            f"{generator} must return 64 to 256 printable ASCII characters without a space, "
            f"which do not begin with {VERCELS_OWN}"
        )
    return raw


def _start(raw: str, prefix: str) -> str:
    """What is shown of a key. The prefix is the same for many, so that the characters after it are counted."""
    shown = settings().key_start_length
    return raw[: shown + len(prefix) if raw.startswith(prefix) else shown]


def default_permissions(user_id: str, ctx: RequestContext | None) -> Permissions:
    """What a key of this user holds that is given nothing else.

    `ctx` is the request that asks, None outside of one.
    """
    name = "default_key_permissions"
    option = settings().default_key_permissions
    given = json.loads(option) if option.startswith("{") else load(name)(user_id=user_id, ctx=ctx)
    return {str(resource): tuple(map(str, actions)) for resource, actions in given.items()}
