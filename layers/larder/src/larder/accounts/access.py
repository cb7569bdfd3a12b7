"""The access of people, as the operator changes it: suspend a user, and start or stop managing those of a provider.

Nothing here deletes a session or a key. They are refused while their user has no access, and work again afterwards.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.addresses import canonical
from larder.accounts.models import Account, User
from larder.accounts.service import access_of, change_account, list_users, replace_account
from larder.audit.models import Action
from larder.audit.service import audited
from larder.errors import NotSignedIn
from larder.sso.models import IdentityProvider
from larder.sso.policy import is_managed

if TYPE_CHECKING:
    from larder.tables import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user with an address of a provider's domains.

    `is_linked` says that the user has signed in with the provider, and `is_managed` that they have to.
    """

    user: User
    is_linked: bool
    has_password: bool
    is_managed: bool


def suspend_user(user_id: str, *, now: datetime) -> User:
    """End the access of a user from the next request on. Raises NotSignedIn, TryAgain."""
    return _change(user_id, Action.USER_SUSPENDED, lambda user: replace(user, suspended_at=now))


def resume_user(user_id: str, *, now: datetime) -> User:
    """Undo `suspend_user`. Sessions and keys that have not ended meanwhile work again.

    If nobody manages the user any more, an end of their access is removed too. Raises NotSignedIn, TryAgain.
    """

    def resumed(user: User) -> User:
        ends_at = user.access_until if access_of(user.email, now=now) else None
        return replace(user, suspended_at=None, access_until=ends_at)

    return _change(user_id, Action.USER_RESUMED, resumed)


def people_of(provider: IdentityProvider) -> list[Person]:
    """The users of the provider's domains, by address. Reads all users."""
    users = _users_of(provider.domains)
    linked = repository.linked_to(provider.id, [user.id for user in users])
    with_passwords = repository.with_passwords(users)
    return [
        Person(
            user=user,
            is_linked=user.id in linked,
            has_password=user.id in with_passwords,
            is_managed=is_managed(provider, canonical(user.email)),
        )
        for user in users
    ]


def settle_access(
    provider: IdentityProvider, *, former_domains: Collection[str] = (), now: datetime
) -> list[User]:
    """Give the people of a provider the access that its mode means, after a change. Returns the users that changed.

    Managed users who have no end of their access yet get one, as if they had just signed in. Those who are no longer
    managed lose it. Nobody whose access has ended gets it back, except for the addresses that are exceptions: of
    people who left the company, only this keeps them out. Doing it again changes nothing more. Raises TryAgain.
    """

    def settled(user: User) -> User:
        address = canonical(user.email)
        ends_at = user.access_until
        if address in provider.exceptions:
            ends_at = None
        elif is_managed(provider, address):
            ends_at = ends_at or now + timedelta(days=provider.keys_days)
        elif ends_at is not None and now < ends_at and access_of(address, now=now) is None:
            # No other provider manages the user either.
            ends_at = None
        return replace(user, access_until=ends_at)

    return _change_each(_users_of({*provider.domains, *former_domains}), settled)


def extend_access(
    provider: IdentityProvider, days: int, *, only: Collection[str] = (), now: datetime
) -> list[User]:
    """Let the access of the provider's managed users end at the earliest in some days. Returns the users that changed.

    These are those whose access has not ended, or, if ids of users are given, only these, even if theirs has ended.
    Raises TryAgain.
    """
    until = now + timedelta(days=days)

    def extended(user: User) -> User:
        ends_at = user.access_until
        chosen = user.id in only if only else ends_at is not None and now < ends_at
        if chosen and is_managed(provider, canonical(user.email)):
            ends_at = max(ends_at or until, until)
        return replace(user, access_until=ends_at)

    return _change_each(_users_of(provider.domains), extended)


def end_sessions_of(provider_id: str) -> int:
    """End the sessions that were started with a provider. Returns how many. Reads all sessions."""
    ended = 0
    for session in repository.sessions_of_provider(provider_id):

        def entry(session_id: str, user_id: str = session.user_id) -> "Write":
            return audited(user_id, Action.SESSION_ENDED, session_id, None)

        ended += repository.delete_session(session.user_id, session.token_hash, entry)
    return ended


def _users_of(domains: Collection[str]) -> list[User]:
    return [user for user in list_users() if canonical(user.email).rpartition("@")[2] in domains]


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
