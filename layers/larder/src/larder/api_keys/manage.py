"""Manage keys as a signed-in user: one's own keys or, as an operator, all keys."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from larder.api_keys import audited, repository
from larder.api_keys.changes import KeyChanges, NewKey, Rotation, Unset
from larder.api_keys.grants import check_grant, check_reach, held, raised, within
from larder.api_keys.models import TRUST, ApiKey, Refill
from larder.api_keys.principals import Principal
from larder.api_keys.rules import (
    check_expires_in,
    check_limits,
    check_metadata,
    check_name,
    check_permissions,
)
from larder.api_keys.service import (
    MILLISECOND,
    end_after,
    prepare_key,
    revoke_key,
    store_key,
)
from larder.concurrency import attempts
from larder.errors import (
    InvalidValue,
    KeyNotFound,
    NoValuesToUpdate,
    SessionNotFresh,
    SessionRequired,
    TryAgain,
)
from larder.extensions import RequestContext
from larder.teams import protection
from larder.teams.protection import FirstTrust

_ID = re.compile(r"[A-Za-z0-9]{32}")
_NO_TRUST = FirstTrust()
_TRUST_IS_FOR_NEW = (
    "only a new key can get artifacts: trust, because jobs that are not trusted may have this one"
)


def grant_key(
    principal: Principal,
    new: NewKey,
    *,
    trust: FirstTrust = _NO_TRUST,
    rotation: Rotation | None = None,
    fresh: bool = False,
    ctx: RequestContext | None = None,
    now: datetime,
) -> tuple[ApiKey, str]:
    """Create a key. Returns the record and the secret key, which cannot be read again.

    With `rotation`, it replaces another key of the same user and team, which then ends. One transaction does both.

    Without `permissions`, the key gets the deployment's default, limited to what the principal holds. `ctx` is the
    request, for functions of the integrator. `trust` is what `first_trust` says of the key. `fresh` is whether the user
    has signed in recently, which a key with more than the cache needs requires. Raises InvalidValue, PermissionNotHeld,
    NotATeamMember, SessionNotFresh, SessionRequired, KeyLimitReached, KeyNotFound, TryAgain.
    """
    if not _ID.fullmatch(new.user_id):
        raise InvalidValue("user_id", "there is no such user")
    if new.team_id is None and principal.key is not None:
        new = replace(new, team_id=principal.key.team_id)
    key, raw = prepare_key(new, now=now, ctx=ctx)
    holds = held(principal, user_id=key.user_id, team_id=key.team_id, ctx=ctx)
    if new.permissions is None and holds is not None:
        key = replace(key, permissions=within(key.permissions, holds))
    check_grant(principal, key, holds)
    _check_fresh(principal, None, key, fresh)
    maker = principal.user if principal.user_id == key.user_id else None
    old = None if rotation is None else _replaced(principal, rotation, key)
    stored = store_key(
        key,
        maker=maker,
        actor=principal.actor,
        replaces=old,
        ending=[end_after(old, rotation.overlap_s, now=now)] if old and rotation else [],
        also=trust.writes,
    )
    protection.confirm(trust)
    return stored, raw


def _replaced(principal: Principal, rotation: Rotation, new: ApiKey) -> ApiKey:
    """The key that the new one replaces. Raises InvalidValue, KeyNotFound, PermissionNotHeld, NotATeamMember."""
    old = _find(principal, rotation.key_id)
    check_reach(principal, old)
    if (old.user_id, old.team_id) != (new.user_id, new.team_id):
        raise InvalidValue("replaces", "must be a key of the same user and team as the new one")
    return old


def first_trust(principal: Principal, new: NewKey, *, protect: bool) -> FirstTrust:
    """What the new key does to its team if it is the first one that the team trusts (`teams.protection`)."""
    team_id = new.team_id or principal.bound_to
    if team_id is None or TRUST not in (new.permissions or {}).get("artifacts", ()):
        return FirstTrust()
    return protection.first_trust(team_id, protect=protect, actor=principal.actor)


def get_key(principal: Principal, key_id: str) -> ApiKey:
    """Raises KeyNotFound, also for another user's key unless the principal is an operator."""
    return repository.with_metadata(_find(principal, key_id))


def _find(principal: Principal, key_id: str) -> ApiKey:
    key = repository.find_by_id(key_id) if _ID.fullmatch(key_id) else None
    if key is None or not (principal.is_operator or key.user_id == principal.user_id):
        raise KeyNotFound
    return key


def update_key(
    principal: Principal,
    key_id: str,
    changes: KeyChanges,
    *,
    fresh: bool = False,
    ctx: RequestContext | None = None,
    now: datetime,
) -> ApiKey:
    """Change a key and return the new record.

    The grant is checked if permissions change. If the principal has a key, it is checked for every change, and so is
    the grant of the key as it was.
    `fresh` is as in `grant_key`, for changes that give the key more or let it live longer. Raises KeyNotFound,
    NoValuesToUpdate, InvalidValue, PermissionNotHeld, NotATeamMember, SessionNotFresh, SessionRequired.
    """
    if changes == KeyChanges():
        raise NoValuesToUpdate
    for _ in attempts():
        key = _find(principal, key_id)
        changed = _apply(key, changes, now)
        if changed.may_trust and not key.may_trust:
            raise InvalidValue("permissions", _TRUST_IS_FOR_NEW)
        check_reach(principal, key)
        if changes.permissions is not None or principal.key is not None:
            holds = held(principal, user_id=key.user_id, team_id=key.team_id, ctx=ctx)
            check_grant(principal, changed, holds)
        _check_fresh(principal, key, changed, fresh)
        stored = repository.change(key, changed, *audited.changed(key, principal.actor))
        if stored is not None:
            return repository.with_metadata(stored)
        # The key was deleted, a use has just refilled it, or another request has moved its metadata.
    raise TryAgain


def delete_key(principal: Principal, key_id: str) -> None:
    """Delete a key. No verification succeeds afterwards. Raises KeyNotFound, PermissionNotHeld, NotATeamMember."""
    key = _find(principal, key_id)
    check_reach(principal, key)
    if not revoke_key(key, actor=principal.actor):
        raise KeyNotFound


def _check_fresh(principal: Principal, before: ApiKey | None, after: ApiKey, fresh: bool) -> None:
    """Raises SessionNotFresh, SessionRequired."""
    if raised(before, after) and not fresh:
        raise SessionNotFresh if principal.key is None else SessionRequired


def _apply(key: ApiKey, changes: KeyChanges, now: datetime) -> ApiKey:
    """Apply and check the changes. `updated_at` always increases, so two changes never have the same time."""
    changed = replace(key, updated_at=max(now, key.updated_at + MILLISECOND))
    if changes.name is not None:
        check_name(changes.name)
        changed = replace(changed, name=changes.name)
    if changes.enabled is not None:
        changed = replace(changed, enabled=changes.enabled)
    if changes.permissions is not None:
        check_permissions(changes.permissions)
        changed = replace(changed, permissions=changes.permissions)
    if changes.metadata is not Unset.UNSET:
        check_metadata(changes.metadata)
        changed = replace(changed, metadata=changes.metadata)
    if changes.expires_in_s is not Unset.UNSET:
        check_expires_in(changes.expires_in_s)
        seconds = changes.expires_in_s
        ends_at = None if seconds is None else now + timedelta(seconds=seconds)
        changed = replace(changed, expires_at=ends_at)
    return _apply_limits(changed, changes, now)


def _apply_limits(key: ApiKey, changes: KeyChanges, now: datetime) -> ApiKey:
    changed = key
    if changes.remaining is not Unset.UNSET:
        changed = replace(changed, remaining=changes.remaining)
    if changes.refill is not Unset.UNSET:
        changed = _with_refill(changed, changes.refill, now)
    limit = key.rate_limit
    if changes.rate_limit_enabled is not None:
        limit = replace(limit, enabled=changes.rate_limit_enabled)
    if changes.rate_limit_window_ms is not None:
        limit = replace(limit, window_ms=changes.rate_limit_window_ms)
    if changes.rate_limit_max is not None:
        limit = replace(limit, max_requests=changes.rate_limit_max)
    changed = replace(changed, rate_limit=limit)
    if changed != key:
        check_limits(changed.remaining, changed.refill, limit)
    if (limit.enabled, limit.window_ms) != (key.rate_limit.enabled, key.rate_limit.window_ms):
        window = timedelta(milliseconds=limit.window_ms)
        changed = replace(changed, window_ends_at=now + window, request_count=0)
    return changed


def _with_refill(key: ApiKey, refill: Refill | None, now: datetime) -> ApiKey:
    """Set the refill. A new interval starts now; earlier time does not count towards it."""
    due_at = key.refill_due_at
    if refill is None:
        due_at = None
    elif key.refill is None or refill.interval_ms != key.refill.interval_ms:
        due_at = refill.due_after(now)
    return replace(key, refill=refill, refill_due_at=due_at)
