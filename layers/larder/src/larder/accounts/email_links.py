"""Links that verify a user's address or change it.

A verification link is a signed token (`link_tokens`). Following it verifies the address, but a mail scanner follows
links, too. So it proves nothing about the person who created the account, unless it is followed with that user's own
session. A link that changes the address becomes invalid when the user changes the password or ends all sessions.
Otherwise an attacker who has had the account could keep the link and take the account over again later. A verified
address first gets a link of its own. It leads to a page with a button that sends the link to the new address, because a
mail scanner must not do that.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.email_jobs import (
    ChangeEmail,
    ConfirmEmailChange,
    EmailWasChanged,
    MailContext,
    VerifyEmail,
    send_later,
)
from larder.accounts.link_tokens import CONFIRMS, claims_of, credentials_of
from larder.accounts.models import Account, EmailTaken, User
from larder.accounts.service import (
    accepts_password,
    check_accepts_password,
    check_address_can_change,
    check_uses_password,
    replace_account,
)
from larder.actor import LINK, Actor
from larder.addresses import canonical, parse_address
from larder.audit.models import Action
from larder.audit.service import audited
from larder.clock import to_ms
from larder.errors import (
    ChangeEmailDisabled,
    EmailAlreadyVerified,
    EmailMismatch,
    EmailUnchanged,
    InvalidVerificationToken,
    NotSignedIn,
    TryAgain,
    VerifiedUserNotFound,
)
from larder.rate_limits.models import EMAIL_CHANGES
from larder.rate_limits.service import take_if_counted
from larder.settings import settings

if TYPE_CHECKING:
    from larder.tables import Write


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


def request_new_email(
    user: User, new_email: str, callback_url: str, mail_context: MailContext, *, now: datetime
) -> None:
    """Send a link to the new address. The user's address changes when the link is opened.

    If the user's address is verified, it gets a link first, unless `ConfirmEmailChange` is off or only the spelling
    changes. The link to the new address is sent when the user confirms the change on the page of that one.

    The caller cannot see whether another user has the new address. Raises ChangeEmailDisabled, InvalidEmail,
    EmailUnchanged, TooManyRequests, AddressIsLinked, and ProviderRequired if a provider is required for either address.
    """
    if not settings().enable_change_email:
        raise ChangeEmailDisabled
    address = parse_address(new_email, "new_email")
    if address == user.email:
        raise EmailUnchanged
    check_uses_password(user)
    check_accepts_password(address)
    check_address_can_change(user, address)
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
    claims = claims_of(token, now=now)
    if CONFIRMS in claims:
        _confirming_user(claims)
        return None
    new_email: str | None = claims.get("updateTo")

    def verified(account: Account) -> Account:
        user = account.user
        if new_email is not None and claims.get("credentials") != credentials_of(user):
            raise InvalidVerificationToken
        if new_email is not None:
            # The provider may have been required, or linked, since the link was sent.
            check_uses_password(user)
            check_accepts_password(new_email)
            check_address_can_change(user, new_email)
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
        entries = [audited(new.id, action, new.id, actor) for action in proofs(old, new)]
        addresses = {canonical(old.email), canonical(new.email)} if old.email != new.email else ()
        domains = {one.rpartition("@")[2]: one for one in addresses}
        return [*entries, *map(accepts_password, domains.values())]

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


def proofs(old: User, new: User) -> Iterator[Action]:
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
    claims = claims_of(token, now=now)
    if CONFIRMS not in claims:
        raise InvalidVerificationToken
    user = _confirming_user(claims)
    send_later(
        ChangeEmail(
            email=claims[CONFIRMS],
            callback_url=claims["callbackURL"],
            user_id=user.id,
            credentials=claims["credentials"],
            mail_context=mail_context,
        )
    )
    return user


def _confirming_user(claims: Mapping[str, str]) -> User:
    """The user who confirms a change. Raises InvalidVerificationToken, VerifiedUserNotFound."""
    user = repository.get(claims["userId"])
    if user is None or user.email != claims["email"]:
        raise VerifiedUserNotFound
    if claims["credentials"] != credentials_of(user):
        raise InvalidVerificationToken
    return user


def notify_previous_address(
    old: User,
    new: User,
    mail_context: MailContext,
    *,
    by_operator: bool = False,
    by_provider: str = "",
    now: datetime,
) -> bool:
    """Notify the user's previous address. Returns False if only the spelling changed. Raises TryAgain.

    `by_provider` is the name of the identity provider that has another address for the user.
    """
    if canonical(old.email) == canonical(new.email):
        return False
    send_later(
        EmailWasChanged(
            email=old.email,
            user_id=new.id,
            new_email=new.email,
            changed_at_ms=to_ms(now),
            by_operator=by_operator,
            by_provider=by_provider,
            mail_context=mail_context,
        )
    )
    return True
