"""The ways in which a user signs in: list them, and unlink one."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.models import (
    CREDENTIAL_PROVIDER,
    Account,
    Credential,
    ProviderAccount,
    Session,
)
from larder.accounts.service import check_uses_password, read_account, with_password
from larder.actor import Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import AccountNotFound, LastAccount, TryAgain
from larder.sso.memberships import end_given, ending

if TYPE_CHECKING:
    from larder.tables import Write

_MOST_IN_A_TRANSACTION = 80
"""Sessions. A transaction takes 100 writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlinkRequest:
    """The account to unlink: the id of an account, or the provider, and then perhaps the person's id there."""

    account_id: str | None = None
    provider_id: str | None = None

    def names(self, account: ProviderAccount) -> bool:
        if self.provider_id is None:
            return self.account_id == account.id
        return self.provider_id == account.provider_id and self.account_id in (
            *(None, account.id),
            account.subject,
        )

    def names_password(self, user_id: str) -> bool:
        """The account with the password has the id of the user."""
        if self.provider_id is None:
            return self.account_id == user_id
        return self.provider_id == CREDENTIAL_PROVIDER and self.account_id in (None, user_id)


def list_accounts(user_id: str) -> tuple[Credential | None, list[ProviderAccount]]:
    """The user's password, if there is one, and accounts at providers. Raises NotSignedIn for a deleted user."""
    return read_account(user_id).credential, repository.list_provider_accounts(user_id)


def unlink(request: UnlinkRequest, session: Session, *, now: datetime) -> list[str]:
    """Unlink an account of the session's user, and end the sessions that it started, in one transaction.

    Then end the memberships that the provider gave. If that is interrupted, the sweep goes on. Returns the ids of their
    teams. Raises LastAccount, AccountNotFound, ProviderRequired, TryAgain.
    """
    user_id, actor = session.user_id, Actor(session.id, session.user_id)
    for _ in attempts():
        stored, accounts = read_account(user_id), repository.list_provider_accounts(user_id)
        if len(accounts) + (stored.credential is not None) < 2:
            raise LastAccount
        new, provider_id, writes = _unlinked(request, stored, accounts, now)
        # A managed user has to sign in with the provider.
        check_uses_password(stored.user)
        if _committed(stored, new, provider_id, writes, actor, now):
            return _end_given(provider_id, user_id, now)
    raise TryAgain


def unlink_for_operator(user_id: str, provider_id: str, *, now: datetime) -> list[str] | None:
    """Unlink the user's account of a provider like `unlink`, even if it is the last way to sign in.

    Another person of the provider can then be linked to the user. Returns None if there is no such account. Raises
    NotSignedIn, TryAgain.
    """
    request = UnlinkRequest(provider_id=provider_id)
    for _ in attempts():
        stored, accounts = read_account(user_id), repository.list_provider_accounts(user_id)
        if not any(map(request.names, accounts)):
            return None
        new, _, writes = _unlinked(request, stored, accounts, now)
        if _committed(stored, new, provider_id, writes, None, now):
            return _end_given(provider_id, user_id, now)
    raise TryAgain


def _end_given(provider_id: str | None, user_id: str, now: datetime) -> list[str]:
    """What this does not end, the hourly sweep does."""
    if provider_id is None:
        return []
    with suppress(TryAgain):
        return end_given(provider_id, user_id, now, now=now)
    return []


def _committed(
    stored: Account,
    new: Account,
    provider_id: str | None,
    writes: "list[Write]",
    actor: Actor | None,
    now: datetime,
) -> bool:
    """Commit the writes, and end the sessions that the account started. False if the user has changed."""
    user_id = stored.user.id
    sessions = [
        session for session in repository.list_sessions(user_id) if session.provider == provider_id
    ]
    for session in sessions[_MOST_IN_A_TRANSACTION:]:
        repository.delete_session(user_id, session.token_hash)
    subject = provider_id or CREDENTIAL_PROVIDER
    if provider_id is not None:
        writes = [*writes, ending(provider_id, user_id, now=now)]
    return (
        repository.change(
            stored,
            new,
            *writes,
            *map(repository.ending, sessions[:_MOST_IN_A_TRANSACTION]),
            audited(user_id, Action.ACCOUNT_UNLINKED, subject, actor),
        )
        is not None
    )


def _unlinked(
    request: UnlinkRequest, stored: Account, accounts: list[ProviderAccount], now: datetime
) -> "tuple[Account, str | None, list[Write]]":
    """The user without the account, its provider, None for a password, and the writes that delete it.

    Raises AccountNotFound.
    """
    if stored.credential is not None and request.names_password(stored.user.id):
        return with_password(stored, None, ends_sessions=False, now=now), None, []
    for account in accounts:
        if request.names(account):
            # The end of their access stays: unlinking gives nobody more.
            managed_by = stored.user.managed_by
            kept = None if managed_by == account.provider_id else managed_by
            user = replace(stored.user, managed_by=kept, updated_at=now)
            return replace(stored, user=user), account.provider_id, repository.unlinking(account)
    raise AccountNotFound
