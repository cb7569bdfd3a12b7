"""POST /api/auth/unlink-account. tests/sso has the sessions that end with an account."""

from datetime import timedelta

import pytest
import time_machine

from larder import clock
from larder.accounts import repository
from larder.accounts.models import ProviderAccount, User
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.properties import NewKey
from larder.sso.memberships import changes_at_sign_in, map_group
from larder.tables import commit
from larder.teams.members import role_of
from larder.teams.models import Role
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, Cloud, browser_of
from tests.sso.providers import add_acme, link

PATH = "/unlink-account"


@pytest.fixture
def account(ada: User) -> ProviderAccount:
    """Ada's account at a provider, in addition to her password."""
    return link(ada, add_acme())


@pytest.mark.parametrize("way", ["id", "provider", "subject"])
def test_an_account_is_unlinked(browser: Browser, account: ProviderAccount, way: str) -> None:
    bodies = {
        "id": {"accountId": account.id},
        "provider": {"providerId": "acme"},
        "subject": {"providerId": "acme", "accountId": account.subject},
    }
    reply = browser.post(PATH, bodies[way])
    assert (reply.status, reply.json) == (200, {"status": True})
    assert repository.list_provider_accounts(account.user_id) == []
    # The session of the password goes on.
    assert browser.get("/get-session").json is not None


@pytest.mark.parametrize(
    "body",
    [
        {"accountId": "of-another-user"},
        {"providerId": "other"},
        {"providerId": "acme", "accountId": "x"},
        {"providerId": "credential", "accountId": "x"},
    ],
)
def test_other_accounts_are_not_found(browser: Browser, account: ProviderAccount, body: dict[str, str]) -> None:
    assert browser.post(PATH, body).refusal == (400, "ACCOUNT_NOT_FOUND")


def test_the_last_way_to_sign_in_is_checked_first(browser: Browser) -> None:
    refusal = browser.post(PATH, {"providerId": "credential"}).refusal
    assert refusal == (400, "FAILED_TO_UNLINK_LAST_ACCOUNT")
    refusal = browser.post(PATH, {"accountId": "of-another-user"}).refusal
    assert refusal == (400, "FAILED_TO_UNLINK_LAST_ACCOUNT")


def test_refusals(ada: User, account: ProviderAccount) -> None:
    body = {"accountId": account.id}
    assert Browser().post(PATH, body).refusal == (401, "UNAUTHORIZED")
    browser = browser_of(ada)
    assert browser.post(PATH, {}).refusal == (400, "VALIDATION_ERROR")
    with time_machine.travel(clock.now() + timedelta(days=1, minutes=1)):
        assert browser.post(PATH, body).refusal == (403, "SESSION_NOT_FRESH")


def test_what_the_provider_gave_ends_with_its_account(cloud: Cloud) -> None:
    """The membership, and the keys that the user bound to the team."""
    bob = create_user("bob@acme.example", "Bob", password=PASSWORD, now=clock.now())
    provider = add_acme()
    link(bob, provider)
    map_group(provider.id, cloud.team.id, None, Role.ADMIN)
    commit(*changes_at_sign_in(provider, (), bob.id, now=clock.now()).writes)
    key, _ = create_key(NewKey(user_id=bob.id, team_id=cloud.team.id), now=clock.now())
    assert browser_of(bob).post(PATH, {"providerId": "acme"}).status == 200
    assert (role_of(cloud.team.id, bob.id), find_key(key.id)) == (None, None)
