"""Sign in with an identity provider: which user a person is, and the session.

`decide` follows this table, from what is stored about the person. `_apply` writes all of it in one transaction with the
session, which also spends the state of the sign-in. So a callback that comes twice, or twice at once, or stops in the
middle, has one effect or none.

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

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder import clock
from larder.accounts import repository
from larder.accounts.email_jobs import (
    MailContext,
    ProviderLinked,
    VerifyEmail,
    send_later,
)
from larder.accounts.email_links import notify_previous_address
from larder.accounts.models import Account, EmailTaken, ProviderAccount, Session, User
from larder.accounts.service import (
    delete_ended_keys,
    manager_of,
    new_account,
    read_account,
    with_password,
)
from larder.accounts.sessions import new_session
from larder.accounts.sign_in import check_sign_up_policy
from larder.actor import Actor, by_provider
from larder.addresses import canonical
from larder.api_keys.keys import delete_keys_of_member
from larder.audit import repository as audit
from larder.audit.models import Action
from larder.audit.service import audited, make_entry
from larder.concurrency import attempts
from larder.errors import AddressTooLong, NotSignedIn, SignUpDisabled, TryAgain
from larder.hashing import random_id
from larder.settings import settings
from larder.sso import callback
from larder.sso.callback import CallbackRequest
from larder.sso.memberships import changes_at_sign_in
from larder.sso.models import Identity, IdentityProvider
from larder.sso.refusals import Refusal, SignInRefused
from larder.sso.service import note_failure, note_sign_in
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is stored about a person, read before the decision.

    `holder_id` is the id of the user that the person is linked to, and `deleted_id` that of one who is deleted.
    `account` is the first one, or else the user with the address; to link an account, it is the user of the session.
    `address` is the canonical form of its address, and `links` are its accounts at providers, with that of the person,
    `used`. `manager` is the provider that manages the user, read only for an address outside the domains of the
    identity's. `can_sign_up` says that `SignUpPolicy` accepts the address, read if nothing proves it. `is_taken` says
    that the user cannot get the address that the provider sends now.
    """

    holder_id: str | None = None
    deleted_id: str | None = None
    account: Account | None = None
    address: str = ""
    links: Sequence[ProviderAccount] = ()
    used: ProviderAccount | None = None
    manager: IdentityProvider | None = None
    can_sign_up: bool = False
    is_taken: bool = False

    def link_at(self, provider: IdentityProvider) -> ProviderAccount | None:
        return next((link for link in self.links if link.provider_id == provider.id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a sign-in changes: `old`, None for a new user, becomes `new`, with `address` in canonical form.

    `actions` go into the audit. `used` is the account at the provider that signs in. If it `links`, a new one is stored
    in place of `replaced`, which is a stranger's or at another issuer. `unlinked` are other accounts of a stranger.
    """

    old: Account | None
    new: Account
    address: str
    actions: tuple[Action, ...] = ()
    used: ProviderAccount | None = None
    links: bool = False
    replaced: ProviderAccount | None = None
    unlinked: tuple[ProviderAccount, ...] = ()

    @property
    def ends_keys(self) -> bool:
        return self.old is not None and self.old.user.keys_from != self.new.user.keys_from


def finish(
    request: CallbackRequest, mail_context: MailContext, *, user: User | None, now: datetime
) -> FinishedSignIn:
    """Finish a sign-in, or link the account to `user`, the one of the request's session.

    Raises SignInRefused, TryAgain.
    """
    pending = callback.pending_sign_in(request, now=now)
    try:
        identity = callback.identify(request, pending, now=now)
        try:
            return _finish(identity, pending, mail_context, user, now)
        except SignInRefused as refused:
            refused.identity = identity
            _note_refusal(refused, identity)
            raise
    except SignInRefused as refused:
        refused.pending = pending
        if refused.code in _OF_THE_PROVIDER:
            # A failure to show it to the operator must not hide it.
            with suppress(TryAgain):
                note_failure(pending.provider_id, refused.code)
        raise


def _finish(
    identity: Identity,
    pending: PendingSignIn,
    mail_context: MailContext,
    user: User | None,
    now: datetime,
) -> FinishedSignIn:
    found: Found | None
    for _ in attempts():
        if pending.session_id is None:
            found, decide_on = _find(identity, now), decide
        else:
            found, decide_on = _find_to_link(identity, user), decide_to_link
        if found is None:
            continue
        decision = decide_on(identity, found, now=now)
        done = _apply(decision, found, identity, pending, mail_context, now)
        if done is not None:
            return done
    raise TryAgain


def _find(identity: Identity, now: datetime) -> Found | None:
    """What is stored about a person who signs in. None if it is changing right now."""
    provider, address = identity.provider, identity.address
    person = repository.find_subject(provider.issuer, identity.subject)
    holder_id, link_id = person or (None, None)
    account = None if holder_id is None else _account_of(holder_id)
    if account is not None:
        links = repository.list_provider_accounts(account.user.id)
        used = next((link for link in links if link.id == link_id), None)
        if used is None:
            return None
        current = canonical(account.user.email)
        return Found(
            holder_id=holder_id,
            account=account,
            address=current,
            links=links,
            used=used,
            manager=_manager(provider, current, account.user.managed_by),
            is_taken=identity.counts
            and used.address == current != address
            and address is not None
            and repository.find_account(address) is not None,
        )
    if address is None:
        return Found(deleted_id=holder_id)
    account = repository.find_account(address)
    found = Found(deleted_id=holder_id, account=account, address=address)
    if account is None:
        manager = _manager(provider, address, None)
        can_sign_up = not identity.counts and _can_sign_up(address, now)
        return replace(found, manager=manager, can_sign_up=can_sign_up)
    if not identity.counts:
        return found
    links = repository.list_provider_accounts(account.user.id)
    own = (provider.id, provider.issuer, identity.subject)
    if any((link.provider_id, link.issuer, link.subject) == own for link in links):
        # The person has just been linked.
        return None
    return replace(found, links=links)


def _find_to_link(identity: Identity, user: User | None) -> Found:
    """What is stored about the user of the session, and the person to link."""
    account = None if user is None else _account_of(user.id)
    if account is None:
        return Found()
    person = repository.find_subject(identity.provider.issuer, identity.subject)
    holder_id = None if person is None else person[0]
    is_deleted = holder_id is not None and repository.get(holder_id) is None
    return Found(
        holder_id=None if is_deleted else holder_id,
        deleted_id=holder_id if is_deleted else None,
        account=account,
        address=canonical(account.user.email),
        links=repository.list_provider_accounts(account.user.id),
    )


def _account_of(user_id: str) -> Account | None:
    try:
        return read_account(user_id)
    except NotSignedIn:
        return None


def _manager(
    provider: IdentityProvider, address: str, managed_by: str | None
) -> IdentityProvider | None:
    is_own = address.rpartition("@")[2] in provider.domains
    return None if is_own else manager_of(address, managed_by)


def _can_sign_up(address: str, now: datetime) -> bool:
    try:
        check_sign_up_policy(address, now=now)
    except SignUpDisabled:
        return False
    return True


def decide(identity: Identity, found: Found, *, now: datetime) -> Decision:
    """Which user the person is, by the table above. Reads and writes nothing. Raises SignInRefused."""
    provider, account, own = identity.provider, found.account, found.link_at(identity.provider)
    if account is not None and found.used is not None:
        decision = _known(identity, found, account, found.used, now)
    elif identity.address is None:
        raise SignInRefused(Refusal.EMAIL_NOT_FOUND)
    elif account is None:
        decision = _new(identity, found, identity.address, now)
    elif not identity.counts:
        raise SignInRefused(Refusal.ACCOUNT_NOT_LINKED, "address_does_not_count")
    elif account.user.proven and own is not None and own.issuer == provider.issuer:
        # Of an account that is not proven, a stranger is the first person.
        raise SignInRefused(Refusal.ACCOUNT_NOT_LINKED, "another_subject")
    else:
        others = tuple(link for link in found.links if link is not own)
        proven = _proven(account, account, identity.address, others, now, ends=own is not None)
        decision = replace(proven, links=True, replaced=own)
    user = _with_access(provider, decision.address, decision.new.user, now)
    if not user.has_access(now):
        raise SignInRefused(Refusal.USER_SUSPENDED)
    _check_is_not_managed_by_another(provider, decision.address, found.manager)
    return replace(decision, new=replace(decision.new, user=user))


def decide_to_link(identity: Identity, found: Found, *, now: datetime) -> Decision:
    """What links the person to the user of a session. Reads and writes nothing. Raises SignInRefused."""
    provider, account, own = identity.provider, found.account, found.link_at(identity.provider)
    if account is None:
        raise SignInRefused(Refusal.STATE_MISMATCH, "session")
    if found.holder_id == account.user.id:
        return Decision(old=account, new=account, address=found.address)
    if found.holder_id is not None:
        raise SignInRefused(Refusal.LINKED_TO_ANOTHER)
    is_same = identity.address == found.address
    if not (is_same or identity.counts):
        raise SignInRefused(Refusal.EMAIL_DOES_NOT_MATCH)
    if own is not None and own.issuer == provider.issuer:
        raise SignInRefused(Refusal.UNABLE_TO_LINK, "another_subject")
    user, actions = account.user, list[Action]()
    if is_same and identity.counts and not user.proven:
        # As with a verification link that is opened while signed in.
        user = replace(user, email_verified=True, proven=True, updated_at=now)
        actions.append(Action.EMAIL_PROVEN)
    if user.access_until is None:
        # Linking never moves an end: another provider may have set it.
        user = _with_access(provider, found.address, user, now)
    return Decision(
        old=account,
        new=replace(account, user=user),
        address=found.address,
        actions=tuple(actions),
        links=True,
        replaced=own,
    )


def _known(
    identity: Identity, found: Found, account: Account, used: ProviderAccount, now: datetime
) -> Decision:
    """The person has an account: the user is the same, whatever the address."""
    others = tuple(link for link in found.links if link is not used)
    address = identity.address
    decision = Decision(old=account, new=account, address=found.address, used=used)
    if address is None or not identity.counts:
        return decision
    if address == found.address:
        return replace(_proven(account, account, address, others, now), used=used)
    if used.address != found.address or identity.email is None or found.is_taken:
        # The user has changed the address here, or cannot get the new one.
        return decision
    user = replace(account.user, email=identity.email, updated_at=now)
    moved = _proven(account, replace(account, user=user), address, others, now)
    return replace(moved, used=used, actions=(*moved.actions, Action.EMAIL_CHANGED))


def _new(identity: Identity, found: Found, address: str, now: datetime) -> Decision:
    """A new user. Raises SignInRefused."""
    if not identity.provider.signs_up:
        raise SignInRefused(Refusal.SIGN_UP_DISABLED, "provider")
    if not (identity.counts or found.can_sign_up):
        raise SignInRefused(Refusal.SIGN_UP_DISABLED, "policy")
    if identity.email is None:
        raise SignInRefused(Refusal.EMAIL_NOT_FOUND, "unreachable")
    account = new_account(identity.email, identity.name, email_verified=identity.counts, now=now)
    actions = (Action.SIGNED_UP,)
    return Decision(old=None, new=account, address=address, actions=actions, links=True)


def _proven(
    old: Account,
    new: Account,
    address: str,
    strangers: tuple[ProviderAccount, ...],
    now: datetime,
    *,
    ends: bool = False,
) -> Decision:
    """The address is proven. If a stranger may have made the account, nothing that they have works any more.

    `strangers` are accounts that did not prove the address, and are unlinked. `ends` says that there are more.
    """
    if old.user.proven:
        return Decision(old=old, new=new, address=address)
    is_claimed = old.credential is not None or bool(strangers) or ends
    if is_claimed:
        new = with_password(new, None, ends_sessions=True, now=now)
        new = replace(new, user=replace(new.user, keys_from=new.user.password_version))
    user = replace(new.user, email_verified=True, proven=True, updated_at=now)
    return Decision(
        old=old,
        new=replace(new, user=user),
        address=address,
        actions=(Action.ACCOUNT_CLAIMED if is_claimed else Action.EMAIL_PROVEN,),
        unlinked=strangers,
    )


def _with_access(provider: IdentityProvider, address: str, user: User, now: datetime) -> User:
    """The access of a managed user ends some days after this sign-in. Another provider may manage the user."""
    ends_at = provider.access_until(address, linked=True, now=now)
    if ends_at is None and address.rpartition("@")[2] not in provider.domains:
        return user
    return replace(user, access_until=ends_at, managed_by=None if ends_at is None else provider.id)


def _check_is_not_managed_by_another(
    provider: IdentityProvider, address: str, manager: IdentityProvider | None
) -> None:
    """Refuse a user that another provider manages: an account that they linked here would outlive the one there.

    Raises SignInRefused.
    """
    domain = address.rpartition("@")[2]
    if domain in provider.domains or manager is None or manager.id == provider.id:
        return
    # Of several links that are required, each will do. The domain of the address has precedence.
    if domain in manager.domains or not provider.manages(address, linked=True):
        raise SignInRefused(Refusal.PROVIDER_REQUIRED)


def _apply(
    decision: Decision,
    found: Found,
    identity: Identity,
    pending: PendingSignIn,
    mail_context: MailContext,
    now: datetime,
) -> FinishedSignIn | None:
    """Do what was decided, in one transaction. None if what was found has changed. Raises SignInRefused."""
    provider, session, token = identity.provider, None, None
    try:
        user, writes = _writes(decision, found, identity, now)
    except EmailTaken:
        return None
    left: list[str] = []
    is_accepted = user.email_verified or not settings().require_email_verification
    if pending.session_id is None and is_accepted:
        session, token = new_session(
            user,
            ip_address=mail_context.request.ip_address,
            user_agent=mail_context.request.user_agent,
            provider=provider.id,
            authenticated_at=identity.authenticated_at,
            lifetime=provider.session_lifetime(decision.address),
            now=now,
        )
        groups = changes_at_sign_in(provider, identity.groups, user.id, now=now)
        signed_in = _entry(Action.SIGNED_IN, user, provider, session.id)
        writes += [*repository.starting(session), signed_in, *groups.writes]
        left = groups.left
    spent, unchanged = callback.spending(pending, provider, now=now)
    failed = repository.commit_sign_in(spent, unchanged, *writes)
    if spent in failed or unchanged in failed:
        reason = "spent" if spent in failed else "provider"
        raise SignInRefused(Refusal.STATE_MISMATCH, reason)
    if failed:
        return None
    if decision.ends_keys:
        delete_ended_keys(user.id)
    for team_id in left:
        delete_keys_of_member(team_id, user.id)
    _send_mails(decision, user, identity, pending, mail_context, now)
    if pending.session_id is None:
        if session is None:
            raise SignInRefused(Refusal.EMAIL_NOT_VERIFIED)
        with suppress(TryAgain):
            note_sign_in(provider, now=now)
    elif (lifetime := provider.session_lifetime(decision.address)) is not None:
        repository.shorten_sessions(user.id, now + lifetime)
    return FinishedSignIn(
        user=user,
        session=session,
        token=token,
        is_new=decision.old is None,
        pending=pending,
        identity=identity,
    )


def _writes(
    decision: Decision, found: Found, identity: Identity, now: datetime
) -> "tuple[User, list[Write]]":
    """The user as it will be stored, and the writes without the session. Raises EmailTaken."""
    provider, old, new = identity.provider, decision.old, decision.new
    writes: list[Write] = []
    if old is None:
        writes += repository.adding(new)
    elif new != old or decision.links:
        # Also without a change, so that the user is not deleted or given to another person at the same time.
        new, replacing = repository.replacing(old, new)
        writes += replacing
    user = new.user
    if decision.ends_keys:
        writes.append(repository.ending_keys(user.id, now))
    for link in decision.unlinked:
        writes += repository.unlinking(link)
    writes += [_entry(action, user, provider, user.id) for action in decision.actions]
    if decision.used is not None:
        is_proof = identity.counts and identity.address == decision.address
        address = identity.address if is_proof else decision.used.address
        writes.append(repository.using(decision.used, now=now, address=address))
    if decision.links:
        link = ProviderAccount(
            id=random_id(),
            user_id=user.id,
            provider_id=provider.id,
            issuer=provider.issuer,
            subject=identity.subject,
            address=identity.address,
            created_at=now,
            updated_at=now,
        )
        writes += repository.linking(link, of_deleted=found.deleted_id, instead=decision.replaced)
        writes.append(_entry(Action.ACCOUNT_LINKED, user, provider, provider.id))
    return user, writes


def _send_mails(
    decision: Decision,
    user: User,
    identity: Identity,
    pending: PendingSignIn,
    mail_context: MailContext,
    now: datetime,
) -> None:
    """Send the emails. The sign-in is done, so a failure to send one must not look like a failure to sign in."""
    old, provider = decision.old, identity.provider
    must_verify = old is None or settings().require_email_verification
    with suppress(TryAgain, AddressTooLong):
        if old is not None and decision.links:
            send_later(
                ProviderLinked(user_id=user.id, provider=provider.name, mail_context=mail_context)
            )
        elif pending.session_id is None and must_verify and not user.email_verified:
            page = pending.pages.callback_url
            send_later(VerifyEmail(email=user.email, callback_url=page, mail_context=mail_context))
    with suppress(TryAgain, AddressTooLong):
        if old is not None and old.user.email != user.email:
            notify_previous_address(
                old.user, user, mail_context, by_provider=provider.name, now=now
            )


def _entry(action: Action, user: User, provider: IdentityProvider, subject: str) -> "Write":
    return audited(user.id, action, subject, Actor(by_provider(provider.id), user.id))


def _note_refusal(refused: SignInRefused, identity: Identity) -> None:
    """Store that a person with a valid id token was refused. A failure must not hide the refusal."""
    owner, code = f"sso#{identity.provider.id}", refused.code.value
    with suppress(TryAgain):
        audit.add(make_entry(owner, Action.SIGN_IN_REFUSED, code, None, now=clock.now()))
