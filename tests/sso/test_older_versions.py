"""Going back to a version without company sign-in, and forward again."""

from dataclasses import replace
from datetime import timedelta

from larder import clock
from larder.accounts import access
from larder.accounts.linking import list_accounts
from larder.accounts.models import Account, User
from larder.accounts.service import change_account, create_user, find_user
from larder.sso.models import Mode
from larder.tables import IDENTITY, commit
from tests.sso.people import end_access
from tests.sso.providers import add_acme, link

DAY = timedelta(days=1)


def older_version_renames(user: User) -> None:
    """Rewrite the user as versions 0.1.0 and 0.2.0 do: both items are replaced, without what they do not know."""

    def renamed(account: Account) -> Account:
        return replace(account, user=replace(account.user, name="Renamed"))

    change_account(user.id, renamed)
    for pk in (user.id, f"email#{user.email}"):
        item = IDENTITY.get(pk, "user")
        assert item is not None
        known = {name: value for name, value in item.items() if name not in NEW_ATTRIBUTES}
        commit(IDENTITY.put(known))


NEW_ATTRIBUTES = ("access_until", "suspended_at")


def test_no_account_is_lost_by_going_back_and_forth(aws_in_memory: None) -> None:
    now = clock.now()
    provider = add_acme(mode=Mode.REQUIRED)
    ada = create_user("ada@acme.example", "Ada", email_verified=True, now=now)
    account = link(ada, provider)
    older_version_renames(ada)

    found = find_user(ada.id)
    assert found is not None
    # The older version has dropped the end, so nobody loses keys while they cannot sign in with the company.
    assert (found.name, found.access_until) == ("Renamed", None)
    assert list_accounts(ada.id)[1] == [account]
    # `larder sso require` gives everyone an end again.
    (managed,) = access.settle_access(provider, now=now + 5 * DAY)
    assert managed.access_until == now + 35 * DAY


def test_a_suspension_is_lost_by_a_rewrite_of_an_older_version(aws_in_memory: None) -> None:
    """So the documentation says to delete suspended users before going back."""
    ada = create_user("ada@acme.example", "Ada", now=clock.now())
    access.suspend_user(ada.id, now=clock.now())
    older_version_renames(ada)
    found = find_user(ada.id)
    assert found is not None
    assert found.suspended_at is None


def test_a_user_of_an_older_version_has_no_end(aws_in_memory: None) -> None:
    ada = create_user("ada@acme.example", "Ada", now=clock.now())
    item = IDENTITY.get(ada.id, "user")
    assert item is not None
    assert not {*NEW_ATTRIBUTES} & {*item}
    ended = end_access(ada, at=clock.now())
    assert not ended.has_access(clock.now())
