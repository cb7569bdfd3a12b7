"""Links in email: they verify an address, change it, or reset a password.

A verification link is a signed token. It is not stored, and using it again does no harm. A link that changes the
address becomes invalid when the user changes the password or ends all sessions. Otherwise an attacker who has had the
account could keep the link and take the account over again later.

A reset link is stored. The transaction that changes the password deletes it, so that it works once.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from larder.accounts import repository
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import (
    ChangeEmail,
    EmailWasChanged,
    MailContext,
    PasswordWasReset,
    ResetPassword,
    VerifyEmail,
    send_later,
)
from larder.accounts.models import Account, EmailTaken, User
from larder.accounts.passwords import check_length, hash_password
from larder.accounts.service import read_account, replace_account, with_password
from larder.clock import to_ms
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


def request_verification(
    email: str, callback_url: str, mail_context: MailContext, *, by: User | None
) -> None:
    """Send a verification link to an address, if it needs one. Strangers cannot see whether it does.

    `by` is the signed-in user, if there is one. Only for them it raises EmailMismatch and EmailAlreadyVerified; for
    everyone it raises InvalidEmail.
    """
    address = parse_address(email)
    if by is not None and canonical(by.email) != canonical(address):
        raise EmailMismatch
    if by is not None and by.email_verified:
        raise EmailAlreadyVerified
    send_later(VerifyEmail(email=address, callback_url=callback_url, mail_context=mail_context))


def request_password_reset(email: str, redirect_to: str, mail_context: MailContext) -> None:
    """Send a reset link to an address if a user has it. The caller cannot see whether one does.

    Raises InvalidEmail, ResetPasswordDisabled.
    """
    if not settings().enable_email_and_password:
        raise ResetPasswordDisabled
    address = parse_address(email)
    send_later(ResetPassword(email=address, callback_url=redirect_to, mail_context=mail_context))


def request_new_email(
    user: User, new_email: str, callback_url: str, mail_context: MailContext
) -> None:
    """Send a link to the new address. The user's address changes when the link is opened.

    The caller cannot see whether another user has the new address. Raises ChangeEmailDisabled, InvalidEmail,
    EmailUnchanged.
    """
    if not settings().enable_change_email:
        raise ChangeEmailDisabled
    address = parse_address(new_email, "newEmail")
    if address == user.email:
        raise EmailUnchanged
    send_later(
        ChangeEmail(
            email=address,
            callback_url=callback_url,
            user_id=user.id,
            credentials=credentials_of(user),
            mail_context=mail_context,
        )
    )


def credentials_of(user: User) -> str:
    """Changes when the user changes the password or ends all sessions."""
    return f"{user.password_version}.{user.session_generation}"


def issue_verification_token(user: User, *, new_email: str | None = None, now: datetime) -> str:
    """A token that verifies the user's address or, with `new_email`, changes the address to that."""
    claims = {"email": user.email, "userId": user.id}
    if new_email is not None:
        claims |= {"updateTo": new_email, "credentials": credentials_of(user)}
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def follow_verification_token(token: str, mail_context: MailContext, *, now: datetime) -> User:
    """Mark the address as verified, or change it. Using the same token again has no further effect.

    If the address changes, the previous one gets a notice by email. Raises InvalidVerificationToken,
    VerificationTokenExpired, VerifiedUserNotFound.
    """
    try:
        claims = decode_token(token, now=now)
    except ExpiredToken:
        raise VerificationTokenExpired from None
    except InvalidToken:
        raise InvalidVerificationToken from None
    if "email" not in claims or "userId" not in claims:
        raise InvalidVerificationToken  # signed for another purpose
    new_email: str | None = claims.get("updateTo")

    def verified(account: Account) -> Account:
        user = account.user
        current = credentials_of(user)
        # Links of version 0.1.0 do not have this claim. They stay valid for their hour.
        if new_email is not None and claims.get("credentials", current) != current:
            raise InvalidVerificationToken
        used_before = new_email is not None and canonical(user.email) == canonical(new_email)
        if user.email != claims["email"] and not used_before:
            raise VerifiedUserNotFound
        changed = replace(user, email=new_email or user.email, email_verified=True)
        return (
            account if changed == user else replace(account, user=replace(changed, updated_at=now))
        )

    try:
        old, new = replace_account(claims["userId"], verified)
    except NotSignedIn:
        raise VerifiedUserNotFound from None
    except EmailTaken:
        # Another user has taken the address since the link was sent.
        raise InvalidVerificationToken from None
    # The address has changed. A failure to send the notice must not look like a failure to change it.
    with suppress(TryAgain):
        tell_of_new_email(old.user, new.user, mail_context, now=now)
    return new.user


def tell_of_new_email(
    old: User, new: User, mail_context: MailContext, *, by_operator: bool = False, now: datetime
) -> bool:
    """Notify the user's previous address. Returns False if only the spelling changed. Raises TryAgain."""
    if canonical(old.email) == canonical(new.email):
        return False
    send_later(
        EmailWasChanged(
            email=old.email,
            user_id=new.id,
            new_email=new.email,
            changed_at_ms=to_ms(now),
            by_operator=by_operator,
            mail_context=mail_context,
        )
    )
    return True


def issue_reset_token(user: User, *, now: datetime) -> str:
    """Issue a reset token; only its hash is stored. Earlier tokens stay valid."""
    token = random_id(RESET_TOKEN_LENGTH)
    expires_at = now + timedelta(seconds=settings().reset_token_expires_in_seconds)
    repository.add_reset_token(hash_key(token), user, expires_at=expires_at)
    return token


def check_reset_token(token: str, *, now: datetime) -> str:
    """The id of the user whose password the token can reset. Does not use the token up. Raises InvalidLinkToken."""
    user_id, _ = _find_reset_token(token, now)
    return user_id


def reset_password(
    token: str,
    new_password: str,
    mail_context: MailContext,
    *,
    end_keys: Callable[[str], object],
    now: datetime,
) -> User:
    """Set the password and delete the token, in one transaction. The user's other reset links become invalid.

    The address counts as verified from then on, because the link reached it. By default, the user's sessions end too.

    If the address was not verified before, a stranger may have signed up with it. Then the sessions always end, and
    `end_keys` is called with the user's id to delete the keys: before the password changes, so that an interrupted
    reset leaves no keys, and again afterwards, for keys created in between.

    The user gets a notice by email, or the deployment's own function is called. Raises PasswordTooShort,
    PasswordTooLong, InvalidLinkToken.
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
        # Without a password, no stranger can have signed in: the operator made the account, or removed the password
        # by giving the account to a new address. The operator knows about its keys.
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
            # The password has changed. A failure to send the notice must not look like a failure to change it.
            with suppress(TryAgain):
                send_later(
                    PasswordWasReset(
                        email=stored.user.email,
                        sessions_ended=revokes,
                        keys_deleted=keys_deleted,
                        mail_context=mail_context,
                    )
                )
            return stored.user
        # The token was used, or the user has changed in another way. The next line raises in the first case.
        _find_reset_token(token, now)
    raise TryAgain


def _find_reset_token(token: str, now: datetime) -> tuple[str, int]:
    found = repository.find_reset_token(hash_key(token)) if _RESET_TOKEN.fullmatch(token) else None
    if found is None or found[2] <= now:
        raise InvalidLinkToken
    user_id, password_version, _ = found
    return user_id, password_version
