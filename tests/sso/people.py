"""People of a provider's domain."""

from dataclasses import replace
from datetime import datetime

from larder.accounts.models import Account, User
from larder.accounts.service import change_account


def end_access(user: User, *, at: datetime | None) -> User:
    """Let the access of the user end at a time, as a sign-in with a required provider does."""

    def ending(account: Account) -> Account:
        return replace(account, user=replace(account.user, access_until=at))

    return change_account(user.id, ending).user
