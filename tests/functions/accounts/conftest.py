"""Somebody who has an account, and what hides or shows that they do."""

import hashlib
from typing import Any

import pytest

from larder import clock
from larder.accounts.email_jobs import RequestDescription, Visit
from larder.accounts.links import follow_verification_token, issue_verification_token
from larder.accounts.models import User
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.requests import DOMAIN, Browser, browser_of

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    """A hash with the default cost takes as long as most of these tests together; tests/larder has it."""
    option("scrypt_cost", 1024)


@pytest.fixture
def ada(aws_in_memory: None) -> User:
    """A user with a password, whose address is not verified."""
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
    """The cost of each scrypt that is computed from now on."""
    costs: list[int] = []
    scrypt = hashlib.scrypt

    def counted(*args: Any, **options: Any) -> bytes:
        costs.append(options["n"])
        return scrypt(*args, **options)

    monkeypatch.setattr(hashlib, "scrypt", counted)
    return costs


VISIT = Visit(
    base_url=f"https://{DOMAIN}",
    request=RequestDescription(method="POST", path="/", ip_address=None, user_agent=None),
)


def verify(user: User) -> None:
    """Have the user's address verified."""
    now = clock.now()
    follow_verification_token(issue_verification_token(user, now=now), VISIT, now=now)
