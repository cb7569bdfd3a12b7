"""Users, a signed-in browser, and the hashes that are computed."""

import hashlib
from typing import Any

import pytest

from larder import clock
from larder.accounts.email_jobs import MailContext, RequestDescription
from larder.accounts.email_links import follow_verification_token
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import User
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.requests import DOMAIN, Browser, browser_of

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    """One hash at the default cost takes as long as most of these tests. tests/larder tests that cost."""
    option("scrypt_cost", 1024)


@pytest.fixture
def ada(aws_in_memory: None) -> User:
    """A user with a password and an unverified address."""
    return create_user("ada@example.com", "Ada", password=PASSWORD, now=clock.now())


@pytest.fixture
def bob(aws_in_memory: None) -> User:
    return create_user("bob@example.com", "Bob", password=PASSWORD, now=clock.now())


@pytest.fixture
def browser(ada: User) -> Browser:
    """A browser in which Ada is signed in."""
    return browser_of(ada)


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The cost of each scrypt hash that the test computes."""
    costs: list[int] = []
    scrypt = hashlib.scrypt

    def counted(*args: Any, **options: Any) -> bytes:
        costs.append(options["n"])
        return scrypt(*args, **options)

    monkeypatch.setattr(hashlib, "scrypt", counted)
    return costs


MAIL_CONTEXT = MailContext(
    base_url=f"https://{DOMAIN}", request=RequestDescription(method="POST", path="/", ip_address=None, user_agent=None)
)


def verify(user: User) -> None:
    """Open the user's verification link without a session, as a mail scanner does."""
    now = clock.now()
    follow_verification_token(issue_verification_token(user, now=now), MAIL_CONTEXT, now=now)


def prove(user: User) -> None:
    """Open the user's verification link with their own session."""
    now = clock.now()
    token = issue_verification_token(user, now=now)
    follow_verification_token(token, MAIL_CONTEXT, by=user, now=now)
