"""Create, list, rotate and delete API keys. `verification` verifies them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.api_keys import repository
from larder.api_keys.models import (
    NEVER_OF_A_TEAM,
    ApiKey,
    KeyPage,
    Permissions,
    RateLimit,
    role_cap_of,
    scope_of_user,
)
from larder.api_keys.properties import NewKey, check_new
from larder.api_keys.verification import generate
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts, map_concurrently
from larder.deadline import short_deadline
from larder.errors import InvalidValue, KeyNotFound, NotSignedIn, TryAgain
from larder.extensions import RequestContext, hook
from larder.hashing import is_random_id, random_id
from larder.settings import SettingsError, environment_name, settings
from larder.teams.protection import NO_TRUST, FirstTrust

if TYPE_CHECKING:
    # Builds use keys, and start faster without the account modules.
    from larder.accounts.models import User
    from larder.tables import Write


CLEAN_UP_SECONDS = 10
"""The least time between two automatic deletions of expired keys (docs/clients/better-auth.md#allowance-and-refill)."""

MILLISECOND = timedelta(milliseconds=1)
"""A change of a key is at least this much later than the one before, so that two never have the same time."""

_DELETED_BY_A_REQUEST = 20
"""The most expired keys that one request deletes. The hourly sweep deletes all."""

_DELETED_TOGETHER = 100
"""Expired keys between two reads of the index."""


def create_key(new: NewKey, *, trust: FirstTrust = NO_TRUST, now: datetime) -> tuple[ApiKey, str]:
    """Create a key outside of a request. Returns the record and the secret key, which cannot be read again.

    For properties that are None, the deployment's options apply. `trust` is as in `store_key`. Raises InvalidValue,
    KeyLimitReached.
    """
    key, raw = prepare_key(new, now=now)
    return store_key(key, trust=trust), raw


def prepare_key(
    new: NewKey, *, now: datetime, ctx: RequestContext | None = None
) -> tuple[ApiKey, str]:
    """Make a key without storing it. Returns the record and the secret key. Raises InvalidValue.

    A team's own key made by the operator needs `permissions`.
    """
    options = settings()
    prefix = options.default_key_prefix or None if new.prefix is None else new.prefix
    permissions = new.permissions
    if permissions is None:
        permissions = default_permissions(new.user_id or new.made_by or "", ctx)
        if new.user_id is None:
            permissions = {on: do for on, do in permissions.items() if on not in NEVER_OF_A_TEAM}
    rate_limit = new.rate_limit or default_rate_limit(of_public=new.daily is not None)
    check_new(new, prefix=prefix, permissions=permissions, rate_limit=rate_limit)
    expires_in_s = new.expires_in_s or options.default_key_expires_in_seconds or None
    key, raw = _make(
        prefix,
        holder_id=new.user_id or new.team_id or "",
        team_id=new.team_id,
        permissions=permissions,
        rate_limit=rate_limit,
        expires_at=None if expires_in_s is None else now + timedelta(seconds=expires_in_s),
        now=now,
    )
    return replace(
        key,
        name=new.name,
        metadata=new.metadata,
        remaining=new.remaining,
        refill=new.refill,
        refill_due_at=None if new.refill is None else new.refill.due_after(now),
        made_by=new.made_by,
        known_to=() if new.made_by is None else (new.made_by,),
        role_cap=role_cap_of(permissions) if new.user_id is None else None,
        daily=new.daily,
    ), raw


def make_token(
    prefix: str,
    *,
    team_id: str,
    rule_id: str,
    rule_version: int,
    scope: str,
    run: Mapping[str, str],
    actions: tuple[str, ...],
    expires_at: datetime,
    now: datetime,
) -> tuple[ApiKey, str]:
    """Make the key of a CI job without storing it. Returns the record and the secret key.

    No option for the keys of users applies to it, except for the generator and for what is stored of a key.
    """
    key, raw = _make(
        prefix,
        holder_id=rule_id,
        team_id=team_id,
        permissions={"artifacts": actions},
        rate_limit=replace(default_rate_limit(), enabled=False),
        expires_at=expires_at,
        now=now,
    )
    return replace(key, scope=scope, rule_id=rule_id, rule_version=rule_version, run=run), raw


def _make(
    prefix: str | None,
    *,
    holder_id: str,
    team_id: str | None,
    permissions: Permissions,
    rate_limit: RateLimit,
    expires_at: datetime | None,
    now: datetime,
) -> tuple[ApiKey, str]:
    """A key that nobody has used. Returns the record and the secret key."""
    raw, key_hash = generate(prefix or "")
    key = ApiKey(
        id=random_id(),
        key_hash=key_hash,
        holder_id=holder_id,
        team_id=team_id,
        start=_start(raw, prefix or "") if settings().store_key_start else None,
        prefix=prefix,
        permissions=permissions,
        rate_limit=rate_limit,
        window_ends_at=now + timedelta(milliseconds=rate_limit.window_ms),
        expires_at=expires_at,
        created_at=now,
        updated_at=now,
    )
    return key, raw


def store_key(
    key: ApiKey,
    *,
    maker: "User | None" = None,
    actor: Actor | None = None,
    replaces: ApiKey | None = None,
    ending: "Sequence[Write]" = (),
    trust: FirstTrust = NO_TRUST,
    also: "Sequence[Write]" = (),
) -> ApiKey:
    """Store a key, and return it with its user's password version.

    Raises InvalidValue if its user or team does not exist: nothing would delete the key with them.

    `maker` is the user of the session that creates a key for itself. Raises NotSignedIn if all sessions of the user
    have ended since the session was checked, so that a password reset that deletes keys does not miss this one.

    `replaces` is the key that this one replaces, and `ending` the writes that end it, in the same transaction. Raises
    TryAgain if it has changed, or if one of `also`, other writes of the transaction, fails. `trust` is what the key
    does to its team. Raises KeyLimitReached.
    """
    generation = None if maker is None else maker.session_generation
    if replaces is None:
        entries = audit_entries(Action.KEY_CREATED, key, actor)
    else:
        entries = audit_entries(Action.KEY_ROTATED, replaces, actor, successor=key.id)
    writes = (*entries, *ending, *trust.writes, *also)
    store = partial(
        repository.add,
        generation=generation,
        limited=replaces is None or replaces.holder_id != key.holder_id,
        changes_team=bool(trust.writes),
    )
    for _ in attempts():
        stored = key
        if key.has_user:
            version = (
                maker.password_version if maker else repository.password_version_of(key.user_id)
            )
            if version is None:
                raise InvalidValue("user_id", "there is no such user")
            stored = replace(key, password_version=version)
        if store(stored, *writes):
            return stored
        if replaces is not None:
            current = repository.get(replaces.key_hash)
            if current is None or current.updated_at != replaces.updated_at:
                raise TryAgain
        if repository.get(key.key_hash) is not None:
            raise SettingsError(
                f"{environment_name('extensions')}: generate_key returned a key that exists already"
            )
        if key.owned_by_team:
            if not repository.team_exists(key.holder_id):
                raise InvalidValue("team", "does not exist")
            raise TryAgain
        if maker is not None:
            raise NotSignedIn
        # The user has changed the password or was deleted.
    raise TryAgain


def default_rate_limit(*, of_public: bool = False) -> RateLimit:
    """The rate limit of a key that sets none. It is off by default, so that hundreds of CI jobs can share a key.

    Public read keys have none.
    """
    options = settings()
    return RateLimit(
        enabled=options.key_rate_limit_enabled and not of_public,
        window_ms=options.key_rate_limit_window_ms,
        max_requests=options.key_rate_limit_max,
    )


def list_keys(holder_id: str) -> list[ApiKey]:
    """Every key of one user, or that one team owns, oldest first."""
    return repository.all_with_metadata(repository.list_by_holder(holder_id))


def list_keys_of_team(team_id: str) -> list[ApiKey]:
    """Every key that is bound to one team, its own and those of users, oldest first. For the operator."""
    return repository.all_with_metadata(repository.list_by_team(team_id))


def trusted_keys_of(user_id: str) -> list[ApiKey]:
    """The keys of one user that have `artifacts: trust`. Does not read their metadata."""
    return [key for key in repository.list_by_holder(user_id) if key.may_trust]


def page_of_keys(holder_id: str, *, limit: int, offset: int) -> KeyPage:
    """At most `limit` keys of one user, or that one team owns, oldest first, after the first `offset` ones."""
    page = repository.page_by_holder(holder_id, limit=limit, offset=offset)
    return page._replace(keys=tuple(repository.all_with_metadata(page.keys)))


def page_of_team_keys(team_id: str, *, limit: int, offset: int) -> KeyPage:
    """At most `limit` keys that are bound to a team, after the first `offset` ones. Does not read their metadata."""
    return repository.page_by_team(team_id, limit=limit, offset=offset)


def delete_team_key(team_id: str, key_id: str, *, actor: Actor | None = None) -> None:
    """Delete a key that is bound to the team. Raises KeyNotFound, also for a key of another team."""
    key = repository.find_by_id(key_id) if is_random_id(key_id) else None
    if key is None or key.team_id != team_id or not revoke_key(key, actor=actor):
        raise KeyNotFound


def find_key(key_id: str) -> ApiKey | None:
    key = repository.find_by_id(key_id)
    return None if key is None else repository.with_metadata(key)


def key_ids_from(beginning: str) -> Iterator[str]:
    """The ids that begin with this. For the operator: the cost grows with the number of all keys."""
    return repository.ids_from(beginning)


def revoke_key(key: ApiKey, *, actor: Actor | None = None) -> bool:
    """Delete a key; no verification succeeds afterwards. False if it is deleted already, as by its last use."""
    return repository.delete(key.key_hash, *audit_entries(Action.KEY_DELETED, key, actor))


def revoke_ci_token(key_hash: str | None) -> ApiKey | None:
    """Delete the key of a CI job, and return it. None, and nothing is deleted, for any other key.

    There is no audit entry, because each job ends its key, and the key would soon have expired.
    """
    key = None if key_hash is None else repository.get(key_hash)
    if key is None or key.rule_id is None or not repository.delete(key.key_hash):
        return None
    return key


def rotate_key(
    key_id: str, *, overlap_s: int, to_team: bool = False, now: datetime
) -> tuple[ApiKey, str] | None:
    """Replace a key. The old key works for `overlap_s` more seconds, but not longer than its own expiry.

    The new key has the same owner, team, name, prefix, permissions, scope, metadata, limits and remaining uses, and the
    full lifetime again. With an overlap, each of the two keys has the remaining uses; without one, they are exact.
    With `to_team`, the team of the key owns the new one (`ownership.rotate_to_team`). Returns None if no key has this
    id, also for the token of a CI job, which ends by itself. Raises InvalidValue, KeyLimitReached, TryAgain.
    """
    if overlap_s < 0:
        raise InvalidValue("overlap", "must be 0 or a positive number of seconds")
    old = repository.find_by_id(key_id)
    if old is None or old.rule_id is not None:
        return None
    if old.remaining == 0 and old.refill is None:
        raise InvalidValue("key", "has no uses left for the new key")
    if not old.enabled:
        raise InvalidValue("key", "is disabled; enable it before you rotate it")
    if overlap_s == 0:
        # Disabled first, so that the remaining uses no longer change. A crash then leaves no extra working key.
        last = repository.disable(old.key_hash, now=now)
        if last is None or (last.remaining == 0 and last.refill is None):
            return None
        return _create_successor(last, repository.deleting(last), to_team, now)
    return _create_successor(old, [end_after(old, overlap_s, now=now)], to_team, now)


def end_after(key: ApiKey, overlap_s: int, *, now: datetime) -> "Write":
    """The write that lets a key work for `overlap_s` more seconds, but not longer than its own expiry."""
    end = now + timedelta(seconds=overlap_s)
    expires_at = end if key.expires_at is None else min(key.expires_at, end)
    return repository.ending(key, expires_at, now=max(now, key.updated_at + MILLISECOND))


def _create_successor(
    old: ApiKey, ending: "Sequence[Write]", to_team: bool, now: datetime
) -> tuple[ApiKey, str]:
    new = _successor(repository.with_metadata(old), now)
    key, raw = prepare_key(replace(new, user_id=None) if to_team else new, now=now)
    key = replace(key, scope=scope_for_team(old) if to_team else old.own_scope)
    return store_key(key, replaces=old, ending=ending), raw


def scope_for_team(old: ApiKey) -> str | None:
    """The scope of the team's own key in place of another: the same, unless it is that of a user."""
    return None if old.scope == scope_of_user(old.holder_id) else old.own_scope


def _successor(old: ApiKey, now: datetime) -> NewKey:
    lifetime = None
    ends_at = old.expires_at if old.orphaned_at is None else old.ordinary_end
    if ends_at is not None and not settings().disable_custom_key_expiry:
        lifetime = ends_at - old.created_at
    return NewKey(
        user_id=old.user_id if old.has_user else None,
        team_id=old.team_id,
        name=old.name,
        prefix=old.prefix,
        expires_in_s=None if lifetime is None else max(1, round(lifetime.total_seconds())),
        permissions=old.permissions,
        metadata=old.metadata,
        remaining=old.refilled(now).remaining,
        refill=old.refill,
        rate_limit=old.rate_limit,
        daily=old.daily and replace(old.daily, day=None, requests=0, size_bytes=0, paused_on=None),
    )


def delete_keys_of(holder_id: str) -> int:
    """Delete every key of a user, or that a team owns, and return how many the index had.

    Many keys take as many steps as one.
    """
    deleted = 0
    for _ in attempts():
        keys = repository.keys_of(holder_id)
        deleted = max(deleted, len(keys.indexed))
        if repository.delete_all(keys):
            return deleted
        # A key was created or adopted after the keys were read.
    raise TryAgain


def delete_keys_created_until(user_id: str, moment: datetime) -> None:
    """Delete the keys that a user had at that moment."""
    for key in repository.list_by_holder(user_id):
        if key.created_at <= moment:
            repository.delete(key.key_hash)


def delete_keys_of_member(team_id: str, user_id: str) -> None:
    """Delete the keys that a former member bound to the team.

    They have ended anyway, even if the user joins again (`validity`). So a failure is not raised: the member has been
    removed.
    """
    with suppress(TryAgain):
        keys = repository.keys_of(user_id)
        repository.delete_bound_to(team_id, keys)


def delete_keys_of_team(team_id: str) -> int:
    """Delete every key bound to a deleted team; returns how many. Can miss a key created milliseconds ago."""
    return sum(repository.delete(key_hash) for key_hash in repository.bound_to(team_id))


def delete_expired_keys_if_due(*, now: datetime) -> None:
    """Delete some expired keys, at most once in ten seconds across all instances.

    Runs as part of a request. A failure does not fail that request.
    """
    with suppress(TryAgain), short_deadline():
        if repository.claim_clean_up(now=now, every_s=CLEAN_UP_SECONDS):
            for key_hash in islice(repository.expired(now=now), _DELETED_BY_A_REQUEST):
                repository.delete_if_unusable(key_hash, now=now)


def paused_notes() -> Iterator[tuple[str, str, str, str]]:
    """The id of each public read key of whose pause no mail was sent, its team, the day and the origin of links."""
    return repository.paused_notes()


def delete_paused_note(key_id: str, day: str) -> None:
    """Call it when the mail is sent."""
    repository.delete_paused_note(key_id, day)


def delete_expired_keys(*, now: datetime) -> int:
    """Delete every key whose expiry has passed; returns how many. They were refused from that moment on anyway.

    Several at a time, because the jobs of a team can leave thousands in an hour.
    """
    expired = repository.expired(now=now)
    delete = partial(repository.delete_if_unusable, now=now)
    deleted = 0
    while batch := list(islice(expired, _DELETED_TOGETHER)):
        deleted += sum(map_concurrently(delete, batch))
    return deleted


def _start(raw: str, prefix: str) -> str:
    """The first characters of a key, to show in lists. The prefix is added, because many keys share it."""
    shown = settings().key_start_length
    return raw[: shown + len(prefix) if raw.startswith(prefix) else shown]


def default_permissions(user_id: str, ctx: RequestContext | None) -> Permissions:
    """The permissions of this user's keys that set none. `ctx` is the request, None outside of one."""
    own = hook("default_key_permissions")
    defaults = (
        json.loads(settings().default_key_permissions)
        if own is None
        else own(user_id=user_id, ctx=ctx)
    )
    return {str(resource): tuple(map(str, actions)) for resource, actions in defaults.items()}


def audit_entries(
    action: Action, key: ApiKey, actor: Actor | None, **details: str
) -> "list[Write]":
    """One for the user of the key, if it has one, and one for its team, so that each of them finds it."""
    of_user = [key.user_id] if key.has_user else []
    owners = of_user if key.team_id is None else [*of_user, key.team_id]
    return [
        audited(owner, action, key.id, actor, name=key.name or key.start, details=details)
        for owner in owners
    ]
