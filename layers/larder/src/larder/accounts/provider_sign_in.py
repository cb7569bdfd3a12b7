"""Sign in with an identity provider: which user a person is, and the session.

The state of the sign-in is spent in the transaction that stores the session, together with everything else that the
sign-in changes. So a callback that comes twice, or twice at once, or stops in the middle, has one effect or none.

| `(issuer, subject)` | user with the address | address counts | what happens |
|---|---|---|---|
| known | | | that user is signed in, whatever the address |
| new | none | yes | a new user, whose address is proven |
| new | none | no | a new user if `SignUpPolicy` allows it, whose address is not proven |
| new | proven | yes | the account is linked to the user |
| new | not proven | yes | the user is claimed: password, sessions and keys of the person who made the account end |
| new | any | no | refused |
| new | proven, has another account at this provider | any | refused: a new employee can get a former one's address |
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder import clock
from larder.accounts import repository
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import (
    EmailJob,
    MailContext,
    ProviderLinked,
    VerifyEmail,
    send_later,
)
from larder.accounts.email_links import notify_previous_address
from larder.accounts.models import Account, EmailTaken, ProviderAccount, Session, User
from larder.accounts.service import (
    delete_ended_keys,
    managing_provider,
    new_account,
    read_account,
    with_password,
)
from larder.accounts.sessions import new_session
from larder.accounts.sign_in import check_sign_up_policy
from larder.actor import Actor, by_provider
from larder.audit import repository as audit
from larder.audit.models import Action
from larder.audit.service import audited, make_entry
from larder.concurrency import attempts
from larder.errors import (
    AddressTooLong,
    InvalidEmail,
    InvalidValue,
    NotSignedIn,
    SignUpDisabled,
    TryAgain,
)
from larder.hashing import random_id
from larder.names import parse_name
from larder.settings import settings
from larder.sso import callback
from larder.sso.callback import CallbackRequest
from larder.sso.memberships import changes_at_sign_in
from larder.sso.models import Identity
from larder.sso.policy import is_managed, managed_until, session_lifetime
from larder.sso.refusals import Refusal, SignInRefused
from larder.sso.service import find_provider, note_failure, note_sign_in
from larder.sso.state import PendingSignIn

if TYPE_CHECKING:
    from larder.tables import Write

_OF_THE_PROVIDER = frozenset(
    {Refusal.INVALID_CODE, Refusal.INVALID_ID_TOKEN, Refusal.PROVIDER_UNAVAILABLE}
)
"""What an operator has to know of, because it is not the person's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSignIn:
    """`session` and `token` are None if an account was linked to the user of a session."""

    user: User
    session: Session | None
    token: str | None
    is_new: bool
    pending: PendingSignIn
    identity: Identity

    @property
    def page(self) -> str:
        """Where the browser goes on."""
        pages = self.pending.pages
        return (self.is_new and pages.new_user_url) or pages.callback_url


@dataclass(slots=True, kw_only=True)
class _Change:
    """What a sign-in writes beyond the session, and does afterwards."""

    user: User
    writes: "list[Write]"
    is_new: bool = False
    ends_keys: bool = False
    former: User | None = None
    """The user before, if the address changes."""
    left: list[str] = field(default_factory=list)
    """The ids of the teams whose membership ends."""
    jobs: list[EmailJob] = field(default_factory=list)


def finish(
    request: CallbackRequest,
    mail_context: MailContext,
    *,
    user: User | None,
    end_keys: Callable[[str], object],
    end_member_keys: Callable[[str, str], object],
    now: datetime,
) -> FinishedSignIn:
    """Finish a sign-in, or link the account to `user`, the one of the request's session.

    `end_keys` is called with the id of a user whose keys have ended, and `end_member_keys` with the ids of a team and a
    user who is no longer a member. Raises SignInRefused, TryAgain.
    """
    pending = callback.pending_sign_in(request, now=now)
    try:
        identity = callback.identify(request, pending, now=now)
        try:
            if pending.session_id is not None:
                return _link(identity, pending, mail_context, user=user, now=now)
            return _sign_in(identity, pending, mail_context, end_keys, end_member_keys, now)
        except SignInRefused as refused:
            refused.identity = identity
            _note(refused, identity)
            raise
    except SignInRefused as refused:
        refused.pending = pending
        if refused.code in _OF_THE_PROVIDER:
            _note_failure(pending.provider_id, refused.code)
        raise


def _sign_in(
    identity: Identity,
    pending: PendingSignIn,
    mail_context: MailContext,
    end_keys: Callable[[str], object],
    end_member_keys: Callable[[str, str], object],
    now: datetime,
) -> FinishedSignIn:
    provider = identity.provider
    for _ in attempts():
        change = _change(identity, pending, mail_context, now)
        if change is None:
            continue
        user = change.user
        session = token = None
        if not user.has_access(now):
            raise SignInRefused(Refusal.USER_SUSPENDED)
        _check_is_not_managed_by_another(identity, user)
        if user.email_verified or not settings().require_email_verification:
            session, token = new_session(
                user,
                ip_address=mail_context.request.ip_address,
                user_agent=mail_context.request.user_agent,
                provider=provider.id,
                authenticated_at=identity.authenticated_at,
                lifetime=session_lifetime(provider, canonical(user.email)),
                now=now,
            )
            entry = audited(user.id, Action.SIGNED_IN, session.id, _actor(identity, user))
            groups = changes_at_sign_in(provider, identity.groups, user.id, now=now)
            change.writes += [*repository.starting(session), entry, *groups.writes]
            change.left = groups.left
        if not _committed(identity, pending, change.writes, now):
            continue
        if change.ends_keys:
            delete_ended_keys(user.id, end_keys)
        for team_id in change.left:
            end_member_keys(team_id, user.id)
        _tell(change, identity, mail_context, now)
        if session is None:
            raise SignInRefused(Refusal.EMAIL_NOT_VERIFIED)
        with suppress(TryAgain):
            note_sign_in(provider, now=now)
        return FinishedSignIn(
            user=user,
            session=session,
            token=token,
            is_new=change.is_new,
            pending=pending,
            identity=identity,
        )
    raise TryAgain


def _link(
    identity: Identity,
    pending: PendingSignIn,
    mail_context: MailContext,
    *,
    user: User | None,
    now: datetime,
) -> FinishedSignIn:
    """Link the person to the user whose session started it. Raises SignInRefused, TryAgain."""
    if user is None:
        raise SignInRefused(Refusal.STATE_MISMATCH, "session")
    for _ in attempts():
        change = _linked(identity, user.id, mail_context, now)
        if _committed(identity, pending, change.writes, now):
            _tell(change, identity, mail_context, now)
            lifetime = session_lifetime(identity.provider, canonical(user.email))
            if lifetime is not None:
                repository.shorten_sessions(user.id, now + lifetime)
            return FinishedSignIn(
                user=change.user,
                session=None,
                token=None,
                is_new=False,
                pending=pending,
                identity=identity,
            )
    raise TryAgain


def _check_is_not_managed_by_another(identity: Identity, user: User) -> None:
    """Refuse a user that another provider manages: an account that they linked here would outlive the one there.

    Raises SignInRefused.
    """
    provider, address = identity.provider, canonical(user.email)
    domain = address.rpartition("@")[2]
    if domain in provider.domains:
        return
    managing = managing_provider(user)
    if managing is None or managing.id == provider.id:
        return
    # Of several links that are required, each will do. The domain of the address has precedence.
    if domain in managing.domains or not is_managed(provider, address, linked=True):
        raise SignInRefused(Refusal.PROVIDER_REQUIRED)


def _committed(
    identity: Identity, pending: PendingSignIn, writes: "list[Write]", now: datetime
) -> bool:
    """False if what was read has changed. Raises SignInRefused if the state is spent or the provider has changed."""
    spending = callback.spending(pending, identity.provider, now=now)
    try:
        failed = repository.commit_sign_in(spending, writes)
    except repository.OvertakenSignIn:
        return False
    if failed is not None:
        reason = "spent" if failed is spending[0] else "provider"
        raise SignInRefused(Refusal.STATE_MISMATCH, reason)
    return True


def _tell(change: _Change, identity: Identity, mail_context: MailContext, now: datetime) -> None:
    """Send the emails. The sign-in is done, so a failure to send one must not look like a failure to sign in."""
    for job in change.jobs:
        with suppress(TryAgain, AddressTooLong):
            send_later(job)
    if change.former is not None:
        with suppress(TryAgain, AddressTooLong):
            notify_previous_address(
                change.former,
                change.user,
                mail_context,
                by_provider=identity.provider.name,
                now=now,
            )


def _change(
    identity: Identity, pending: PendingSignIn, mail_context: MailContext, now: datetime
) -> _Change | None:
    """What to write for this person. None if the user is changing right now. Raises SignInRefused."""
    known = repository.find_subject(identity.provider.issuer, identity.subject)
    of_deleted = None
    if known is not None:
        user_id, account_id = known
        try:
            stored = read_account(user_id)
        except NotSignedIn:
            of_deleted = user_id
        else:
            accounts = repository.list_provider_accounts(user_id)
            used = next((one for one in accounts if one.id == account_id), None)
            others = [one for one in accounts if one.id != account_id]
            return (
                None
                if used is None
                else _known(identity, stored, used, others, pending, mail_context, now)
            )
    address = _canonical_address(identity)
    if address is None or identity.email is None:
        raise SignInRefused(Refusal.EMAIL_NOT_FOUND)
    existing = repository.get_account(identity.email)
    if existing is None:
        return _new(identity, identity.email, pending, mail_context, of_deleted, now)
    if not identity.counts:
        raise SignInRefused(Refusal.ACCOUNT_NOT_LINKED, "address_does_not_count")
    return _adopted(identity, existing, mail_context, of_deleted, now)


def _known(
    identity: Identity,
    stored: Account,
    used: ProviderAccount,
    others: list[ProviderAccount],
    pending: PendingSignIn,
    mail_context: MailContext,
    now: datetime,
) -> _Change:
    """The person has an account: the user is the same, whatever the address."""
    change = _Change(user=stored.user, writes=[])
    address, current = _canonical_address(identity), canonical(stored.user.email)
    new, kept = stored, used.address
    if identity.counts and address == current:
        new, kept = _claim(identity, stored, others, change, now), address
    elif identity.counts and identity.email and used.address == current:
        # The provider has changed the address. One that the user has changed here stays.
        user = replace(stored.user, email=parse_address(identity.email), updated_at=now)
        new = _claim(identity, replace(stored, user=user), others, change, now)
    try:
        _replace(change, stored, replace(new, user=_with_access(identity, new.user, now)))
    except EmailTaken:
        change = _Change(user=stored.user, writes=[])
        user = _with_access(identity, stored.user, now)
        _replace(change, stored, replace(stored, user=user))
    if change.user.email != stored.user.email:
        change.former, kept = stored.user, address
        change.writes.append(_entry(Action.EMAIL_CHANGED, change.user, identity))
    change.writes.append(repository.using(used, now=now, address=kept))
    if not change.user.email_verified and settings().require_email_verification:
        change.jobs.append(_verification(change.user, pending, mail_context))
    return change


def _new(
    identity: Identity,
    email: str,
    pending: PendingSignIn,
    mail_context: MailContext,
    of_deleted: str | None,
    now: datetime,
) -> _Change:
    """A new user. Raises SignInRefused."""
    if not identity.provider.signs_up:
        raise SignInRefused(Refusal.SIGN_UP_DISABLED, "provider")
    if not identity.counts:
        try:
            check_sign_up_policy(email, now=now)
        except SignUpDisabled:
            raise SignInRefused(Refusal.SIGN_UP_DISABLED, "policy") from None
    account = new_account(email, _name(identity, email), email_verified=identity.counts, now=now)
    account = replace(account, user=_with_access(identity, account.user, now))
    user = account.user
    change = _Change(user=user, writes=repository.adding(account), is_new=True)
    change.writes += [
        *repository.linking(_account(identity, user, now), of_deleted=of_deleted),
        _entry(Action.SIGNED_UP, user, identity),
        _entry(Action.ACCOUNT_LINKED, user, identity, identity.provider.id),
    ]
    if not identity.counts:
        change.jobs.append(_verification(user, pending, mail_context))
    return change


def _adopted(
    identity: Identity,
    stored: Account,
    mail_context: MailContext,
    of_deleted: str | None,
    now: datetime,
) -> _Change | None:
    """The user whose address the provider proves. None if the person has just been linked. Raises SignInRefused."""
    change = _Change(user=stored.user, writes=[])
    accounts = repository.list_provider_accounts(stored.user.id)
    own, others = _own_and_others(identity, accounts)
    if own is not None and own.issuer == identity.provider.issuer:
        if own.subject == identity.subject:
            return None
        # Of an account that is not proven, a stranger is the first person.
        if stored.user.proven:
            raise SignInRefused(Refusal.ACCOUNT_NOT_LINKED, "another_subject")
    new = _claim(identity, stored, others, change, now, ends=own is not None)
    # Also without a change, so that the user is not deleted or given to another person at the same time.
    user = _with_access(identity, new.user, now)
    _replace(change, stored, replace(new, user=user), always=True)
    _add_link(change, identity, of_deleted, own, mail_context, now)
    return change


def _linked(identity: Identity, user_id: str, mail_context: MailContext, now: datetime) -> _Change:
    """What links the person to the user of a session. Raises SignInRefused."""
    try:
        stored = read_account(user_id)
    except NotSignedIn:
        raise SignInRefused(Refusal.STATE_MISMATCH, "session") from None
    change, of_deleted = _Change(user=stored.user, writes=[]), None
    known = repository.find_subject(identity.provider.issuer, identity.subject)
    if known is not None and known[0] == user_id:
        return change
    if known is not None:
        if repository.get(known[0]) is not None:
            raise SignInRefused(Refusal.LINKED_TO_ANOTHER)
        of_deleted = known[0]
    is_same = _canonical_address(identity) == canonical(stored.user.email)
    if not (is_same or identity.counts):
        raise SignInRefused(Refusal.EMAIL_DOES_NOT_MATCH)
    own, _ = _own_and_others(identity, repository.list_provider_accounts(user_id))
    if own is not None and own.issuer == identity.provider.issuer:
        raise SignInRefused(Refusal.UNABLE_TO_LINK, "another_subject")
    new = stored
    if is_same and identity.counts and not stored.user.proven:
        # As with a verification link that is opened while signed in.
        user = replace(stored.user, email_verified=True, proven=True, updated_at=now)
        new = replace(stored, user=user)
        change.writes.append(_entry(Action.EMAIL_PROVEN, user, identity))
    if new.user.access_until is None:
        # Linking never moves an end: another provider may have set it.
        new = replace(new, user=_with_access(identity, new.user, now))
    _replace(change, stored, new, always=True)
    _add_link(change, identity, of_deleted, own, mail_context, now)
    return change


def _add_link(
    change: _Change,
    identity: Identity,
    of_deleted: str | None,
    own: ProviderAccount | None,
    mail_context: MailContext,
    now: datetime,
) -> None:
    """Link the account. `own` is the user's that it replaces: of a stranger, or at another issuer."""
    account = _account(identity, change.user, now)
    change.writes += [
        *repository.linking(account, of_deleted=of_deleted, instead=own),
        _entry(Action.ACCOUNT_LINKED, change.user, identity, identity.provider.id),
    ]
    change.jobs.append(
        ProviderLinked(
            user_id=change.user.id, provider=identity.provider.name, mail_context=mail_context
        )
    )


def _claim(
    identity: Identity,
    stored: Account,
    others: list[ProviderAccount],
    change: _Change,
    now: datetime,
    *,
    ends: bool = False,
) -> Account:
    """The account with a proven address. If a stranger may have made it, nothing that they have works any more.

    `others` are accounts of the user that did not prove the address, and are unlinked. `ends` says that there are more.
    """
    if stored.user.proven:
        return stored
    new = stored
    action = Action.EMAIL_PROVEN
    if stored.credential is not None or others or ends:
        new = with_password(stored, None, ends_sessions=True, now=now)
        new = replace(new, user=replace(new.user, keys_from=new.user.password_version))
        change.ends_keys, action = True, Action.ACCOUNT_CLAIMED
        change.writes.append(repository.ending_keys(stored.user.id, now))
        for other in others:
            change.writes += repository.unlinking(other)
    user = replace(new.user, email_verified=True, proven=True, updated_at=now)
    change.writes.append(_entry(action, user, identity))
    return replace(new, user=user)


def _replace(change: _Change, old: Account, new: Account, *, always: bool = False) -> None:
    """Write the account if it has changed. Raises EmailTaken."""
    if new != old or always:
        stored, writes = repository.replacing(old, new)
        change.user = stored.user
        change.writes += writes


def _with_access(identity: Identity, user: User, now: datetime) -> User:
    """The access of a managed user ends some days after this sign-in. Another provider may manage the user."""
    provider, address = identity.provider, canonical(user.email)
    ends_at = managed_until(provider, address, linked=True, now=now)
    if ends_at is None and address.rpartition("@")[2] not in provider.domains:
        return user
    return replace(user, access_until=ends_at, managed_by=None if ends_at is None else provider.id)


def _own_and_others(
    identity: Identity, accounts: list[ProviderAccount]
) -> tuple[ProviderAccount | None, list[ProviderAccount]]:
    """The account at the identity's provider, and those at others."""
    own = [one for one in accounts if one.provider_id == identity.provider.id]
    others = [one for one in accounts if one.provider_id != identity.provider.id]
    return (own[0] if own else None), others


def _account(identity: Identity, user: User, now: datetime) -> ProviderAccount:
    return ProviderAccount(
        id=random_id(),
        user_id=user.id,
        provider_id=identity.provider.id,
        issuer=identity.provider.issuer,
        subject=identity.subject,
        address=_canonical_address(identity),
        created_at=now,
        updated_at=now,
    )


def _canonical_address(identity: Identity) -> str | None:
    try:
        return None if identity.email is None else canonical(identity.email)
    except InvalidEmail:
        return None


def _name(identity: Identity, email: str) -> str:
    """The name, as at a sign-up, or the part of the address before the @."""
    try:
        return parse_name(identity.name or "")
    except InvalidValue:
        return email.rpartition("@")[0]


def _verification(user: User, pending: PendingSignIn, mail_context: MailContext) -> EmailJob:
    return VerifyEmail(
        email=user.email, callback_url=pending.pages.callback_url, mail_context=mail_context
    )


def _entry(action: Action, user: User, identity: Identity, subject: str | None = None) -> "Write":
    return audited(user.id, action, subject or user.id, _actor(identity, user))


def _actor(identity: Identity, user: User) -> Actor:
    return Actor(by_provider(identity.provider.id), user.id)


def _note(refused: SignInRefused, identity: Identity) -> None:
    """Store that a person with a valid id token was refused. A failure must not hide the refusal."""
    provider_id = identity.provider.id
    with suppress(TryAgain):
        audit.add(
            make_entry(
                f"sso#{provider_id}",
                Action.SIGN_IN_REFUSED,
                refused.code.value,
                None,
                now=clock.now(),
            )
        )


def _note_failure(provider_id: str, code: str) -> None:
    """Show the operator the failure of a provider. A failure to do so must not hide it."""
    with suppress(TryAgain):
        provider = find_provider(provider_id)
        if provider is not None:
            note_failure(provider, code)
