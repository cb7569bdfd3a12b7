"""Sign-up and sign-in with an email address and a password.

Who has an account is not told to whoever asks: an unknown address costs the same calls, and the same hash, as a known
one.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from larder.accounts import repository, service
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import EmailKind, Visit, send_later
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
    """What somebody signs up with. `callback_url` is where the link in their mail leads in the end; empty for none."""

    name: str
    email: str
    password: str
    image: str | None = None
    callback_url: str = ""
    remembered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """What somebody signs in with. `callback_url` is where they go then; empty for nowhere else."""

    email: str
    password: str
    callback_url: str = ""
    remembered: bool = True


def sign_up(given: SignUp, visit: Visit, *, now: datetime) -> tuple[User, str | None]:
    """Add a user and begin their first session; returns both, the session by its token.

    Where addresses must be verified, nobody is signed in: there is no token, mail is on its way, and an address that
    is taken gets the same answer, with a user who does not exist. The mail then goes to who has the address, and says
    that they have an account; it holds no link that would verify an address for whoever signed up with it first.

    Raises SignUpDisabled, EmailDomainNotAllowed, InvalidEmail, InvalidRequest, PasswordTooShort, PasswordTooLong,
    UserAlreadyExists.
    """
    if not settings().enable_email_and_password or settings().disable_sign_up:
        raise SignUpDisabled
    _check_domain(given.email)
    account = new_account(
        given.email, given.name, password=given.password, image=given.image, now=now
    )
    kind = EmailKind.VERIFY_EMAIL
    try:
        repository.add(account)
    except EmailTaken:
        if not settings().require_email_verification:
            raise UserAlreadyExists from None
        kind = EmailKind.SIGN_UP_AGAIN
    if settings().require_email_verification:
        send_later(kind, account.user.email, given.callback_url, visit)
        return account.user, None
    return account.user, _begin(account.user, given.remembered, visit, now)


def sign_in(given: SignIn, visit: Visit, *, now: datetime) -> tuple[User, str]:
    """Begin a session of the user whose address and password these are; returns both, the session by its token.

    Raises EmailPasswordDisabled, PasswordTooLong, InvalidEmail, InvalidEmailOrPassword, and EmailNotVerified when the
    password is right, but the address must be verified first: another link is then on its way.
    """
    if not settings().enable_email_and_password:
        raise EmailPasswordDisabled
    check_not_too_long(given.password)
    user = check_credentials(given.email, given.password)
    if settings().require_email_verification and not user.email_verified:
        send_later(EmailKind.VERIFY_EMAIL, user.email, given.callback_url, visit)
        raise EmailNotVerified
    return user, _begin(user, given.remembered, visit, now)


def change_password(
    session: Session, change: PasswordChange, visit: Visit, *, now: datetime
) -> tuple[User, str | None]:
    """Set another password for the session's user. When that ends their sessions, a new one begins; its token is told.

    Raises PasswordTooShort, PasswordTooLong, InvalidPassword.
    """
    user = service.change_password(session.user_id, change, now=now)
    if not change.ends_other_sessions:
        return user, None
    return user, _begin(user, session.remembered, visit, now)


def delete_user(user: User, session: Session, password: str | None, *, now: datetime) -> None:
    """Delete the session's user, who proves it by their password, or by having signed in lately.

    Every session of theirs ends with it; keys and memberships are the caller's to end. Raises DeleteUserDisabled,
    InvalidPassword, SessionExpired, SoleTeamOwner.
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
    """Give the account to whoever has another address, on the operator's word; returns the user as they were, and are.

    Whoever had the old address may have set the password, so it goes: nobody signs in before a link that resets it was
    followed. That also proves the address, which is not verified until then. Sessions end, and with both every earlier
    link and login code. Keys stay. All of it is one transaction.

    Raises InvalidEmail, EmailUnchanged, EmailTaken, TryAgain, and NotSignedIn for a user who is gone.
    """
    address = parse_address(email)

    def given(account: Account) -> Account:
        if account.user.email == address:
            raise EmailUnchanged
        locked = with_password(account, None, ends_sessions=True, now=now)
        return replace(locked, user=replace(locked.user, email=address, email_verified=False))

    was, becomes = replace_account(user_id, given)
    return was.user, becomes.user


def check_teams_keep_an_owner(user_id: str) -> None:
    """Before somebody goes. Raises SoleTeamOwner with the teams that would have none."""
    if slugs := owned_alone(user_id):
        raise SoleTeamOwner(slugs)


def _begin(user: User, remembered: bool, visit: Visit, now: datetime) -> str:
    _, token = start_session(
        user,
        remembered=remembered,
        ip_address=visit.request.ip_address,
        user_agent=visit.request.user_agent,
        now=now,
    )
    return token


def allowed_domains() -> set[str]:
    """The domains whose addresses may sign up, as they stand in DNS; none for all. Raises SettingsError."""
    return {_allowed_domain(named) for named in listed(settings().allowed_email_domains)}


def _check_domain(email: str) -> None:
    domain = _domain_of(email)
    allowed = allowed_domains()
    if allowed and domain not in allowed:
        raise EmailDomainNotAllowed


def _allowed_domain(named: str) -> str:
    try:
        # Many write such a domain as the end of an address: @example.com.
        return _domain_of(f"any@{named.removeprefix('@')}")
    except InvalidEmail:
        raise SettingsError(
            f"LARDER_ALLOWED_EMAIL_DOMAINS must hold domains such as example.com, not {named!r}"
        ) from None


def _domain_of(email: str) -> str:
    """As it stands in DNS."""
    return canonical(email).rpartition("@")[2]
