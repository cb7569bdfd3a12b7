"""Sign-up and sign-in with an email address and a password.

Neither the reply nor its timing shows whether an address has an account: an unknown address takes the same calls, and
the same hash, as a known one.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder.accounts import repository, service
from larder.accounts.email_jobs import MailContext, SignUpAgain, VerifyEmail, send_later
from larder.accounts.models import Account, EmailTaken, PasswordChange, Session, User
from larder.accounts.passwords import check_not_too_long
from larder.accounts.service import (
    accepts_password,
    access_of,
    check_accepts_password,
    check_credentials,
    new_account,
    replace_account,
    with_password,
)
from larder.accounts.sessions import is_fresh, start_session
from larder.accounts.setup import check_code
from larder.actor import PASSWORD, Actor
from larder.addresses import canonical, parse_address
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import in_parallel
from larder.errors import (
    AddressTooLong,
    DeleteUserDisabled,
    EmailDomainNotAllowed,
    EmailNotVerified,
    EmailPasswordDisabled,
    EmailUnchanged,
    InvalidEmail,
    InvalidEmailOrPassword,
    InvitationRequired,
    ProviderRequired,
    SessionExpired,
    SessionNotFresh,
    SetupRefused,
    SignUpDisabled,
    SoleTeamOwner,
    TooManyWrongPasswords,
    TryAgain,
    UserAlreadyExists,
    UserSuspended,
)
from larder.invitations.service import is_invited
from larder.rate_limits import guesses
from larder.rate_limits.guesses import Counter
from larder.settings import SettingsError, listed, settings
from larder.teams.members import owned_alone

if TYPE_CHECKING:
    from larder.tables import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUp:
    """A request to sign up. `callback_url` is the page that the verification link finally leads to; empty for none.

    `setup_code` is for the first user of a deployment.
    """

    name: str
    email: str
    password: str
    image: str | None = None
    callback_url: str = ""
    remembered: bool = True
    setup_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A request to sign in. `callback_url` is where the client goes afterwards; empty for none."""

    email: str
    password: str
    callback_url: str = ""
    remembered: bool = True


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A new session. Only the token's hash is stored."""

    id: str
    token: str


def sign_up(
    request: SignUp, mail_context: MailContext, *, now: datetime
) -> tuple[User, StartedSession | None]:
    """Add a user, start their first session and send a verification link. Returns the user and the session.

    The user exists even if the link cannot be sent: they can request another.

    If the deployment requires verified addresses, there is no session, and an email is sent. An address
    that is taken then gets the same reply, with a user who does not exist. In that case the email goes to the existing
    user and says that they have an account. It has no verification link, because a stranger may have created that
    account with the address.

    With a setup code, whatever the deployment allows and requires, the user is as one that the operator adds.

    Raises ProviderRequired, SignUpDisabled, InvitationRequired, EmailDomainNotAllowed, SetupRefused, InvalidEmail,
    InvalidValue, PasswordTooShort, PasswordTooLong, UserAlreadyExists.
    """
    if request.setup_code is not None:
        user = _set_up(request, request.setup_code, now=now)
        return user, _start_session(user, request.remembered, mail_context, now)
    check_accepts_password(request.email)
    _check_can_sign_up(request.email, now=now)
    account = new_account(
        request.email, request.name, password=request.password, image=request.image, now=now
    )
    user = account.user
    job: VerifyEmail | SignUpAgain = VerifyEmail(
        email=user.email, callback_url=request.callback_url, mail_context=mail_context
    )
    try:
        entry = audited(user.id, Action.SIGNED_UP, user.id, Actor(PASSWORD, user.id))
        if not repository.add(account, entry, accepts_password(user.email)):
            # The provider of the domain has just been required.
            check_accepts_password(user.email)
            raise TryAgain
    except EmailTaken:
        if not settings().require_email_verification:
            raise UserAlreadyExists from None
        job = SignUpAgain(email=user.email, mail_context=mail_context)
    if settings().require_email_verification:
        send_later(job)
        return user, None
    if not settings().send_verification_on_sign_up:
        return user, _start_session(user, request.remembered, mail_context, now)
    with in_parallel(_send_if_possible, job) as sending:
        started = _start_session(user, request.remembered, mail_context, now)
    sending.result()
    return user, started


def _set_up(request: SignUp, code: str, *, now: datetime) -> User:
    """Add the first user. Raises SignUpDisabled without passwords, SetupRefused, and what new_account raises."""
    if not settings().enable_email_and_password:
        raise SignUpDisabled
    check_code(code)
    account = new_account(
        request.email,
        request.name,
        password=request.password,
        image=request.image,
        email_verified=True,
        now=now,
    )
    user_id = account.user.id
    entry = audited(user_id, Action.SIGNED_UP, user_id, Actor(PASSWORD, user_id))
    if not repository.add(account, entry, repository.ending_setup()):
        raise SetupRefused
    return account.user


def _send_if_possible(job: VerifyEmail | SignUpAgain) -> None:
    with suppress(TryAgain, AddressTooLong):
        send_later(job)


def sign_in(
    request: SignIn, mail_context: MailContext, *, now: datetime
) -> tuple[User, StartedSession]:
    """Start a session for the user with this address and password. Returns the user and the session.

    Wrong passwords are counted by address, whether or not it has an account. After too many, every password is refused
    for some time, except from the client address that has just reset the password.

    Raises EmailPasswordDisabled, PasswordTooLong, InvalidEmail, ProviderRequired, InvalidEmailOrPassword,
    TooManyWrongPasswords. Raises UserSuspended if the password is right but the user has no access, and
    EmailNotVerified if the address must be verified first, and then sends another link.
    """
    if not settings().enable_email_and_password:
        raise EmailPasswordDisabled
    check_not_too_long(request.password)
    guessed = guesses.at_sign_in(canonical(request.email))
    try:
        return _sign_in(request, mail_context, guessed, now)
    except TooManyWrongPasswords:
        own = guessed.own_of(mail_context.request.ip_address)
        if not guesses.has_own_counter(own, now=now):
            raise
        return _sign_in(request, mail_context, own, now)


def _sign_in(
    request: SignIn, mail_context: MailContext, guessed: Counter, now: datetime
) -> tuple[User, StartedSession]:
    try:
        user = check_credentials(request.email, request.password)
    except InvalidEmailOrPassword:
        guesses.count_wrong(guessed, now=now)
        raise
    try:
        service.check_not_managed(user)
        if not user.has_access(now):
            raise UserSuspended
    except (ProviderRequired, UserSuspended):
        guesses.accept(guessed, now=now)
        raise
    if settings().require_email_verification and not user.email_verified:
        guesses.accept(guessed, now=now)
        send_later(
            VerifyEmail(
                email=user.email, callback_url=request.callback_url, mail_context=mail_context
            )
        )
        raise EmailNotVerified
    return user, _start_session(user, request.remembered, mail_context, now, guessed)


def change_own_password(
    session: Session, change: PasswordChange, mail_context: MailContext, *, now: datetime
) -> tuple[User, StartedSession | None]:
    """Set a new password for the session's user. If that ends their sessions, returns a new session.

    Raises PasswordTooShort, PasswordTooLong, ProviderRequired, InvalidPassword.
    """
    actor = Actor(session.id, session.user_id)
    user = service.change_password(session.user_id, change, actor=actor, now=now)
    if not change.ends_other_sessions:
        return user, None
    return user, _start_session(user, session.remembered, mail_context, now)


def check_identity(user: User, session: Session, password: str | None, *, now: datetime) -> None:
    """Call this before what a thief of a session must not be able to do: it takes the password or a fresh session.

    A password that is given must be right. Raises ProviderRequired, InvalidPassword, PasswordTooLong, SessionNotFresh,
    TooManyWrongPasswords.
    """
    if password is not None:
        service.check_password(user, password, now=now)
    elif not is_fresh(session, now=now):
        raise SessionNotFresh(
            "Your sign-in is too old for this request. Sign in again, or send your password."
        )


def delete_own_user(user: User, session: Session, password: str | None, *, now: datetime) -> None:
    """Delete the session's user, who must give the password or have signed in recently.

    All their sessions end. The caller must delete keys and memberships. Raises DeleteUserDisabled, ProviderRequired,
    InvalidPassword, SessionExpired, SoleTeamOwner.
    """
    if not settings().enable_delete_user:
        raise DeleteUserDisabled
    if password is not None:
        service.check_password(user, password, now=now)
    elif not is_fresh(session, now=now):
        raise SessionExpired
    check_teams_keep_an_owner(user.id)
    service.delete_user(user.id, actor=Actor(session.id, user.id), now=now)


def give_account(user_id: str, email: str, *, now: datetime) -> tuple[User, User]:
    """Move the account to another email address, for the operator. Returns the user before and after the change.

    The password and the accounts at identity providers are removed, because they are those of the holder of the old
    address. To sign in, the user opens a reset link, which also verifies the new address. All sessions end, and earlier
    links and login codes become invalid. Keys stay. The access ends as if the new holder had just signed in. All of
    this is one transaction.

    Raises InvalidEmail, EmailUnchanged, EmailTaken, TryAgain, and NotSignedIn if the user does not exist.
    """
    address = parse_address(email)
    ends_at = access_of(address, now=now)

    def with_new_address(account: Account) -> Account:
        if account.user.email == address:
            raise EmailUnchanged
        locked = with_password(account, None, ends_sessions=True, now=now)
        return replace(
            locked,
            user=replace(
                locked.user,
                email=address,
                email_verified=False,
                proven=False,
                access_until=ends_at,
                managed_by=None,
            ),
        )

    actions = (Action.EMAIL_CHANGED, Action.SESSIONS_ENDED)
    entries = [audited(user_id, action, user_id, None) for action in actions]

    def noting(_old: User, _new: User) -> "list[Write]":
        return [*entries, *repository.unlinking_all(user_id)]

    old, new = replace_account(user_id, with_new_address, noting)
    return old.user, new.user


def check_teams_keep_an_owner(user_id: str) -> None:
    """Call this before you delete a user. Raises SoleTeamOwner with the slugs of teams that would have no owner."""
    if slugs := owned_alone(user_id):
        raise SoleTeamOwner(slugs)


def _start_session(
    user: User,
    remembered: bool,
    mail_context: MailContext,
    now: datetime,
    guessed: Counter | None = None,
) -> StartedSession:
    session, token = start_session(
        user,
        remembered=remembered,
        ip_address=mail_context.request.ip_address,
        user_agent=mail_context.request.user_agent,
        guessed=guessed,
        now=now,
    )
    return StartedSession(session.id, token)


def allowed_domains() -> set[str]:
    """The domains in `AllowedEmailDomains`, as in DNS (ASCII). Raises SettingsError."""
    return {_allowed_domain(entry) for entry in listed(settings().allowed_email_domains)}


def _check_can_sign_up(email: str, *, now: datetime) -> None:
    """Raises SignUpDisabled, InvitationRequired, EmailDomainNotAllowed, InvalidEmail."""
    if not settings().enable_email_and_password:
        raise SignUpDisabled
    check_sign_up_policy(canonical(email), now=now)


def check_sign_up_policy(address: str, *, now: datetime) -> None:
    """Check that the deployment accepts a new user with a canonical address that nothing proves.

    Raises SignUpDisabled, InvitationRequired, EmailDomainNotAllowed.
    """
    policy = settings().sign_up_policy
    if policy == "closed":
        raise SignUpDisabled
    domain, allowed = address.rpartition("@")[2], allowed_domains()
    if domain in allowed or (policy == "open" and not allowed):
        return
    if policy == "open":
        raise EmailDomainNotAllowed
    if not is_invited(address, now=now):
        raise InvitationRequired


def _allowed_domain(entry: str) -> str:
    try:
        # A leading @, as in @example.com, is accepted, because many operators write it.
        return canonical(f"any@{entry.removeprefix('@')}").rpartition("@")[2]
    except InvalidEmail:
        raise SettingsError(
            f"LARDER_ALLOWED_EMAIL_DOMAINS must hold domains such as example.com, not {entry!r}"
        ) from None
