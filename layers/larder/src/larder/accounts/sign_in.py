"""Sign-up and sign-in with an email address and a password.

Neither the reply nor its timing shows whether an address has an account: an unknown address takes the same calls, and
the same hash, as a known one.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from larder.accounts import repository, service
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import MailContext, SignUpAgain, VerifyEmail, send_later
from larder.accounts.models import Account, EmailTaken, PasswordChange, Session, User
from larder.accounts.passwords import check_not_too_long
from larder.accounts.service import (
    check_credentials,
    new_account,
    replace_account,
    with_password,
)
from larder.accounts.sessions import is_fresh, start_session
from larder.errors import (
    DeleteUserDisabled,
    EmailDomainNotAllowed,
    EmailNotVerified,
    EmailPasswordDisabled,
    EmailUnchanged,
    InvalidEmail,
    SessionExpired,
    SignUpDisabled,
    SoleTeamOwner,
    UserAlreadyExists,
)
from larder.settings import SettingsError, listed, settings
from larder.teams.service import owned_alone


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUp:
    """A request to sign up. `callback_url` is the page that the verification link finally leads to; empty for none."""

    name: str
    email: str
    password: str
    image: str | None = None
    callback_url: str = ""
    remembered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A request to sign in. `callback_url` is where the client goes afterwards; empty for none."""

    email: str
    password: str
    callback_url: str = ""
    remembered: bool = True


def sign_up(
    request: SignUp, mail_context: MailContext, *, now: datetime
) -> tuple[User, str | None]:
    """Add a user and start their first session. Returns the user and the session's token.

    If the deployment requires verified addresses, there is no session and no token, and an email is sent. An address
    that is taken then gets the same reply, with a user who does not exist. In that case the email goes to the existing
    user and says that they have an account. It has no verification link, because a stranger may have created that
    account with the address.

    Raises SignUpDisabled, EmailDomainNotAllowed, InvalidEmail, InvalidRequest, PasswordTooShort, PasswordTooLong,
    UserAlreadyExists.
    """
    if not settings().enable_email_and_password or settings().disable_sign_up:
        raise SignUpDisabled
    _check_domain(request.email)
    account = new_account(
        request.email, request.name, password=request.password, image=request.image, now=now
    )
    job: type[VerifyEmail | SignUpAgain] = VerifyEmail
    try:
        repository.add(account)
    except EmailTaken:
        if not settings().require_email_verification:
            raise UserAlreadyExists from None
        job = SignUpAgain
    if settings().require_email_verification:
        send_later(
            job(
                email=account.user.email,
                callback_url=request.callback_url,
                mail_context=mail_context,
            )
        )
        return account.user, None
    return account.user, _start_session(account.user, request.remembered, mail_context, now)


def sign_in(request: SignIn, mail_context: MailContext, *, now: datetime) -> tuple[User, str]:
    """Start a session for the user with this address and password. Returns the user and the session's token.

    Raises EmailPasswordDisabled, PasswordTooLong, InvalidEmail, InvalidEmailOrPassword. Raises EmailNotVerified if the
    password is right but the address must be verified first, and sends another link.
    """
    if not settings().enable_email_and_password:
        raise EmailPasswordDisabled
    check_not_too_long(request.password)
    user = check_credentials(request.email, request.password)
    if settings().require_email_verification and not user.email_verified:
        send_later(
            VerifyEmail(
                email=user.email, callback_url=request.callback_url, mail_context=mail_context
            )
        )
        raise EmailNotVerified
    return user, _start_session(user, request.remembered, mail_context, now)


def change_password(
    session: Session, change: PasswordChange, mail_context: MailContext, *, now: datetime
) -> tuple[User, str | None]:
    """Set a new password for the session's user. If that ends their sessions, returns the token of a new session.

    Raises PasswordTooShort, PasswordTooLong, InvalidPassword.
    """
    user = service.change_password(session.user_id, change, now=now)
    if not change.ends_other_sessions:
        return user, None
    return user, _start_session(user, session.remembered, mail_context, now)


def delete_user(user: User, session: Session, password: str | None, *, now: datetime) -> None:
    """Delete the session's user, who must give the password or have signed in recently.

    All their sessions end. The caller must delete keys and memberships. Raises DeleteUserDisabled, InvalidPassword,
    SessionExpired, SoleTeamOwner.
    """
    if not settings().enable_delete_user:
        raise DeleteUserDisabled
    if password is not None:
        service.check_password(user, password)
    elif not is_fresh(session, now=now):
        raise SessionExpired
    check_teams_keep_an_owner(user.id)
    service.remove_user(user.id, now=now)


def give_account(user_id: str, email: str, *, now: datetime) -> tuple[User, User]:
    """Move the account to another email address, for the operator. Returns the user before and after the change.

    The password is removed, because the holder of the old address may know it. To sign in, the user opens a reset link,
    which also verifies the new address. All sessions end, and earlier links and login codes become invalid. Keys stay.
    All of this is one transaction.

    Raises InvalidEmail, EmailUnchanged, EmailTaken, TryAgain, and NotSignedIn if the user does not exist.
    """
    address = parse_address(email)

    def with_new_address(account: Account) -> Account:
        if account.user.email == address:
            raise EmailUnchanged
        locked = with_password(account, None, ends_sessions=True, now=now)
        return replace(locked, user=replace(locked.user, email=address, email_verified=False))

    old, new = replace_account(user_id, with_new_address)
    return old.user, new.user


def check_teams_keep_an_owner(user_id: str) -> None:
    """Call this before you delete a user. Raises SoleTeamOwner with the slugs of teams that would have no owner."""
    if slugs := owned_alone(user_id):
        raise SoleTeamOwner(slugs)


def _start_session(user: User, remembered: bool, mail_context: MailContext, now: datetime) -> str:
    _, token = start_session(
        user,
        remembered=remembered,
        ip_address=mail_context.request.ip_address,
        user_agent=mail_context.request.user_agent,
        now=now,
    )
    return token


def allowed_domains() -> set[str]:
    """The domains whose addresses can sign up, as in DNS (ASCII). An empty set allows all. Raises SettingsError."""
    return {_allowed_domain(entry) for entry in listed(settings().allowed_email_domains)}


def _check_domain(email: str) -> None:
    domain = _domain_of(email)
    allowed = allowed_domains()
    if allowed and domain not in allowed:
        raise EmailDomainNotAllowed


def _allowed_domain(entry: str) -> str:
    try:
        # A leading @, as in @example.com, is accepted, because many operators write it.
        return _domain_of(f"any@{entry.removeprefix('@')}")
    except InvalidEmail:
        raise SettingsError(
            f"LARDER_ALLOWED_EMAIL_DOMAINS must hold domains such as example.com, not {entry!r}"
        ) from None


def _domain_of(email: str) -> str:
    """The domain as in DNS (ASCII)."""
    return canonical(email).rpartition("@")[2]
