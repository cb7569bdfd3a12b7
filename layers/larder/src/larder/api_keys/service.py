"""Create, verify, rotate and delete API keys."""

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from larder.actor import Actor
from larder.api_keys import repository
from larder.api_keys.checksums import CHECKSUM_LENGTH, Checksum, check, with_checksum
from larder.api_keys.ended import ended_with_membership, ended_with_user
from larder.api_keys.models import (
    ApiKey,
    KeyPage,
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
from larder.concurrency import attempts, map_concurrently, running, submit
from larder.deadline import at_end_of_request, one_try, short_deadline
from larder.errors import (
    InvalidValue,
    KeyNotFound,
    MissingPermission,
    NotSignedIn,
    RateLimited,
    ReadOnly,
    TryAgain,
    Unauthenticated,
)
from larder.extensions import RequestContext, load
from larder.hashing import hash_key, is_random_id, random_id, random_letters
from larder.instance import Remembered
from larder.settings import SettingsError, settings
from larder.teams.state import reading_standing, standing_of

if TYPE_CHECKING:
    # Builds use keys, and start faster without the account modules.
    from larder.accounts.models import User
    from larder.tables import Read, Write

CLEAN_UP_SECONDS = 10
"""The least time between two automatic deletions of expired keys (docs/clients/better-auth.md#allowance-and-refill)."""

_DELETED_BY_A_REQUEST = 20
"""The most expired keys that one request deletes. The hourly sweep deletes all."""

_DELETED_TOGETHER = 100
"""Expired keys between two reads of the index."""

NOTED_AGAIN_AFTER = timedelta(minutes=1)
"""Record the last use of a key that the cache only reads again only after this time."""

_NOTED_IN_ACCOUNTS_AFTER = timedelta(seconds=1)
"""The same for `/api/auth`, whose clients read when a key was last used."""

_NOTE_WAIT_S = 0.25
"""How long a finished reply waits for such a record. It takes some milliseconds, unless the table does not answer."""


class _Known(NamedTuple):
    """What an instance remembers of a key that it has found. The key may have changed since, or be deleted."""

    user_id: str
    team_id: str | None
    is_counted: bool
    has_metadata: bool
    noted_at: datetime | None
    """When a use was last recorded, or this instance last tried. A failed try counts, because a busy key has many."""


_known: Remembered[str, _Known] = Remembered(4000)
"""By hash. It only decides which items are read, and which call comes first."""

_INVALID = Verification(key=None, refusal=Refusal.INVALID)

_TOKEN = re.compile(r"[\x21-\x7e]{64,256}")


def create_key(new: NewKey, *, also: "Sequence[Write]" = (), now: datetime) -> tuple[ApiKey, str]:
    """Create a key outside of a request. Returns the record and the secret key, which cannot be read again.

    For properties that are None, the deployment's options apply. `also` is as in `store_key`. Raises InvalidValue,
    KeyLimitReached.
    """
    key, raw = prepare_key(new, now=now)
    return store_key(key, also=also), raw


def prepare_key(
    new: NewKey, *, now: datetime, ctx: RequestContext | None = None
) -> tuple[ApiKey, str]:
    """Make a key without storing it. Returns the record and the secret key. Raises InvalidValue."""
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
    raw = _generate(prefix)
    limit = replace(default_rate_limit(), enabled=False)
    key = ApiKey(
        id=random_id(),
        key_hash=stored_form(raw),
        user_id=rule_id,
        team_id=team_id,
        name=None,
        start=_start(raw, prefix) if settings().store_key_start else None,
        prefix=prefix,
        enabled=True,
        permissions={"artifacts": actions},
        metadata=None,
        remaining=None,
        refill=None,
        refill_due_at=None,
        last_refill_at=None,
        rate_limit=limit,
        request_count=0,
        window_ends_at=now + timedelta(milliseconds=limit.window_ms),
        expires_at=expires_at,
        created_at=now,
        updated_at=now,
        last_request=None,
        scope=scope,
        rule_id=rule_id,
        rule_version=rule_version,
        run=run,
    )
    return key, raw


def store_key(
    key: ApiKey,
    *,
    maker: "User | None" = None,
    actor: Actor | None = None,
    limited: bool = True,
    replaces: ApiKey | None = None,
    also: "Sequence[Write]" = (),
) -> ApiKey:
    """Store a key, and return it with its user's password version.

    Raises InvalidValue if its user does not exist: nothing would delete the key with its user.

    `maker` is the user of the session that creates a key for itself. Raises NotSignedIn if all sessions of the user
    have ended since the session was checked, so that a password reset that deletes keys does not miss this one.

    `replaces` is the key that this one replaces. `also` are other writes of the transaction. Raises KeyLimitReached
    unless `limited` is False.
    """
    from larder.api_keys import audited

    generation = None if maker is None else maker.session_generation
    entries = audited.created(key, actor, replaces=replaces)
    for _ in attempts():
        version = maker.password_version if maker else repository.password_version_of(key.user_id)
        if version is None:
            raise InvalidValue("user_id", "there is no such user")
        stored = replace(key, password_version=version)
        if repository.add(stored, *entries, *also, generation=generation, limited=limited):
            return stored
        if repository.get(key.key_hash) is not None:
            raise SettingsError(f"{settings().key_generator} returned a key that exists already")
        if maker is not None:
            raise NotSignedIn
        # The user has changed the password or was deleted.
    raise TryAgain


def default_rate_limit() -> RateLimit:
    """The rate limit of a key that sets none. It is off by default, so that hundreds of CI jobs can share a key."""
    options = settings()
    return RateLimit(
        enabled=options.key_rate_limit_enabled,
        window_ms=options.key_rate_limit_window_ms,
        max_requests=options.key_rate_limit_max,
    )


def stored_form(raw: str) -> str:
    """What the table stores for a key: its hash, or the key itself if hashing is disabled."""
    return raw if settings().disable_key_hashing else hash_key(raw)


def presented_form(raw: str, ctx: RequestContext) -> str | None:
    """The stored form of a presented key.

    None if its format or its checksum is wrong, or the deployment's validator refuses it. The format is checked because
    DynamoDB refuses an unhashed text that is empty or too long as a key.
    """
    if not _TOKEN.fullmatch(raw):
        return None
    if check(raw) is Checksum.WRONG:
        return None
    if settings().key_validator and not load("key_validator")(key=raw, ctx=ctx):
        return None
    return stored_form(raw)


def verify_presented(
    key_hash: str | None, required: Permissions, *, now: datetime, with_metadata: bool = False
) -> Verification:
    """Verify the key of a request to `/api/auth`, given in its stored form. None is invalid, without a look-up.

    A key that has ended (`ended.py`) is invalid. `with_metadata` also reads the metadata of a valid key.

    Only a key with an allowance or a rate limit takes a write. What an instance remembers of a key selects the items to
    read, so that all calls are made at once. A key that it does not know is looked up first, so that a made-up one
    costs no write (docs/decisions/0104-a-key-without-limits-is-only-read.md).
    """
    if key_hash is None or (key_hash not in _known and find_presented(key_hash) is None):
        return _INVALID
    known = _known[key_hash]
    where = (known.team_id or known.user_id, known.user_id)
    count = partial(verify, key_hash, required, now=now, with_metadata=with_metadata)
    if known.is_counted:
        with running(standing_of, *where) as reading:
            verification = count()
        standing = reading.result()
    else:
        note_use_if_due(key_hash, required, now=now, every=_NOTED_IN_ACCOUNTS_AFTER)
        metadata = with_metadata and known.has_metadata
        key, standing = repository.get_with(key_hash, reading_standing(*where), metadata=metadata)
        if key is None:
            verification = _INVALID
        elif key.is_counted:
            verification = count()
        else:
            _remembered(key)
            key = repository.with_metadata(key) if with_metadata else key
            refusal = _refusal(key, required, now)
            used = key if refusal else replace(key, last_request=now)
            verification = Verification(key=used, refusal=refusal)
    key = verification.key
    if key is None:
        _known.pop(key_hash, None)
        return verification
    if key.is_counted:
        _remembered(key)
    if not verification.valid:
        return verification
    if key.rule_id is not None:
        # The token of a CI job stands for no user. It works where its rule is read with the team: in the cache.
        return _INVALID
    if (key.user_id, key.team_id) != (known.user_id, known.team_id):
        standing = standing_of(key.team_id or key.user_id, key.user_id)
    if ended_with_user(key, standing.user) or ended_with_membership(key, standing):
        return _INVALID
    return verification


def verify(
    key_hash: str, required: Permissions, *, now: datetime, with_metadata: bool = False
) -> Verification:
    """Check a key against every rule and count one use. Does not raise for an invalid key.

    One conditional write checks the rules and counts the use, so a refused use does not reduce the allowance. A second
    write is needed if the window has ended or a refill is due, and once to delete a key with its last use.

    If the write fails, because DynamoDB does not reply or throttles the partition, the key is read instead. A key
    without an allowance then passes if its other rules allow it: the rate limit is skipped, and a metric counts that. A
    key with an allowance raises TryAgain, because its use cannot be counted. If the read fails too, it raises TryAgain.
    """
    passed, key, renewing = False, None, None
    try:
        # A second attempt is normal after the end of a window or for a refill, so the first ones do not pause.
        for _ in attempts(pausing_after=3):
            passed, key = repository.use(key_hash, required, now=now, renewing=renewing)
            if passed or key is None or _refusal(key, required, now) is not None:
                break
            # The window has ended, a refill is due, or another request has just written either.
            renewing = key if key.needs_renewal(now) else None
    except TryAgain:
        key = repository.get(key_hash)
        if key is not None and key.remaining is not None:
            raise
        passed = key is not None and _refusal(key, required, now) is None
        if passed and key is not None and key.rate_limit.enabled:
            # Imported here because every cache request loads this module.
            from larder.rate_limits.service import report_store_failure

            report_store_failure("key")
    if key is None:
        return Verification(key=None, refusal=Refusal.INVALID)
    if passed and with_metadata:
        key = repository.with_metadata(key)
    if key.remaining == 0 and key.refill is None:
        # This was the last use, or an interrupted request took it. If the deletion fails, the key is still refused,
        # and the next request with it deletes it.
        with suppress(TryAgain):
            repository.delete_if_unusable(key_hash, now=now)
    if not passed:
        return _refused(key, required, now)
    return Verification(key=key)


def verify_key(
    key_hash: str, required: Permissions, *, now: datetime, checked_later: bool = False
) -> ApiKey:
    """Verify the key that a request presents. With `checked_later`, the caller checks whether it has ended.

    Raises Unauthenticated for a key that is unknown, disabled, expired or used up, without saying which; ReadOnly or
    MissingPermission; RateLimited.
    """
    if not checked_later:
        return _accepted(verify_presented(key_hash, required, now=now), required)
    if known_as_counted(key_hash):
        return verify_counted_key(key_hash, required, now=now)
    return verify_read_key(key_hash, find_presented(key_hash), required, now=now)


def verify_counted_key(key_hash: str, required: Permissions, *, now: datetime) -> ApiKey:
    """Like `verify_key` with `checked_later`, by a write. Remembers whether uses of the key are still counted."""
    return _remembered(_accepted(verify(key_hash, required, now=now), required))


def verify_read_key(
    key_hash: str, key: ApiKey | None, required: Permissions, *, now: datetime
) -> ApiKey:
    """Like `verify_counted_key` for a key that the request has just read. None if it does not exist.

    A key without allowance and rate limit needs no write: DynamoDB accepts 1,000 writes a second to one item. The
    reading was consistent, so a change of the key applies to the next request all the same. Its use is recorded once a
    minute; the record is not waited for, and its failure is ignored.
    """
    if key is None:
        raise Unauthenticated
    _remembered(key)
    if key.is_counted:
        return verify_counted_key(key_hash, required, now=now)
    accepted = _accepted(Verification(key=key, refusal=_refusal(key, required, now)), required)
    note_use_if_due(key_hash, required, now=now)
    return accepted


def known_as_counted(key_hash: str) -> bool:
    """Whether this instance has seen the key, and its uses were counted then."""
    known = _known.get(key_hash)
    return known is not None and known.is_counted


def find_presented(key_hash: str) -> ApiKey | None:
    """The key of a request as it is stored now, whether it is valid or not."""
    key = repository.get(key_hash)
    return None if key is None else _remembered(key)


def reading_presented(key_hash: str) -> "Read[ApiKey | None]":
    """The same, to be read together with other items."""
    return repository.reading(key_hash)


def note_use_if_due(
    key_hash: str,
    required: Permissions,
    *,
    now: datetime,
    every: timedelta = NOTED_AGAIN_AFTER,
) -> None:
    """Record a use of a known key in the background, unless one was recorded in the time `every` before.

    The write has the conditions of a verification, so it can begin before the key is read.
    """
    known = _known.get(key_hash)
    if known is None or known.is_counted:
        return
    if known.noted_at is not None and now - known.noted_at < every:
        return
    _known[key_hash] = known._replace(noted_at=now)
    note = submit(_try_to_note_use, key_hash, required, now, every)
    at_end_of_request(partial(wait, [note], timeout=_NOTE_WAIT_S))


def _remembered(key: ApiKey) -> ApiKey:
    known = _known.get(key.key_hash)
    moments = [key.last_request, None if known is None else known.noted_at]
    noted_at = max((moment for moment in moments if moment is not None), default=None)
    _known[key.key_hash] = _Known(
        user_id=key.user_id,
        team_id=key.team_id,
        is_counted=key.is_counted,
        has_metadata=key.metadata is not None,
        noted_at=noted_at,
    )
    return key


def _try_to_note_use(key_hash: str, required: Permissions, now: datetime, every: timedelta) -> None:
    with suppress(TryAgain), one_try():
        repository.note_use(key_hash, required, now=now, every=every)


def _accepted(verification: Verification, required: Permissions) -> ApiKey:
    """The key, if it is valid. Raises the errors of `verify_key`."""
    if verification.valid and verification.key is not None:
        return verification.key
    match verification.refusal:
        case Refusal.RATE_LIMITED:
            raise RateLimited(verification.try_again_in_ms or 0)
        case Refusal.LACKS_PERMISSION if verification.key is not None:
            held = verification.key.permissions.get("artifacts", ())
            reads_only = required == {"artifacts": ("write",)} and "read" in held
            raise ReadOnly if reads_only else MissingPermission(_missing(required))
    raise Unauthenticated


def _missing(required: Permissions) -> str:
    needs = ", ".join(f"{on}: {action}" for on, actions in required.items() for action in actions)
    return f"This token does not have the permission that the request needs: {needs}."


def list_keys(user_id: str) -> list[ApiKey]:
    """Every key of one user, oldest first."""
    return repository.all_with_metadata(repository.list_by_user(user_id))


def page_of_keys(user_id: str, *, limit: int, offset: int) -> KeyPage:
    """At most `limit` keys of one user, oldest first, after the first `offset` ones."""
    page = repository.page_by_user(user_id, limit=limit, offset=offset)
    return replace(page, keys=tuple(repository.all_with_metadata(page.keys)))


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


def revoke_key(key: ApiKey, *, actor: Actor | None = None) -> bool:
    """Delete a key; no verification succeeds afterwards. False if it is deleted already, as by its last use."""
    from larder.api_keys import audited

    return repository.delete(key.key_hash, *audited.deleted(key, actor))


def revoke_ci_token(key_hash: str | None) -> ApiKey | None:
    """Delete the key of a CI job, and return it. None, and nothing is deleted, for any other key.

    There is no audit entry, because each job ends its key, and the key would soon have expired.
    """
    key = None if key_hash is None else repository.get(key_hash)
    if key is None or key.rule_id is None or not repository.delete(key.key_hash):
        return None
    return key


def rotate_key(key_id: str, *, overlap_s: int, now: datetime) -> tuple[ApiKey, str] | None:
    """Replace a key. The old key works for `overlap_s` more seconds, but not longer than its own expiry.

    The new key has the same user, team, name, prefix, permissions, scope, metadata, limits and remaining uses, and the
    full lifetime again. With an overlap, each of the two keys has the remaining uses; without one, they are exact.
    Returns None if no key has this id. Raises InvalidValue.
    """
    if overlap_s < 0:
        raise InvalidValue("overlap", "must be 0 or a positive number of seconds")
    old = repository.find_by_id(key_id)
    if old is None:
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
        created = _create_successor(last, now)
        repository.delete(old.key_hash)
        return created
    created = _create_successor(old, now)
    end = now + timedelta(seconds=overlap_s)
    if old.expires_at is None or old.expires_at > end:
        repository.set_expiry(old.key_hash, end, now=now)
    return created


def _create_successor(old: ApiKey, now: datetime) -> tuple[ApiKey, str]:
    """Not limited, so that the keys of a user who has the most can be rotated."""
    key, raw = prepare_key(_successor(repository.with_metadata(old), now), now=now)
    key = replace(key, scope=old.own_scope)
    return store_key(key, limited=False, replaces=old), raw


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
    """Delete every key of a user, and return how many the index had. Many keys take as many steps as one."""
    deleted = 0
    for _ in attempts():
        keys = repository.keys_of(user_id)
        deleted = max(deleted, len(keys.indexed))
        if repository.delete_all(keys):
            return deleted
        # A key was created after the keys were read.
    raise TryAgain


def delete_keys_created_until(user_id: str, moment: datetime) -> None:
    """Delete the keys that a user had at that moment."""
    for key in repository.list_by_user(user_id):
        if key.created_at <= moment:
            repository.delete(key.key_hash)


def delete_keys_of_member(team_id: str, user_id: str) -> None:
    """Delete the keys that a former member bound to the team.

    They have ended anyway, even if the user joins again (`ended.py`). So a failure is not raised: the member has been
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


def _refused(key: ApiKey, required: Permissions, now: datetime) -> Verification:
    refusal = _refusal(key, required, now)
    if refusal is None:
        # The key is valid by every rule, but concurrent uses won every attempt.
        raise TryAgain
    wait_ms = None
    if refusal is Refusal.RATE_LIMITED:
        wait_ms = max(1, to_ms(key.window_ends_at) - to_ms(now))
    return Verification(key=key, refusal=refusal, try_again_in_ms=wait_ms)


def _refusal(key: ApiKey, required: Permissions, now: datetime) -> Refusal | None:
    """The first rule that the key breaks, in the order of docs/clients/better-auth.md#order-of-verification."""
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
        return with_checksum(prefix + random_letters(length - CHECKSUM_LENGTH))
    raw = load("key_generator")(length=length, prefix=prefix)
    if not isinstance(raw, str) or not _TOKEN.fullmatch(raw) or raw.startswith(VERCELS_OWN):
        raise SettingsError(
            f"{generator} must return 64 to 256 printable ASCII characters without spaces "
            f"that do not begin with {VERCELS_OWN}"
        )
    return raw


def _start(raw: str, prefix: str) -> str:
    """The first characters of a key, to show in lists. The prefix is added, because many keys share it."""
    shown = settings().key_start_length
    return raw[: shown + len(prefix) if raw.startswith(prefix) else shown]


def default_permissions(user_id: str, ctx: RequestContext | None) -> Permissions:
    """The permissions of this user's keys that set none. `ctx` is the request, None outside of one."""
    option = settings().default_key_permissions
    if option.startswith("{"):
        defaults = json.loads(option)
    else:
        defaults = load("default_key_permissions")(user_id=user_id, ctx=ctx)
    return {str(resource): tuple(map(str, actions)) for resource, actions in defaults.items()}
