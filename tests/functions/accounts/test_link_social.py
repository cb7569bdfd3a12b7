"""POST /api/auth/link-social. tests/sso has the links that reach the provider."""

from datetime import timedelta

import pytest
import time_machine

from larder import clock
from larder.accounts.models import User
from tests.requests import Browser, browser_of
from tests.sso.providers import add_acme

PATH = "/link-social"


@pytest.fixture(autouse=True)
def provider(aws_in_memory: None) -> None:
    add_acme()


def test_the_client_goes_on_to_the_provider(browser: Browser) -> None:
    reply = browser.post(PATH, {"provider": "acme", "callbackURL": "/console/account"})
    assert reply.status == 200
    assert reply.json["url"].startswith("https://login.acme.example/authorize?")
    assert reply.headers["location"] == reply.json["url"]
    assert "__Host-larder.sso." in reply.cookies[0]


def test_without_a_fresh_session_nothing_begins(ada: User) -> None:
    assert Browser().post(PATH, {"provider": "acme"}).refusal == (401, "UNAUTHORIZED")
    browser = browser_of(ada)
    with time_machine.travel(clock.now() + timedelta(days=1, minutes=1)):
        assert browser.post(PATH, {"provider": "acme"}).refusal == (403, "SESSION_NOT_FRESH")


def test_an_unknown_provider(browser: Browser) -> None:
    assert browser.post(PATH, {"provider": "other"}).refusal == (404, "PROVIDER_NOT_FOUND")
    body = {"provider": "acme", "idToken": {"token": "x"}}
    assert browser.post(PATH, body).refusal == (404, "ID_TOKEN_NOT_SUPPORTED")
