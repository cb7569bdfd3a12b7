"""GET /api/auth/list-sessions"""

from datetime import timedelta

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import start_session
from tests.conftest import SetOption
from tests.requests import Browser, browser_of

DAY = timedelta(days=1)


def test_every_session_of_the_caller_newest_first(ada: User, bob: User, browser: Browser) -> None:
    now = clock.now()
    start_session(bob, now=now)
    old, _ = start_session(ada, now=now - DAY, ip_address="2001:db8::1", user_agent="Old/1.0")
    reply = browser.get("/list-sessions")
    assert reply.status == 200
    mine, other = reply.json
    assert mine == browser.get("/get-session").json["session"]
    assert list(other) == list(mine)
    assert (other["id"], other["ipAddress"], other["userAgent"]) == (old.id, "2001:db8::1", "Old/1.0")


def test_only_the_current_session_shows_its_token(ada: User, browser: Browser) -> None:
    _, others_token = start_session(ada, now=clock.now())
    reply = browser.get("/list-sessions")
    tokens = {one["id"]: one["token"] for one in reply.json}
    mine = browser.get("/get-session").json["session"]
    assert tokens.pop(mine["id"]) == mine["token"]
    (handle,) = tokens.values()
    assert others_token not in reply.body.decode()
    for stolen in ({"authorization": f"Bearer {handle}"}, {"authorization": f"Bearer {handle[:32]}"}):
        assert Browser().get("/get-session", headers=stolen).json is None


def test_the_id_shown_for_another_session_revokes_it(ada: User, browser: Browser) -> None:
    other = browser_of(ada)
    handle = next(
        one["token"]
        for one in browser.get("/list-sessions").json
        if one["id"] != browser.get("/get-session").json["session"]["id"]
    )
    assert browser.post("/revoke-session", {"token": handle}).json == {"status": True}
    assert other.get("/get-session").json is None
    assert len(browser.get("/list-sessions").json) == 1


def test_expired_and_revoked_sessions_are_not_listed(ada: User, browser: Browser) -> None:
    now = clock.now()
    start_session(ada, now=now - 8 * DAY)
    start_session(ada, remembered=False, now=now - DAY)
    assert len(browser.get("/list-sessions").json) == 1
    browser.post("/revoke-other-sessions")
    start_session(ada, now=now)  # with the user as it was read before
    assert len(browser.get("/list-sessions").json) == 1


def test_403_if_the_user_signed_in_too_long_ago(ada: User, option: SetOption) -> None:
    _, token = start_session(ada, now=clock.now() - DAY)
    assert browser_of(ada, token=token).get("/list-sessions").refusal == (403, "SESSION_NOT_FRESH")
    option("session_fresh_age_seconds", 2 * 86_400)
    assert browser_of(ada, token=token).get("/list-sessions").status == 200
