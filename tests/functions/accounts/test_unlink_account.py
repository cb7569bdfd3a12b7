"""POST /api/auth/unlink-account. tests/sso has the sessions that end with an account."""

from datetime import timedelta

import pytest
import time_machine

from larder import clock
from larder.accounts import repository
from larder.accounts.models import ProviderAccount, User
from tests.requests import Browser, browser_of
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
