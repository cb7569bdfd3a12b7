"""POST /api/auth/sign-out"""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import list_sessions, start_session
from larder.instance import restart
from tests.conftest import SetOption
from tests.requests import SESSION_COOKIE, Browser, browser_of

CLEARED = tuple(
    f"__Secure-better-auth.{name}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"
    for name in ("session_token", "session_data", "dont_remember")
)


def test_the_session_ends_and_the_cookie_is_cleared(browser: Browser) -> None:
    stolen = Browser(cookies=dict(browser.cookies))
    reply = browser.post("/sign-out")
    assert (reply.status, reply.json) == (200, {"success": True})
    assert reply.cookies == CLEARED
    assert browser.cookies == {}
    for instance in ("this one", "another"):
        assert stolen.get("/get-session").json is None, instance
        restart()


def test_other_sessions_of_the_user_stay_valid(ada: User, browser: Browser) -> None:
    other = browser_of(ada)
    browser.post("/sign-out")
    assert other.get("/get-session").json["user"]["id"] == ada.id


def test_a_bearer_token_ends_its_session(ada: User) -> None:
    _, token = start_session(ada, now=clock.now())
    bearer = {"authorization": f"Bearer {token}"}
    assert Browser().post("/sign-out", headers=bearer).status == 200
    assert Browser().get("/get-session", headers=bearer).json is None


@pytest.mark.parametrize("value", [None, "", "forged.signature", "%00"])
def test_200_without_a_session(aws_in_memory: None, value: str | None) -> None:
    browser = Browser(cookies={} if value is None else {SESSION_COOKIE: value})
    reply = browser.post("/sign-out")
    assert (reply.status, reply.json, reply.cookies) == (200, {"success": True}, CLEARED)


def test_200_for_an_expired_session(ada: User) -> None:
    _, token = start_session(ada, now=clock.now() - timedelta(days=8))
    assert browser_of(ada, token=token).post("/sign-out").json == {"success": True}


def test_over_http_the_cookies_without_the_prefix_are_cleared(aws_in_memory: None) -> None:
    for line in Browser(https=False).post("/sign-out").cookies:
        assert line.startswith("better-auth.")
        assert "; Max-Age=0; HttpOnly; SameSite=Lax" in line


def test_a_cross_site_request_does_not_sign_out(browser: Browser) -> None:
    reply = browser.post("/sign-out", headers={"origin": "https://evil.example"})
    assert (reply.refusal, reply.cookies) == ((403, "INVALID_ORIGIN"), ())
    assert browser.get("/get-session").json


def test_the_body_is_optional(browser: Browser) -> None:
    assert browser.post("/sign-out", raw=b"").json == {"success": True}


def test_a_key_sent_with_the_cookie_is_ignored(ada: User, browser: Browser, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    reply = browser.post("/sign-out", headers={"x-api-key": "unknown" * 10})
    assert (reply.status, reply.json) == (200, {"success": True})
    assert list_sessions(ada, now=clock.now()) == []
