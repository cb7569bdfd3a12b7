"""POST /api/auth/verify-password"""

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, browser_of

PATH = "/verify-password"


def test_the_right_password_is_accepted(browser: Browser) -> None:
    reply = browser.post(PATH, {"password": PASSWORD})
    assert (reply.status, reply.json, reply.cookies) == (200, {"status": True}, ())


@pytest.mark.parametrize("password", ["wrong password", "", "\x00", PASSWORD.upper(), "short"])
def test_any_other_password_is_refused(browser: Browser, password: str) -> None:
    assert browser.post(PATH, {"password": password}).refusal == (400, "INVALID_PASSWORD")


def test_a_user_without_a_password_is_refused(aws_in_memory: None, hashes: list[int]) -> None:
    user = create_user("command@example.com", "Made by command", now=clock.now())
    reply = browser_of(user).post(PATH, {"password": PASSWORD})
    assert reply.refusal == (400, "INVALID_PASSWORD")
    assert hashes == [1024]


def test_an_impossible_password_costs_no_hash(browser: Browser, hashes: list[int]) -> None:
    reply = browser.post(PATH, {"password": "x" * 1_000_000})
    assert (reply.refusal, hashes) == ((400, "PASSWORD_TOO_LONG"), [])


def test_401_without_a_session_and_no_hash(ada: User, hashes: list[int]) -> None:
    assert Browser().post(PATH, {"password": PASSWORD}).refusal == (401, "UNAUTHORIZED")
    assert hashes == []
