"""POST /api/auth/revoke-other-sessions"""

from larder.accounts.models import User
from larder.instance import restart
from tests.requests import Browser, browser_of

PATH = "/revoke-other-sessions"


def test_every_session_of_the_caller_ends_but_this_one(ada: User, browser: Browser) -> None:
    others = [browser_of(ada) for _ in range(3)]
    for one in others:
        assert one.get("/get-session").json
    reply = browser.post(PATH)
    assert (reply.status, reply.json, reply.cookies) == (200, {"status": True}, ())
    for _ in ("an instance that has seen them", "another one"):
        assert [one.get("/get-session").json for one in others] == [None] * 3
        assert browser.get("/get-session").json["user"]["id"] == ada.id
        restart()


def test_again_is_as_good_as_once(browser: Browser) -> None:
    for _ in range(3):
        assert browser.post(PATH).json == {"status": True}
    assert browser.get("/get-session").json


def test_nobody_elses_ends(bob: User, browser: Browser) -> None:
    theirs = browser_of(bob)
    browser.post(PATH)
    assert theirs.get("/get-session").json["user"]["id"] == bob.id


def test_nobody_is_told_so(aws_in_memory: None) -> None:
    assert Browser().post(PATH).refusal == (401, "UNAUTHORIZED")
