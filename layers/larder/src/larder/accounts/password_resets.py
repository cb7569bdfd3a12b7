"""Links that reset a password. Setting a password with one proves the address.

A reset link is stored. The transaction that changes the password deletes it, so that it works once. It is valid only
while the user has the address that it was sent to: the mailbox of a previous address must not give access.
"""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from larder.accounts import repository
from larder.accounts.email_jobs import MailContext, PasswordWasReset, ResetPassword, send_later
from larder.accounts.email_links import proofs
from larder.accounts.models import ResetToken, User
from larder.accounts.passwords import check_new_password, hash_password
from larder.accounts.service import (
    accepts_password,
    check_uses_password,
    delete_ended_keys,
    read_account,
    with_password,
)
from larder.actor import LINK, Actor
from larder.addresses import canonical, parse_address
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import InvalidLinkToken, NotSignedIn, ResetPasswordDisabled, TryAgain
from larder.hashing import hash_key, random_id
from larder.rate_limits import guesses
from larder.settings import settings

RESET_TOKEN_LENGTH = 24
_RESET_TOKEN = re.compile(rf"[A-Za-z0-9]{{{RESET_TOKEN_LENGTH}}}")


def request_password_reset(email: str, redirect_to: str, mail_context: MailContext) -> None:
    """Send a reset link to an address if a user has it. The caller cannot see whether one does.

    Raises InvalidEmail, ResetPasswordDisabled.
    """
    if not settings().enable_email_and_password:
        raise ResetPasswordDisabled
    address = parse_address(email)
    send_later(ResetPassword(email=address, callback_url=redirect_to, mail_context=mail_context))


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
    token: str, new_password: str, mail_context: MailContext, *, now: datetime
) -> User:
    """Set the password and delete the token, in one transaction. The user's other reset links become invalid.

    The address counts as proven from then on, because the link reached it. By default, the user's sessions end too.

    If the address was not proven before, a stranger may have signed up with it. Then the sessions always end, accounts
    at identity providers are unlinked, and the keys end. The transaction leaves a note, so that the hourly sweep
    deletes the keys if the reset is interrupted.

    For ten minutes, wrong passwords that others try do not delay a sign-in from the client address of this request.

    The user gets a notice by email, or the deployment's own function is called. Raises PasswordTooShort,
    PasswordTooLong, PasswordTooCommon, ProviderRequired, InvalidLinkToken.
    """
    check_new_password(new_password, "new_password")
    reset = _find_reset_token(token, now)
    password_hash = hash_password(new_password)
    for _ in attempts():
        try:
            account = read_account(reset.user_id)
        except NotSignedIn:
            raise InvalidLinkToken from None
        if not _is_for(reset, account.user):
            raise InvalidLinkToken
        check_uses_password(account.user)
        # Without a password and without an account at a provider, no stranger can have signed in: the operator made the
        # account, or removed these by giving the account to a new address. The operator knows about its keys.
        unlinking = [] if account.user.proven else repository.unlinking_all(account.user.id)
        unproven = not account.user.proven and bool(account.credential or unlinking)
        revokes = unproven or settings().revoke_sessions_on_password_reset
        changed = with_password(account, password_hash, ends_sessions=revokes, now=now)
        user = replace(changed.user, email_verified=True, proven=True)
        if unproven:
            user = replace(user, keys_from=user.password_version)
        guessed = guesses.at_sign_in(canonical(account.user.email))
        own = guessed.own_of(mail_context.request.ip_address)
        actions = [Action.PASSWORD_RESET, *proofs(account.user, user)]
        actions += [Action.SESSIONS_ENDED] * revokes + [Action.KEYS_DELETED] * unproven
        stored = repository.change(
            account,
            replace(changed, user=user),
            guesses.own_counter(own, now=now),
            accepts_password(account.user.email),
            *unlinking,
            *(audited(user.id, action, user.id, Actor(LINK)) for action in actions),
            spending=hash_key(token),
            ending_keys_at=now if unproven else None,
        )
        if stored is not None:
            if unproven:
                delete_ended_keys(user.id)
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
