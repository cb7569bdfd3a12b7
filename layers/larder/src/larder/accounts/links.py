"""The links in mail: they verify an address, change one, or reset a password.

A verification link is a signed token and needs no record: following it again does no harm. One that changes the
address ends with the password and with the sessions of who asked for it: whoever took an account over for a while could
wait with the link, and have it back. A reset link is a record, spent in the same transaction that changes the password,
so that it works once, however many requests bring it.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from larder.accounts import repository
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import EmailKind, Visit, send_later
from larder.accounts.models import Account, EmailTaken, User
from larder.accounts.passwords import check_length, hash_password
from larder.accounts.service import read_account, replace_account, with_password
from larder.concurrency import attempts
from larder.errors import (
    ChangeEmailDisabled,
    EmailAlreadyVerified,
    EmailMismatch,
    EmailUnchanged,
    InvalidLinkToken,
    InvalidVerificationToken,
    NotSignedIn,
    ResetPasswordDisabled,
    TryAgain,
    VerificationTokenExpired,
    VerifiedUserNotFound,
)
from larder.hashing import hash_key, random_id
from larder.settings import settings
from larder.signing import ExpiredToken, InvalidToken, decode_token, encode_token

RESET_TOKEN_LENGTH = 24

_RESET_TOKEN = re.compile(rf"[A-Za-z0-9]{{{RESET_TOKEN_LENGTH}}}")


def request_verification(email: str, callback_url: str, visit: Visit, *, by: User | None) -> None:
    """Have a verification link sent to an address, if it needs one. Whether it does is not told to strangers.

    Raises InvalidEmail, and EmailMismatch or EmailAlreadyVerified to `by`, who is signed in.
    """
    address = parse_address(email)
    if by is not None and canonical(by.email) != canonical(address):
        raise EmailMismatch
    if by is not None and by.email_verified:
        raise EmailAlreadyVerified
    send_later(EmailKind.VERIFY_EMAIL, address, callback_url, visit)


def request_password_reset(email: str, redirect_to: str, visit: Visit) -> None:
    """Have a reset link sent to an address, if somebody has it, which is not told.

    Raises InvalidEmail, ResetPasswordDisabled.
    """
    if not settings().enable_email_and_password:
        raise ResetPasswordDisabled
    send_later(EmailKind.RESET_PASSWORD, parse_address(email), redirect_to, visit)


def request_new_email(user: User, new_email: str, callback_url: str, visit: Visit) -> None:
    """Have a link sent to the new address, which is the user's when it is followed. Whether it is taken is not told.

    Raises ChangeEmailDisabled, InvalidEmail, EmailUnchanged.
    """
    if not settings().enable_change_email:
        raise ChangeEmailDisabled
    address = parse_address(new_email, "newEmail")
    if address == user.email:
        raise EmailUnchanged
    send_later(
        EmailKind.CHANGE_EMAIL,
        address,
        callback_url,
        visit,
        user_id=user.id,
        credentials=credentials_of(user),
    )


def credentials_of(user: User) -> str:
    """Differs once the user has another password, or once their sessions were ended together."""
    return f"{user.password_version}.{user.session_generation}"


def issue_verification_token(user: User, *, new_email: str | None = None, now: datetime) -> str:
    """A token by which the user verifies their address or, when there is one, takes the new address on."""
    claims = {"email": user.email, "userId": user.id}
    if new_email is not None:
        claims |= {"updateTo": new_email, "credentials": credentials_of(user)}
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def follow_verification_token(token: str, visit: Visit, *, now: datetime) -> User:
    """Mark the address as verified, or change it; again is as good as once.

    The address that a user leaves is told of it by mail, by the request that changes it. Raises
    InvalidVerificationToken, VerificationTokenExpired, VerifiedUserNotFound.
    """
    try:
        claims = decode_token(token, now=now)
    except ExpiredToken:
        raise VerificationTokenExpired from None
    except InvalidToken:
        raise InvalidVerificationToken from None
    if "email" not in claims or "userId" not in claims:
        raise InvalidVerificationToken  # signed for something else
    new_email: str | None = claims.get("updateTo")

    def verified(account: Account) -> Account:
        user = account.user
        now_has = credentials_of(user)
        # Links of version 0.1.0 do not tell: they go on for the hour that they live.
        if new_email is not None and claims.get("credentials", now_has) != now_has:
            raise InvalidVerificationToken
        followed_before = new_email is not None and canonical(user.email) == canonical(new_email)
        if user.email != claims["email"] and not followed_before:
            raise VerifiedUserNotFound
        changed = replace(user, email=new_email or user.email, email_verified=True)
        return (
            account if changed == user else replace(account, user=replace(changed, updated_at=now))
        )

    try:
        was, becomes = replace_account(claims["userId"], verified)
    except NotSignedIn:
        raise VerifiedUserNotFound from None
    except EmailTaken:
        # Somebody else has taken the address since the link was sent.
        raise InvalidVerificationToken from None
    # The address is changed: that the news cannot be sent must not look as if it were not.
    with suppress(TryAgain):
        tell_of_new_email(was.user, becomes.user, visit, now=now)
    return becomes.user


def tell_of_new_email(
    was: User, becomes: User, visit: Visit, *, by_operator: bool = False, now: datetime
) -> bool:
    """Have the address that a user has left told of it. False for another spelling of it, which is no news.

    Raises TryAgain.
    """
    if canonical(was.email) == canonical(becomes.email):
        return False
    send_later(
        EmailKind.EMAIL_CHANGED,
        was.email,
        "",
        visit,
        user_id=becomes.id,
        new_email=becomes.email,
        changed_at=now,
        by_operator=by_operator,
    )
    return True


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


def reset_password(
    token: str,
    new_password: str,
    visit: Visit,
    *,
    end_keys: Callable[[str], object],
    now: datetime,
) -> User:
    """Spend the token and set the password, in one transaction; other reset links of the user end with it.

    The mail proves the address, which counts as verified from then on. By default the user's sessions end too. Where
    nobody had proved it, whoever signed up with it may have been a stranger: the sessions always end, and `end_keys` is
    called with the user's id. It is called before the password changes, so that a reset that is cut off leaves none of
    the keys, and once more afterwards, for those that were made at that moment.

    The user is told by mail, or the integrator's function is called. Raises PasswordTooShort, PasswordTooLong,
    InvalidLinkToken.
    """
    check_length(new_password, "newPassword")
    user_id, password_version = _find_reset_token(token, now)
    password_hash = hash_password(new_password)
    keys_deleted = False
    for _ in attempts():
        try:
            account = read_account(user_id)
        except NotSignedIn:
            raise InvalidLinkToken from None
        if account.user.password_version != password_version:
            raise InvalidLinkToken
        # Without a password nobody has signed in, or the operator has taken the account from whoever did: of what keys
        # there are, the operator knows.
        unproven = not account.user.email_verified and account.credential is not None
        if unproven:
            end_keys(user_id)
            keys_deleted = True
        revokes = unproven or settings().revoke_sessions_on_password_reset
        changed = with_password(account, password_hash, ends_sessions=revokes, now=now)
        changed = replace(changed, user=replace(changed.user, email_verified=True))
        stored = repository.change(account, changed, spending=hash_key(token))
        if stored is not None:
            if unproven:
                with suppress(TryAgain):
                    end_keys(user_id)
            # The password is changed: that the news cannot be sent must not look as if it were not.
            with suppress(TryAgain):
                send_later(
                    EmailKind.PASSWORD_RESET,
                    stored.user.email,
                    "",
                    visit,
                    sessions_ended=revokes,
                    keys_deleted=keys_deleted,
                )
            return stored.user
        # The token is spent, or something else about the user has changed.
        _find_reset_token(token, now)
    raise TryAgain


def _find_reset_token(token: str, now: datetime) -> tuple[str, int]:
    found = repository.find_reset_token(hash_key(token)) if _RESET_TOKEN.fullmatch(token) else None
    if found is None or found[2] <= now:
        raise InvalidLinkToken
    user_id, password_version, _ = found
    return user_id, password_version
