"""POST /api/auth/revoke-session"""

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import find_session, start_session
from larder.instance import restart
from tests.requests import Browser, Reply

PATH = "/revoke-session"


def is_done(reply: Reply) -> bool:
    return (reply.status, reply.json) == (200, {"status": True})


@pytest.mark.parametrize("by", ["token", "the id from the list"])
def test_a_session_is_revoked_on_every_instance_at_the_next_request(ada: User, browser: Browser, by: str) -> None:
    session, token = start_session(ada, now=clock.now())
    assert find_session(token, now=clock.now())
    shown = token if by == "token" else session.token_hash
    assert is_done(browser.post(PATH, {"token": shown}))
    assert find_session(token, now=clock.now()) is None
    restart()
    assert find_session(token, now=clock.now()) is None
    assert browser.get("/get-session").json


def test_the_callers_own_session_can_be_revoked(browser: Browser) -> None:
    token = browser.get("/get-session").json["session"]["token"]
    assert is_done(browser.post(PATH, {"token": token}))
    assert browser.get("/get-session").json is None


@pytest.mark.parametrize("by", ["token", "the id from the list"])
def test_another_users_session_stays_valid_and_is_not_revealed(bob: User, browser: Browser, by: str) -> None:
    session, token = start_session(bob, now=clock.now())
    shown = token if by == "token" else session.token_hash
    reply = browser.post(PATH, {"token": shown})
    assert is_done(reply)
    assert reply == browser.post(PATH, {"token": "A" * len(shown)})
    assert find_session(token, now=clock.now())


def test_a_cross_site_request_revokes_no_session(ada: User, browser: Browser) -> None:
    _, token = start_session(ada, now=clock.now())
    reply = browser.post(PATH, {"token": token}, headers={"origin": "https://evil.example"})
    assert reply.refusal == (403, "INVALID_ORIGIN")
    assert find_session(token, now=clock.now())
