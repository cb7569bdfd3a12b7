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


def test_the_session_ends_and_the_browser_forgets_it(browser: Browser) -> None:
    stolen = Browser(cookies=dict(browser.cookies))
    reply = browser.post("/sign-out")
    assert (reply.status, reply.json) == (200, {"success": True})
    assert reply.cookies == CLEARED
    assert browser.cookies == {}
    for instance in ("this one", "another"):
        assert stolen.get("/get-session").json is None, instance
        restart()


def test_the_users_other_sessions_go_on(ada: User, browser: Browser) -> None:
    other = browser_of(ada)
    browser.post("/sign-out")
    assert other.get("/get-session").json["user"]["id"] == ada.id


def test_a_bearer_tokens_session_ends(ada: User) -> None:
    _, token = start_session(ada, now=clock.now())
    bearer = {"authorization": f"Bearer {token}"}
    assert Browser().post("/sign-out", headers=bearer).status == 200
    assert Browser().get("/get-session", headers=bearer).json is None


@pytest.mark.parametrize("value", [None, "", "forged.signature", "%00"])
def test_who_is_not_signed_in_is_signed_out(aws_in_memory: None, value: str | None) -> None:
    browser = Browser(cookies={} if value is None else {SESSION_COOKIE: value})
    reply = browser.post("/sign-out")
    assert (reply.status, reply.json, reply.cookies) == (200, {"success": True}, CLEARED)


def test_so_is_who_was_signed_in_too_long_ago(ada: User) -> None:
    _, token = start_session(ada, now=clock.now() - timedelta(days=8))
    assert browser_of(ada, token=token).post("/sign-out").json == {"success": True}


def test_on_http_the_cookies_without_the_prefix_are_cleared(aws_in_memory: None) -> None:
    for line in Browser(https=False).post("/sign-out").cookies:
        assert line.startswith("better-auth.")
        assert "; Max-Age=0; HttpOnly; SameSite=Lax" in line


def test_another_sites_page_signs_nobody_out(browser: Browser) -> None:
    reply = browser.post("/sign-out", headers={"origin": "https://evil.example"})
    assert (reply.refusal, reply.cookies) == ((403, "INVALID_ORIGIN"), ())
    assert browser.get("/get-session").json


def test_a_body_is_not_needed(browser: Browser) -> None:
    assert browser.post("/sign-out", raw=b"").json == {"success": True}


def test_a_key_beside_the_cookie_is_not_looked_at(
    ada: User, browser: Browser, option: SetOption
) -> None:
    option("session_for_api_keys", "true")
    reply = browser.post("/sign-out", headers={"x-api-key": "unknown" * 10})
    assert (reply.status, reply.json) == (200, {"success": True})
    assert list_sessions(ada, now=clock.now()) == []
