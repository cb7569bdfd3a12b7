"""POST /api/auth/revoke-other-sessions"""

from larder.accounts.models import User
from larder.instance import restart
from tests.requests import Browser, browser_of

PATH = "/revoke-other-sessions"


def test_every_other_session_of_the_caller_is_revoked(ada: User, browser: Browser) -> None:
    others = [browser_of(ada) for _ in range(3)]
    for one in others:
        assert one.get("/get-session").json
    reply = browser.post(PATH)
    assert (reply.status, reply.json, reply.cookies) == (200, {"status": True}, ())
    for _ in ("an instance that has cached the sessions", "another instance"):
        assert [one.get("/get-session").json for one in others] == [None] * 3
        assert browser.get("/get-session").json["user"]["id"] == ada.id
        restart()


def test_a_repeated_request_succeeds(browser: Browser) -> None:
    for _ in range(3):
        assert browser.post(PATH).json == {"status": True}
    assert browser.get("/get-session").json


def test_sessions_of_other_users_stay_valid(bob: User, browser: Browser) -> None:
    bobs_browser = browser_of(bob)
    browser.post(PATH)
    assert bobs_browser.get("/get-session").json["user"]["id"] == bob.id
