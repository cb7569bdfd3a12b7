"""POST /api/auth/revoke-sessions"""

from larder.accounts.models import User
from larder.instance import restart
from tests.faults import unreachable
from tests.requests import Browser, browser_of

PATH = "/revoke-sessions"


def test_every_session_of_the_caller_is_revoked_including_this_one(ada: User, browser: Browser) -> None:
    browsers = [browser, *(browser_of(ada) for _ in range(3))]
    for one in browsers:
        assert one.get("/get-session").json
    reply = browser.post(PATH)
    assert (reply.status, reply.json) == (200, {"status": True})
    for _ in ("an instance that has cached the sessions", "another instance"):
        assert [one.get("/get-session").json for one in browsers] == [None] * 4
        restart()


def test_sessions_of_other_users_stay_valid(bob: User, browser: Browser) -> None:
    bobs_browser = browser_of(bob)
    browser.post(PATH)
    assert bobs_browser.get("/get-session").json["user"]["id"] == bob.id


def test_an_unavailable_table_is_an_error(browser: Browser) -> None:
    with unreachable("dynamodb", "TransactWriteItems"):
        assert browser.post(PATH).refusal == (503, "TRY_AGAIN")
    assert browser.get("/get-session").json
