"""The access of people, as the operator changes it: suspend a user, and start or stop managing those of a provider.

Nothing here deletes a session or a key. They are refused while their user has no access, and work again afterwards.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.email_jobs import OF_SCHEDULE, AccessEnds, MailContext, send_later
from larder.accounts.models import Account, User
from larder.accounts.service import (
    change_account,
    list_users,
    managing_provider,
    replace_account,
)
from larder.addresses import canonical
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import map_concurrently
from larder.errors import NotSignedIn
from larder.sso.models import IdentityProvider
from larder.sso.service import list_providers

if TYPE_CHECKING:
    from larder.tables import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user with an address of a provider's domains, or with an account of the provider.

    `is_linked` says that the user has an account there, and `is_managed` that they have to sign in with it. `has_other`
    says that their address belongs to no domain of the provider.
    """

    user: User
    is_linked: bool
    has_other: bool
    has_password: bool
    is_managed: bool


def suspend_user(user_id: str, *, now: datetime) -> User:
    """End the access of a user from the next request on. Raises NotSignedIn, TryAgain."""
    return _change(user_id, Action.USER_SUSPENDED, lambda user: replace(user, suspended_at=now))


def resume_user(user_id: str) -> User:
    """Undo `suspend_user`. Sessions and keys that have not ended meanwhile work again.

    If nobody manages the user any more, an end of their access is removed too. Raises NotSignedIn, TryAgain.
    """

    def resumed(user: User) -> User:
        ends_at = user.access_until if managing_provider(user) else None
        return replace(user, suspended_at=None, access_until=ends_at)

    return _change(user_id, Action.USER_RESUMED, resumed)


def people_of(provider: IdentityProvider) -> list[Person]:
    """The users of the provider's domains, and those who are linked to it, by address. Reads all users."""
    users, linked = _users_of(provider)
    with_passwords = repository.with_passwords(users)
    return [
        Person(
            user=user,
            is_linked=user.id in linked,
            has_other=_domain_of(user) not in provider.domains,
            has_password=user.id in with_passwords,
            is_managed=_is_managed(provider, user, linked),
        )
        for user in users
    ]


def settle_access(
    provider: IdentityProvider, *, former_domains: Collection[str] = (), now: datetime
) -> list[User]:
    """Give the people of a provider the access that its mode means, after a change. Returns the users that changed.

    Managed users who have no end of their access yet get one, as if they had just signed in, and their sessions end as
    if they had just begun. Those who are no longer managed lose it. Nobody whose access has ended gets it back, except
    for the addresses that are exceptions: of people who left the company, only this keeps them out. Doing it again
    changes nothing more. Raises TryAgain.
    """
    users, linked = _users_of(provider, former_domains)
    others = [other for other in list_providers() if other.id != provider.id]

    def settled(user: User) -> User:
        ends_at = user.access_until
        if _is_managed(provider, user, linked):
            ends_at = ends_at or now + timedelta(days=provider.keys_days)
            return replace(user, access_until=ends_at, managed_by=provider.id)
        other = _managing(others, user)
        if canonical(user.email) in provider.exceptions or (
            other is None and ends_at is not None and now < ends_at
        ):
            ends_at = None
        return replace(user, access_until=ends_at, managed_by=other)

    before = {user.id: user.access_until for user in users}
    changed = _change_each(users, settled)
    end = now + timedelta(hours=provider.session_hours)
    map_concurrently(
        lambda user: repository.shorten_sessions(user.id, end),
        [user for user in users if _is_managed(provider, user, linked)],
    )
    return [user for user in changed if user.access_until != before[user.id]]


def extend_access(
    provider: IdentityProvider, days: int, *, only: Collection[str] = (), now: datetime
) -> list[User]:
    """Let the access of the provider's managed users end at the earliest in some days. Returns the users that changed.

    These are those whose access has not ended, or, if ids of users are given, only these, even if theirs has ended.
    Raises TryAgain.
    """
    until = now + timedelta(days=days)
    users, linked = _users_of(provider)

    def extended(user: User) -> User:
        ends_at = user.access_until
        chosen = user.id in only if only else ends_at is not None and now < ends_at
        if chosen and _is_managed(provider, user, linked):
            ends_at = max(ends_at or until, until)
        return replace(user, access_until=ends_at)

    return _change_each(users, extended)


def end_sessions_of(provider_id: str) -> int:
    """End the sessions that were started with a provider. Returns how many. Reads all sessions."""
    ended = 0
    for session in repository.sessions_of_provider(provider_id):

        def entry(session_id: str, user_id: str = session.user_id) -> "Write":
            return audited(user_id, Action.SESSION_ENDED, session_id, None)

        ended += repository.delete_session(session.user_id, session.token_hash, entry)
    return ended


def _users_of(
    provider: IdentityProvider, former_domains: Collection[str] = ()
) -> tuple[list[User], set[str]]:
    """The users of the domains and those who are linked to the provider, and the ids of the latter."""
    users, domains = list_users(), {*provider.domains, *former_domains}
    linked = repository.linked_to(provider.id, [user.id for user in users])
    return [user for user in users if user.id in linked or _domain_of(user) in domains], linked


def _domain_of(user: User) -> str:
    return canonical(user.email).rpartition("@")[2]


def _managing(providers: Collection[IdentityProvider], user: User) -> str | None:
    """The id of the one of the providers that manages the user, if any."""
    address = canonical(user.email)
    ids = {link.provider_id for link in repository.list_provider_accounts(user.id)}
    managing = (
        provider.id
        for provider in providers
        if provider.manages(address, linked=provider.id in ids)
    )
    return next(managing, None)


def _is_managed(provider: IdentityProvider, user: User, linked: Collection[str]) -> bool:
    return provider.manages(canonical(user.email), linked=user.id in linked)


def _change(user_id: str, action: Action, changed: Callable[[User], User]) -> User:
    entry = audited(user_id, action, user_id, None)
    return replace_account(user_id, _of_account(changed), lambda _old, _new: [entry])[1].user


def _change_each(users: Iterable[User], changed: Callable[[User], User]) -> list[User]:
    """Change users one by one, each as it is then. Those that stay as they are take no write."""
    found = []
    for user in users:
        if changed(user) == user:
            continue
        # Deleted in the meantime.
        with suppress(NotSignedIn):
            found.append(change_account(user.id, _of_account(changed)).user)
    return found


def _of_account(changed: Callable[[User], User]) -> Callable[[Account], Account]:
    return lambda account: replace(account, user=changed(account.user))


def warn_of_ending_access(
    *, ended: Callable[[str], object], now: datetime, has_time: Callable[[], bool]
) -> int:
    """Send the mails that are due. Returns how many. `ended` is called with each user whose access has ended.

    Reads one small item for each user whose access ends, and no user. A mail can come twice if this is interrupted.
    Raises TryAgain.
    """
    sent = 0
    for user_id, ends_at, warn_at in repository.users_with_ending_access():
        if not has_time():
            break
        if ends_at <= now:
            ended(user_id)
            repository.delete_ending_access_note(user_id, ends_at)
        elif warn_at is not None and warn_at <= now:
            # Its link begins with the option `BaseUrl`, or with what the provider knows.
            context = MailContext(base_url="", request=OF_SCHEDULE)
            send_later(AccessEnds(user_id=user_id, mail_context=context))
            repository.note_warning(user_id, ends_at)
            sent += 1
    return sent
