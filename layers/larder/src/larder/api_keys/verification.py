"""Verify the keys of requests.

Every request with a key imports this module. `keys` has what else is done with keys.

The last six characters of a key are a checksum, by which made-up keys are refused without a look-up: the CRC-32 of the
rest, in base 62, as in GitHub's tokens. The first of them is always a digit from 0 to 4, because 62 to the power of 5
is more than a fifth of 2 to the power of 32. What is random in a key are letters only. So a key of version 0.1.0, which
has no checksum, never looks like one with a wrong checksum.
"""

import re
import string
from collections.abc import Collection
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from larder.api_keys import repository
from larder.api_keys.credential_cache import KnownCredential, known_credentials
from larder.api_keys.models import (
    FETCH,
    VERCELS_OWN,
    ApiKey,
    Permissions,
    Refusal,
    Verification,
)
from larder.api_keys.validity import ended_with_membership, ended_with_team, ended_with_user
from larder.clock import to_ms
from larder.concurrency import attempts, in_parallel, submit
from larder.deadline import at_end_of_request, one_try
from larder.errors import (
    MissingPermission,
    PublicReadOnly,
    RateLimited,
    ReadOnly,
    TryAgain,
    Unauthenticated,
)
from larder.extensions import RequestContext, hook
from larder.hashing import hash_key, random_letters
from larder.settings import settings
from larder.teams.state import membership_of, reading_membership

if TYPE_CHECKING:
    from larder.tables import Read


CHECKSUM_LENGTH = 6

_DIGITS = string.digits + string.ascii_letters
_END_OF_KEY = re.compile(r"[A-Za-z]+[0-4][A-Za-z0-9]{5}")


class Checksum(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    """The key is from version 0.1.0 or from the deployment's own function, or made up."""


def with_checksum(text: str) -> str:
    return text + _checksum(text)


def checksum_of(raw: str) -> Checksum:
    """What the checksum of a presented key says about it."""
    if raw[-CHECKSUM_LENGTH:] == _checksum(raw[:-CHECKSUM_LENGTH]):
        return Checksum.RIGHT
    options = settings()
    # Keys from the deployment's own function can have any form.
    is_ours = hook("generate_key") is None and _END_OF_KEY.fullmatch(
        raw[-options.default_key_length :]
    )
    return Checksum.WRONG if is_ours else Checksum.MISSING


def _checksum(text: str) -> str:
    rest, digits = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


NOTED_AGAIN_AFTER = timedelta(minutes=1)
"""Record the last use of a key that the cache only reads again only after this time."""

_NOTED_IN_ACCOUNTS_AFTER = timedelta(seconds=1)
"""The same for `/api/auth`, whose clients read when a key was last used."""

_NOTE_WAIT_S = 0.25
"""How long a finished reply waits for such a record. It takes some milliseconds, unless the table does not answer."""


_INVALID = Verification(key=None, refusal=Refusal.INVALID)

TOKEN = re.compile(r"[\x21-\x7e]{64,256}")


def generate(prefix: str) -> tuple[str, str]:
    """A new key and its stored form."""
    length, generator = settings().default_key_length, hook("generate_key")
    if generator is None:
        raw = with_checksum(prefix + random_letters(length - CHECKSUM_LENGTH))
        return raw, stored_form(raw)
    raw = generator(length=length, prefix=prefix)
    if not isinstance(raw, str) or not TOKEN.fullmatch(raw) or raw.startswith(VERCELS_OWN):
        raise generator.refused(
            "must return 64 to 256 printable ASCII characters without spaces "
            f"that do not begin with {VERCELS_OWN}"
        )
    return raw, stored_form(raw)


def stored_form(raw: str) -> str:
    """What the table stores for a key: its hash, or the key itself if hashing is disabled."""
    return raw if settings().disable_key_hashing else hash_key(raw)


def presented_form(raw: str, ctx: RequestContext) -> str | None:
    """The stored form of a presented key.

    None if its format or its checksum is wrong, or the deployment's validator refuses it. The format is checked because
    DynamoDB refuses an unhashed text that is empty or too long as a key.
    """
    if not TOKEN.fullmatch(raw):
        return None
    if checksum_of(raw) is Checksum.WRONG:
        return None
    validator = hook("validate_key")
    if validator is not None and not validator(key=raw, ctx=ctx):
        return None
    return stored_form(raw)


def verify_presented(
    key_hash: str | None,
    required: Permissions,
    *,
    of_team: bool | None = None,
    now: datetime,
    with_metadata: bool = False,
) -> Verification:
    """Verify the key of a request to `/api/auth`, given in its stored form. None is invalid, without a look-up.

    A key that has ended (`validity`) is invalid. With `of_team`, only a team's own key is valid, or, if it is False,
    only one of a user. `with_metadata` also reads the metadata of a valid key.

    Only a key with an allowance or a rate limit takes a write. What an instance remembers of a key selects the items to
    read, so that all calls are made at once. A key that it does not know is looked up first, so that a made-up one
    costs no write (docs/decisions/api-keys.md).
    """
    if key_hash is None or (key_hash not in known_credentials and find_presented(key_hash) is None):
        return _INVALID
    known = known_credentials[key_hash]
    if of_team not in (None, known.is_of_team):
        return _INVALID
    where = (known.bound_to or known.holder_id, known.holder_id)
    count = partial(verify, key_hash, required, now=now, with_metadata=with_metadata)
    if known.is_counted:
        with in_parallel(membership_of, *where) as reading:
            verification = count()
        membership, stored = reading.result(), verification.key
    else:
        note_use_if_due(key_hash, required, now=now, every=_NOTED_IN_ACCOUNTS_AFTER)
        metadata = with_metadata and known.has_metadata
        stored, membership = repository.get_with(
            key_hash, reading_membership(*where), metadata=metadata
        )
        if stored is None:
            verification = _INVALID
        elif stored.is_counted:
            verification = count()
            stored = verification.key
        else:
            key = repository.with_metadata(stored) if with_metadata else stored
            refusal = _refusal(key, required, now)
            used = key if refusal else replace(key, last_request=now)
            verification = Verification(key=used, refusal=refusal)
    if stored is None:
        known_credentials.pop(key_hash, None)
        return _INVALID
    _remembered(stored)
    if not verification.valid:
        return verification
    if stored.rule_id is not None:
        # The token of a CI job stands for no user. It works where its rule is read with the team: in the cache.
        return _INVALID
    if of_team not in (None, stored.owned_by_team):
        # Its team has just adopted it.
        return _INVALID
    if not known.is_of(stored.holder_id, stored.team_id):
        membership = membership_of(stored.team_id or stored.holder_id, stored.holder_id)
    if (
        ended_with_user(stored, membership.user, now=now)
        or ended_with_team(stored, membership)
        or ended_with_membership(stored, membership)
    ):
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
    """Verify the key of a user that a request presents. With `checked_later`, the caller checks whether it has ended.

    Raises Unauthenticated for a key that is unknown, disabled, expired or used up, or that has no user, without saying
    which; ReadOnly or MissingPermission; RateLimited.
    """
    if not checked_later:
        return _accepted(verify_presented(key_hash, required, of_team=False, now=now), required)
    known = known_credentials.get(key_hash)
    if known is not None and known.is_counted:
        if known.is_of_team:
            raise Unauthenticated
        key = verify_counted_key(key_hash, required, now=now)
    else:
        found = find_presented(key_hash)
        if found is not None and found.owned_by_team:
            raise Unauthenticated
        key = verify_read_key(key_hash, found, required, now=now)
    if not key.has_user:
        raise Unauthenticated
    return key


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
    known = known_credentials.get(key_hash)
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
    known = known_credentials.get(key_hash)
    if known is None or known.is_counted:
        return
    if known.noted_at is not None and now - known.noted_at < every:
        return
    known_credentials[key_hash] = known._replace(noted_at=now)
    note = submit(_try_to_note_use, key_hash, required, now, every)
    at_end_of_request(partial(wait, [note], timeout=_NOTE_WAIT_S))


def _remembered(key: ApiKey) -> ApiKey:
    known = known_credentials.get(key.key_hash)
    moments = [key.last_request, None if known is None else known.noted_at]
    is_same = known is not None and known.is_of(key.holder_id, key.team_id)
    known_credentials[key.key_hash] = KnownCredential(
        holder_id=key.holder_id,
        bound_to=key.team_id,
        is_counted=key.is_counted,
        has_metadata=key.metadata is not None,
        noted_at=max((moment for moment in moments if moment is not None), default=None),
        owners=known.owners if known is not None and is_same else {},
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
            reads_only = required == {"artifacts": ("write",)} and _allows(held, FETCH)
            if reads_only:
                raise ReadOnly if verification.key.daily is None else PublicReadOnly
            raise MissingPermission(_missing(required))
    raise Unauthenticated


def _allows(held: Collection[str], action: str) -> bool:
    """Whether the actions of `artifacts` allow this one. A key that may read may fetch."""
    return action in held or (action == FETCH and "read" in held)


def _missing(required: Permissions) -> str:
    needs = ", ".join(
        f"{on}: {'read' if action == FETCH else action}"
        for on, actions in required.items()
        for action in actions
    )
    return f"This token does not have the permission that the request needs: {needs}."


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
        held = key.permissions.get(resource, ())
        allows = partial(_allows, held) if resource == "artifacts" else held.__contains__
        if not all(map(allows, actions)):
            return Refusal.LACKS_PERMISSION
    if key.remaining is not None and key.remaining <= 0 and not key.refill_is_due(now):
        return Refusal.USED_UP
    limit = key.rate_limit
    if limit.enabled and key.request_count >= limit.max_requests and now < key.window_ends_at:
        return Refusal.RATE_LIMITED
    return None
