"""Proven addresses of users in tests."""

from dataclasses import replace

from larder.accounts import repository
from larder.accounts.models import User
from larder.accounts.service import read_account


def prove_address(user: User) -> User:
    """Mark the user's address as verified and proven."""
    account = read_account(user.id)
    proven = replace(account.user, email_verified=True, proven=True)
    stored = repository.change(account, replace(account, user=proven))
    assert stored is not None
    return stored.user
