"""Create, find, change and delete users, and check their passwords."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.models import Account, Credential, PasswordChange, ProfileChange, User
from larder.accounts.passwords import (
    check_new_password,
    check_not_too_long,
    hash_password,
    needs_rehash,
    verify_password,
)
from larder.actor import Actor
from larder.addresses import canonical, parse_address
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import (
    AddressIsLinked,
    InvalidEmailOrPassword,
    InvalidPassword,
    InvalidValue,
    NotSignedIn,
    ProviderRequired,
    TryAgain,
)
from larder.hashing import random_id
from larder.names import parse_name
from larder.rate_limits import guesses
from larder.settings import listed, settings
from larder.sso import repository as sso_repository
from larder.sso.models import Domain, IdentityProvider
from larder.sso.service import domain_of_address, find_provider, provider_of_address

if TYPE_CHECKING:
    from larder.tables import Write

MAX_IMAGE_LENGTH = 2048
_IMAGE = re.compile(r"(?:https?://|data:image/[a-z0-9.+-]+[;,])[^\s\x00-\x1f\x7f]+", re.IGNORECASE)


def create_user(
    email: str,
    name: str,
    *,
    password: str | None = None,
    image: str | None = None,
    email_verified: bool = False,
    now: datetime,
) -> User:
    """Add a user, for the operator. The access of a managed user ends as if they had just signed in with the provider.

    Raises what new_account raises, and EmailTaken if another user has the address.
    """
    account = new_account(
        email, name, password=password, image=image, email_verified=email_verified, now=now
    )
    ends_at = access_of(account.user.email, now=now)
    account = replace(account, user=replace(account.user, access_until=ends_at))
    user_id = account.user.id
    repository.add(account, audited(user_id, Action.USER_CREATED, user_id, None))
    return account.user


def new_account(
    email: str,
    name: str,
    *,
    password: str | None = None,
    image: str | None = None,
    email_verified: bool = False,
    now: datetime,
) -> Account:
    """Make a user without storing it. `email_verified` is for the operator, and makes the address also proven.

    Raises InvalidEmail, InvalidValue for an invalid name or image, PasswordTooShort, PasswordTooLong,
    PasswordTooCommon.
    """
    address = parse_address(email)
    user = User(
        id=random_id(),
        email=address,
        name=parse_name(name),
        image=parse_image(image),
        email_verified=email_verified,
        proven=email_verified,
        created_at=now,
        updated_at=now,
    )
    credential = None
    if password is not None:
        check_new_password(password)
        password_hash = hash_password(password)
        credential = Credential(password_hash=password_hash, created_at=now, updated_at=now)
    return Account(user=user, credential=credential)


def find_user(user_id: str) -> User | None:
    return repository.get(user_id)


def find_users(user_ids: Sequence[str]) -> dict[str, User]:
    """The users that exist, by id."""
    return {user.id: user for user in repository.get_many(user_ids)}


def list_users() -> list[User]:
    """Every user, by address. For the operator: the cost grows with the number of users and sessions."""
    return sorted(repository.list_users(), key=lambda user: user.email)


def find_user_by_email(email: str) -> User | None:
    """Raises InvalidEmail."""
    return repository.get_by_email(email)


def check_credentials(email: str, password: str) -> User:
    """The user with this address and password.

    Raises InvalidEmail. Raises ProviderRequired for an address of a domain whose provider is required. Raises
    InvalidEmailOrPassword for an unknown address, a user without a password and a wrong password; each takes one read
    and one hash. Replaces a hash that has other parameters than the current ones.
    """
    account, domain = repository.get_account_and_domain(email)
    _check_accepts_password(email, domain)
    credential = None if account is None else account.credential
    stored = None if credential is None else credential.password_hash
    if not verify_password(password, stored) or account is None or credential is None:
        raise InvalidEmailOrPassword
    if needs_rehash(credential.password_hash):
        rehashed = replace(credential, password_hash=hash_password(password))
        # If another request changes the user at the same time, the old hash stays. The next sign-in replaces it.
        return (repository.change(account, replace(account, credential=rehashed)) or account).user
    return account.user


def check_password(user: User, password: str, *, now: datetime) -> None:
    """Check the password of a signed-in user.

    Raises ProviderRequired, InvalidPassword, PasswordTooLong, TooManyWrongPasswords.
    """
    check_not_too_long(password)
    account, domain = repository.get_account_and_domain(user.email)
    _check_accepts_password(user.email, domain)
    check_not_managed(user)
    stored = account.password_hash if account and account.user.id == user.id else None
    _check_matches(user.id, password, stored, now)


def access_of(email: str, *, now: datetime) -> datetime | None:
    """When the access of a user who gets this address now ends. None for no end. Raises InvalidEmail."""
    address = canonical(email)
    provider = provider_of_address(address)
    return None if provider is None else provider.access_until(address, now=now)


def managing_provider(user: User) -> IdentityProvider | None:
    """The provider that manages the user, by the domain of their address or by a link. None if they are not managed.

    The domain has precedence: it manages users before they have signed in.
    """
    return manager_of(canonical(user.email), user.managed_by)


def manager_of(address: str, managed_by: str | None) -> IdentityProvider | None:
    """The same for a canonical address and the `managed_by` of its user."""
    provider = provider_of_address(address)
    if provider is not None and provider.manages(address):
        return provider
    linked = None if managed_by is None else find_provider(managed_by)
    return linked if linked is not None and linked.manages(address, linked=True) else None


def check_accepts_password(email: str) -> None:
    """Check that no provider is required for the address. Raises ProviderRequired, InvalidEmail.

    The transaction of the change that follows checks it again, with `accepts_password`.
    """
    _check_accepts_password(email, domain_of_address(canonical(email)))


def check_uses_password(user: User) -> None:
    """Check that no provider manages the user. Raises ProviderRequired.

    The transaction of the change that follows checks it again: with `accepts_password`, and on condition that the user
    has not changed.
    """
    check_accepts_password(user.email)
    check_not_managed(user)


def check_not_managed(user: User) -> None:
    """Check that no link makes the user managed. Reads nothing for all others. Raises ProviderRequired."""
    provider = None if user.managed_by is None else managing_provider(user)
    if provider is not None:
        raise ProviderRequired(provider.id)


def check_address_can_change(user: User, new_email: str) -> None:
    """Check that the new address stays in the domains of a company that the user is linked to. Raises AddressIsLinked.

    The link would otherwise be all that shows that the account is the company's.
    """
    provider = provider_of_address(canonical(user.email))
    if provider is None or canonical(new_email).rpartition("@")[2] in provider.domains:
        return
    if repository.linked_to(provider.id, [user.id]):
        raise AddressIsLinked


def accepts_password(email: str) -> "Write":
    """The write that fails the transaction if a provider is required for the address."""
    return sso_repository.accepts_password(canonical(email))


def _check_accepts_password(email: str, domain: Domain | None) -> None:
    if domain is not None and domain.requires_provider(canonical(email)):
        raise ProviderRequired(domain.provider_id)


def _check_matches(user_id: str, password: str, stored: str | None, now: datetime) -> None:
    """Raises InvalidPassword, or TooManyWrongPasswords during a delay, even if the password is right."""
    guessed = guesses.of_user(user_id)
    if not verify_password(password, stored):
        guesses.count_wrong(guessed, now=now)
        raise InvalidPassword
    guesses.accept(guessed, now=now)


def update_profile(user: User, change: ProfileChange, *, now: datetime) -> User:
    """Change name or image. Raises InvalidValue, and NotSignedIn if the user does not exist."""
    name = None if change.name is None else parse_name(change.name)
    image = parse_image(change.image)

    def changed(account: Account) -> Account:
        old = account.user
        kept = None if change.removes_image else old.image
        new = replace(old, name=name or old.name, image=image or kept, updated_at=now)
        return replace(account, user=new)

    return change_account(user.id, changed).user


def change_password(
    user_id: str, change: PasswordChange, *, actor: Actor | None = None, now: datetime
) -> User:
    """Set a new password and, if requested, end the user's sessions and keys, in one transaction.

    Keys that have ended are deleted afterwards. Raises PasswordTooShort, PasswordTooLong, PasswordTooCommon,
    ProviderRequired, InvalidPassword, TooManyWrongPasswords.
    """
    check_new_password(change.new, "new_password")
    check_not_too_long(change.current, "current_password")

    def changed(account: Account) -> Account:
        check_uses_password(account.user)
        _check_matches(user_id, change.current, account.password_hash, now)
        password_hash, ends = hash_password(change.new), change.ends_other_sessions
        new = with_password(account, password_hash, ends_sessions=ends, now=now)
        if change.ends_keys:
            new = replace(new, user=replace(new.user, keys_from=new.user.password_version))
        return new

    actions = [Action.PASSWORD_CHANGED]
    if change.ends_other_sessions:
        actions.append(Action.SESSIONS_ENDED)
    if change.ends_keys:
        actions.append(Action.KEYS_DELETED)
    entries = [audited(user_id, action, user_id, actor) for action in actions]
    if change.ends_keys:
        entries.append(repository.ending_keys(user_id, now))

    def noting(_: User, new: User) -> "list[Write]":
        return [*entries, accepts_password(new.email)]

    user = replace_account(user_id, changed, noting)[1].user
    if change.ends_keys:
        delete_ended_keys(user_id)
    return user


def delete_ended_keys(user_id: str) -> None:
    """Delete the keys of a user whose keys have ended. What this does not delete, the hourly sweep does."""
    # Few requests need it, and sign-in starts faster without the modules of keys.
    from larder.api_keys.keys import delete_keys_of

    with suppress(TryAgain):
        delete_keys_of(user_id)
        repository.delete_ending_keys_note(user_id)


def delete_user(user_id: str, *, actor: Actor | None = None, now: datetime) -> None:
    """Delete the user, which ends all their sessions. Raises NotSignedIn if the user does not exist."""
    entry = audited(user_id, Action.USER_DELETED, user_id, actor)
    for _ in attempts():
        account, unlinking = read_account(user_id), repository.unlinking_all(user_id)
        if repository.delete(account, *unlinking, entry, now=now):
            return
    raise TryAgain


def deleted_users() -> list[tuple[str, datetime]]:
    """Ids of deleted users that may have data left, and when they were deleted.

    A user that exists again, because a table was restored, is left out and no longer listed as deleted.
    """
    gone = []
    for user_id, deleted_at in repository.deleted_users():
        if repository.get(user_id) is None:
            gone.append((user_id, deleted_at))
        else:
            repository.delete_note(user_id)
    return gone


def users_with_ending_keys() -> list[tuple[str, datetime]]:
    """Ids of users whose reset was interrupted before it deleted their keys, and the time of the reset."""
    return list(repository.users_with_ending_keys())


def finish_ending_keys(user_id: str) -> None:
    """Remove the note of such a user, once the keys are deleted."""
    repository.delete_ending_keys_note(user_id)


def delete_sessions(user_id: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete the session items of a deleted user. The sessions have ended, but the items contain IP addresses.

    Also delete an account at a provider that was linked while the user was deleted. False if time ran out.
    """
    for account in repository.list_provider_accounts(user_id):
        repository.delete_left_account(account)
    for session in repository.list_sessions(user_id):
        if not has_time():
            return False
        repository.delete_session(user_id, session.token_hash)
    return True


def finish_deletion(user_id: str) -> None:
    """Remove the user from the list of deleted users, once none of their data is left."""
    repository.delete_note(user_id)


def with_password(
    account: Account, password_hash: str | None, *, ends_sessions: bool, now: datetime
) -> Account:
    """The account with a new password, or without one. Earlier reset links become invalid. Optionally ends sessions."""
    user = replace(
        account.user,
        password_version=account.user.password_version + 1,
        session_generation=account.user.session_generation + ends_sessions,
        updated_at=now,
    )
    credential = None
    if password_hash is not None:
        since = now if account.credential is None else account.credential.created_at
        credential = Credential(password_hash=password_hash, created_at=since, updated_at=now)
    return replace(account, user=user, credential=credential)


def change_account(user_id: str, changed: Callable[[Account], Account]) -> Account:
    """Read the user, apply `changed` and store the result. Retries if another change came first.

    Raises NotSignedIn if the user does not exist, EmailTaken, TryAgain, and what `changed` raises.
    """
    _, stored = replace_account(user_id, changed, lambda _old, _new: ())
    return stored


def replace_account(
    user_id: str,
    changed: Callable[[Account], Account],
    noting: "Callable[[User, User], Iterable[Write]]",
) -> tuple[Account, Account]:
    """Like `change_account`, but returns the account before and after the change.

    `noting` gets the user before and after it, and returns the audit entries to store in the same transaction.
    """
    for _ in attempts():
        account = read_account(user_id)
        new = changed(account)
        stored = repository.change(account, new, *noting(account.user, new.user))
        if stored is not None:
            return account, stored
    raise TryAgain


def read_account(user_id: str) -> Account:
    """Raises NotSignedIn if the user does not exist."""
    for _ in attempts():
        user = repository.get(user_id)
        if user is None:
            raise NotSignedIn
        account = repository.get_account(user.email)
        if account is not None and account.user == user:
            return account
        # The user changed between the two reads.
    raise TryAgain


def is_operator(user: User) -> bool:
    """Whether the option `OperatorEmails` names the user's address, which must be proven."""
    return user.proven and canonical(user.email) in {
        canonical(email) for email in listed(settings().operator_emails)
    }


def parse_image(image: str | None) -> str | None:
    """The address of an image, or a small one as `data:`. Raises InvalidValue."""
    if image is not None and not (len(image) <= MAX_IMAGE_LENGTH and _IMAGE.fullmatch(image)):
        raise InvalidValue(
            "image",
            f"must be an http, https or data:image address of at most {MAX_IMAGE_LENGTH} characters",
        )
    return image
