"""Links in email: they verify an address, change it, or reset a password.

A verification link is a signed token. It is not stored, and using it again does no harm. Following it verifies the
address, but a mail scanner follows links, too. So it proves nothing about the person who created the account, unless it
is followed with that user's own session. Setting a password with a reset link is a proof. A link that changes the
address becomes invalid when the user changes the password or ends all sessions. Otherwise an attacker who has had the
account could keep the link and take the account over again later. A verified address first gets a link of its
own. It leads to a page with a button that sends the link to the new address, because a mail scanner must not do that.

A reset link is stored. The transaction that changes the password deletes it, so that it works once. It is valid only
while the user has the address that it was sent to: the mailbox of a previous address must not give access.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import (
    ChangeEmail,
    ConfirmEmailChange,
    EmailWasChanged,
    MailContext,
    PasswordWasReset,
    ResetPassword,
    VerifyEmail,
    send_later,
)
from larder.accounts.models import Account, EmailTaken, ResetToken, User
from larder.accounts.passwords import check_new_password, hash_password
from larder.accounts.service import (
    delete_ended_keys,
    read_account,
    replace_account,
    with_password,
)
from larder.actor import LINK, Actor
from larder.audit.models import Action
from larder.audit.service import audited
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
from larder.rate_limits import guesses
from larder.rate_limits.models import EMAIL_CHANGES
from larder.rate_limits.service import take_if_counted
from larder.settings import settings
from larder.signing import ExpiredToken, InvalidToken, decode_token, encode_token

if TYPE_CHECKING:
    from larder.tables import Write

RESET_TOKEN_LENGTH = 24
_CALLBACK_LIFETIME_S = 30 * 86_400
_CONFIRMS = "confirms"
"""The claim with the new address, in a token that confirms the change to it."""

_RESET_TOKEN = re.compile(rf"[A-Za-z0-9]{{{RESET_TOKEN_LENGTH}}}")


def request_verification(
    email: str, callback_url: str, mail_context: MailContext, *, by: User | None
) -> None:
    """Send a verification link to an address, if it needs one. Strangers cannot see whether it does.

    `by` is the signed-in user, if there is one. They get a link until the address is proven, others until it is
    verified. Only for `by` it raises EmailMismatch and EmailAlreadyVerified; for everyone it raises InvalidEmail.
    """
    address = parse_address(email)
    if by is not None and canonical(by.email) != canonical(address):
        raise EmailMismatch
    if by is not None and by.proven:
        raise EmailAlreadyVerified
    send_later(
        VerifyEmail(
            email=address,
            callback_url=callback_url,
            by_user=by is not None,
            mail_context=mail_context,
        )
    )


def request_password_reset(email: str, redirect_to: str, mail_context: MailContext) -> None:
    """Send a reset link to an address if a user has it. The caller cannot see whether one does.

    Raises InvalidEmail, ResetPasswordDisabled.
    """
    if not settings().enable_email_and_password:
        raise ResetPasswordDisabled
    address = parse_address(email)
    send_later(ResetPassword(email=address, callback_url=redirect_to, mail_context=mail_context))


def request_new_email(
    user: User, new_email: str, callback_url: str, mail_context: MailContext, *, now: datetime
) -> None:
    """Send a link to the new address. The user's address changes when the link is opened.

    If the user's address is verified, it gets a link first, unless `ConfirmEmailChange` is off or only the spelling
    changes. The link to the new address is sent when the user confirms the change on the page of that one.

    The caller cannot see whether another user has the new address. Raises ChangeEmailDisabled, InvalidEmail,
    EmailUnchanged, TooManyRequests.
    """
    if not settings().enable_change_email:
        raise ChangeEmailDisabled
    address = parse_address(new_email, "new_email")
    if address == user.email:
        raise EmailUnchanged
    take_if_counted(f"email-changes-by#{user.id}", EMAIL_CHANGES, now=now)
    if (
        settings().confirm_email_change
        and user.email_verified
        and canonical(address) != canonical(user.email)
    ):
        send_later(
            ConfirmEmailChange(
                email=user.email,
                callback_url=callback_url,
                user_id=user.id,
                new_email=address,
                credentials=credentials_of(user),
                mail_context=mail_context,
            )
        )
        return
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


def issue_confirmation_token(
    user: User, *, new_email: str, callback_url: str, now: datetime
) -> str:
    """A token for a link to the user's address, which confirms the change to `new_email`."""
    claims = {
        "email": user.email,
        "userId": user.id,
        _CONFIRMS: new_email,
        "credentials": credentials_of(user),
        "callbackURL": callback_url,
    }
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def issue_callback_token(url: str, *, now: datetime) -> str:
    """A token for a link in an email, which has the URL to redirect to.

    It outlives the link, because an expired link also redirects there.
    """
    return encode_token({"callbackURL": url}, now=now, lifetime_s=_CALLBACK_LIFETIME_S)


def callback_url_of(token: str, *, now: datetime) -> str:
    """The URL of a callback token. Empty if the token is invalid or has expired."""
    try:
        url: str = decode_token(token, now=now).get("callbackURL", "")
    except (ExpiredToken, InvalidToken):
        return ""
    return url


def follow_verification_token(
    token: str, mail_context: MailContext, *, by: User | None = None, now: datetime
) -> User | None:
    """Mark the address as verified, or change it. Returns the user.

    Returns None, and changes nothing, for a token that confirms a change of address: mail scanners follow links, so
    only `confirm_new_email` uses it.

    `by` is the signed-in user, if there is one. The address becomes proven only if the link is theirs.

    Using the same token again has no further effect. If the address changes, the previous one gets a notice by email.
    Raises InvalidVerificationToken, VerificationTokenExpired, VerifiedUserNotFound.
    """
    claims = _claims(token, now)
    if _CONFIRMS in claims:
        _confirming_user(claims)
        return None
    new_email: str | None = claims.get("updateTo")

    def verified(account: Account) -> Account:
        user = account.user
        if new_email is not None and claims.get("credentials") != credentials_of(user):
            raise InvalidVerificationToken
        email = new_email or user.email
        is_same_address = canonical(user.email) == canonical(email)
        if user.email != claims["email"] and not (new_email is not None and is_same_address):
            raise VerifiedUserNotFound
        is_by_user = by is not None and by.id == user.id
        proven = is_by_user or (user.proven and is_same_address)
        changed = replace(user, email=email, email_verified=True, proven=proven)
        return (
            account if changed == user else replace(account, user=replace(changed, updated_at=now))
        )

    def noting(old: User, new: User) -> "list[Write]":
        actor = Actor(LINK, by.id if by else None)
        return [audited(new.id, action, new.id, actor) for action in _proofs(old, new)]

    try:
        old, new = replace_account(claims["userId"], verified, noting)
    except NotSignedIn:
        raise VerifiedUserNotFound from None
    except EmailTaken:
        # Another user has taken the address since the link was sent.
        raise InvalidVerificationToken from None
    # The address has changed. A failure to send the notice must not look like a failure to change it.
    with suppress(TryAgain):
        notify_previous_address(old.user, new.user, mail_context, now=now)
    return new.user


def _proofs(old: User, new: User) -> Iterator[Action]:
    """What a link has changed."""
    if new.email != old.email:
        yield Action.EMAIL_CHANGED
    elif new.email_verified and not old.email_verified:
        yield Action.EMAIL_VERIFIED
    if new.proven and not old.proven:
        yield Action.EMAIL_PROVEN


def confirm_new_email(token: str, mail_context: MailContext, *, now: datetime) -> User:
    """Send the link to the new address, also if the same token is used again. Returns the user.

    Raises InvalidVerificationToken, VerificationTokenExpired, VerifiedUserNotFound, TryAgain.
    """
    claims = _claims(token, now)
    if _CONFIRMS not in claims:
        raise InvalidVerificationToken
    user = _confirming_user(claims)
    send_later(
        ChangeEmail(
            email=claims[_CONFIRMS],
            callback_url=claims["callbackURL"],
            user_id=user.id,
            credentials=claims["credentials"],
            mail_context=mail_context,
        )
    )
    return user


def _claims(token: str, now: datetime) -> dict[str, str]:
    """Raises InvalidVerificationToken, VerificationTokenExpired."""
    try:
        claims = decode_token(token, now=now)
    except ExpiredToken:
        raise VerificationTokenExpired from None
    except InvalidToken:
        raise InvalidVerificationToken from None
    if "email" not in claims or "userId" not in claims:
        raise InvalidVerificationToken  # signed for another purpose
    return claims


def _confirming_user(claims: Mapping[str, str]) -> User:
    """The user who confirms a change. Raises InvalidVerificationToken, VerifiedUserNotFound."""
    user = repository.get(claims["userId"])
    if user is None or user.email != claims["email"]:
        raise VerifiedUserNotFound
    if claims["credentials"] != credentials_of(user):
        raise InvalidVerificationToken
    return user


def notify_previous_address(
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
    """The address that the token was sent to, empty for one of version 0.1.0. Does not use the token up.

    Raises InvalidLinkToken.
    """
    return _find_reset_token(token, now).address or ""


def reset_password(
    token: str,
    new_password: str,
    mail_context: MailContext,
    *,
    end_keys: Callable[[str], object],
    now: datetime,
) -> User:
    """Set the password and delete the token, in one transaction. The user's other reset links become invalid.

    The address counts as proven from then on, because the link reached it. By default, the user's sessions end too.

    If the address was not proven before, a stranger may have signed up with it. Then the sessions always end, and
    `end_keys` is called with the user's id to delete the keys. The transaction leaves a note of that, so that the
    hourly sweep deletes the keys if the reset is interrupted.

    For ten minutes, wrong passwords that others try do not delay a sign-in from the client address of this request.

    The user gets a notice by email, or the deployment's own function is called. Raises PasswordTooShort,
    PasswordTooLong, PasswordTooCommon, InvalidLinkToken.
    """
    check_new_password(new_password, "new_password")
    reset = _find_reset_token(token, now)
    user_id = reset.user_id
    password_hash = hash_password(new_password)
    for _ in attempts():
        try:
            account = read_account(user_id)
        except NotSignedIn:
            raise InvalidLinkToken from None
        if not _is_for(reset, account.user):
            raise InvalidLinkToken
        # Without a password, no stranger can have signed in: the operator made the account, or removed the password
        # by giving the account to a new address. The operator knows about its keys.
        unproven = not account.user.proven and account.credential is not None
        revokes = unproven or settings().revoke_sessions_on_password_reset
        changed = with_password(account, password_hash, ends_sessions=revokes, now=now)
        user = replace(changed.user, email_verified=True, proven=True)
        if unproven:
            user = replace(user, keys_from=user.password_version)
        changed = replace(changed, user=user)
        guessed = guesses.at_sign_in(canonical(account.user.email))
        own = guessed.own_of(mail_context.request.ip_address)
        actions = [Action.PASSWORD_RESET, *_proofs(account.user, changed.user)]
        if revokes:
            actions.append(Action.SESSIONS_ENDED)
        if unproven:
            actions.append(Action.KEYS_DELETED)
        stored = repository.change(
            account,
            changed,
            guesses.own_counter(own, now=now),
            *(audited(user_id, action, user_id, Actor(LINK)) for action in actions),
            spending=hash_key(token),
            ending_keys_at=now if unproven else None,
        )
        if stored is not None:
            if unproven:
                delete_ended_keys(user_id, end_keys)
            # The password has changed. A failure to send the notice must not look like a failure to change it.
            with suppress(TryAgain):
                send_later(
                    PasswordWasReset(
                        email=stored.user.email,
                        sessions_ended=revokes,
                        keys_deleted=unproven,
                        mail_context=mail_context,
                    )
                )
            return stored.user
        # The token was used, or the user has changed in another way. The next line raises in the first case.
        _find_reset_token(token, now)
    raise TryAgain


def _find_reset_token(token: str, now: datetime) -> ResetToken:
    found = repository.find_reset_token(hash_key(token)) if _RESET_TOKEN.fullmatch(token) else None
    if found is None or found.expires_at <= now:
        raise InvalidLinkToken
    return found


def _is_for(reset: ResetToken, user: User) -> bool:
    """False if the user has changed the password or the address since the link was sent."""
    same_address = reset.address is None or reset.address == canonical(user.email)
    return same_address and reset.password_version == user.password_version
