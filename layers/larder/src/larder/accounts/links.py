"""The links that mail carries: they verify an address, change one, or reset a password (spec 3, states).

A verification link is a signed token and needs no record: following it again does no harm. A reset link is a record,
spent in the same transaction that changes the password, so that it works once, however many requests bring it.
"""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from larder.accounts import repository
from larder.accounts.addresses import canonical
from larder.accounts.models import Account, User
from larder.accounts.passwords import check_length, hash_password
from larder.accounts.service import change_account, read_account, with_password
from larder.concurrency import wait_before_retry
from larder.errors import InvalidLinkToken, TryAgain, Unauthenticated
from larder.hashing import hash_key, random_id
from larder.settings import settings
from larder.signing import decode_token, encode_token

RESET_TOKEN_LENGTH = 24

_RESET_TOKEN = re.compile(rf"[A-Za-z0-9]{{{RESET_TOKEN_LENGTH}}}")
_ATTEMPTS = 8


class UnknownUser(Exception):
    """The link is genuine, but its user is gone or has another address by now."""


def issue_verification_token(user: User, *, new_email: str | None = None, now: datetime) -> str:
    """A token by which the user verifies their address or, when there is one, takes the new address on."""
    claims = {"email": user.email, "userId": user.id}
    if new_email is not None:
        claims["updateTo"] = new_email
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def follow_verification_token(token: str, *, now: datetime) -> User:
    """Mark the address as verified, or change it; again is as good as once.

    Raises InvalidToken, ExpiredToken (larder.signing), UnknownUser, EmailTaken.
    """
    claims = decode_token(token, now=now)
    new_email: str | None = claims.get("updateTo")

    def verified(account: Account) -> Account:
        user = account.user
        followed_before = new_email is not None and canonical(user.email) == canonical(new_email)
        if user.email != claims["email"] and not followed_before:
            raise UnknownUser
        changed = replace(user, email=new_email or user.email, email_verified=True)
        return (
            account if changed == user else replace(account, user=replace(changed, updated_at=now))
        )

    try:
        return change_account(claims["userId"], verified).user
    except Unauthenticated:
        raise UnknownUser from None


def issue_reset_token(user: User, *, now: datetime) -> str:
    """Store a new reset token, of which only the hash is kept. Earlier ones stay valid beside it."""
    token = random_id(RESET_TOKEN_LENGTH)
    expires_at = now + timedelta(seconds=settings().reset_token_expires_in_seconds)
    repository.add_reset_token(hash_key(token), user, expires_at=expires_at)
    return token


def check_reset_token(token: str, *, now: datetime) -> str:
    """The user whose password a reset token may change; it is not spent. Raises InvalidLinkToken."""
    user_id, _ = _find_reset_token(token, now)
    return user_id


def reset_password(token: str, new_password: str, *, now: datetime) -> User:
    """Spend the token and set the password, in one transaction; other reset links of the user end with it.

    By default the user's sessions end too. Raises PasswordTooShort, PasswordTooLong, InvalidLinkToken.
    """
    check_length(new_password)
    user_id, password_version = _find_reset_token(token, now)
    password_hash = hash_password(new_password)
    for attempt in range(_ATTEMPTS):
        try:
            account = read_account(user_id)
        except Unauthenticated:
            raise InvalidLinkToken from None
        if account.user.password_version != password_version:
            raise InvalidLinkToken
        revokes = settings().revoke_sessions_on_password_reset
        changed = with_password(account, password_hash, ends_sessions=revokes, now=now)
        stored = repository.change(account, changed, spending=hash_key(token))
        if stored is not None:
            return stored.user
        # The token is spent, or something else about the user has changed.
        _find_reset_token(token, now)
        wait_before_retry(attempt)
    raise TryAgain


def _find_reset_token(token: str, now: datetime) -> tuple[str, int]:
    found = repository.find_reset_token(hash_key(token)) if _RESET_TOKEN.fullmatch(token) else None
    if found is None or found[2] <= now:
        raise InvalidLinkToken
    user_id, password_version, _ = found
    return user_id, password_version
