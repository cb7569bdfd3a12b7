"""POST /api/auth/change-password"""

from functools import partial

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import check_credentials
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import verify
from tests.faults import answering, error
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, Sender, browser_of, invoke

PATH = "/change-password"
NEW = "another correct horse"
CHANGE = {"newPassword": NEW, "currentPassword": PASSWORD}


def test_the_new_password_replaces_the_old_one(ada: User, browser: Browser) -> None:
    reply = browser.post(PATH, CHANGE)
    assert (reply.status, reply.json["token"], reply.json["user"]["id"]) == (200, None, ada.id)
    assert reply.cookies == ()
    assert check_credentials(ada.email, NEW).id == ada.id


def test_other_sessions_stay_valid_by_default(ada: User, browser: Browser) -> None:
    elsewhere = browser_of(ada)
    browser.post(PATH, CHANGE)
    assert elsewhere.get("/get-session").json is not None


def test_other_sessions_are_revoked_on_request(ada: User, browser: Browser) -> None:
    elsewhere, before = browser_of(ada), browser_of(ada)
    before.cookies = dict(browser.cookies)
    reply = browser.post(PATH, {**CHANGE, "revokeOtherSessions": True})
    assert len(reply.json["token"]) == 32
    assert browser.get("/get-session").json["session"]["token"] == reply.json["token"]
    assert elsewhere.get("/get-session").json is None
    assert before.get("/get-session").json is None


def test_keys_stay_valid_by_default_and_are_ended_on_request(ada: User, browser: Browser) -> None:
    key, _ = create_key(NewKey(user_id=ada.id), now=clock.now())
    browser.post(PATH, CHANGE)
    assert verify(key.key_hash, {}, now=clock.now()).valid
    again = {"newPassword": "a third password", "currentPassword": NEW, "revokeApiKeys": True}
    assert browser.post(PATH, again).status == 200
    assert not verify(key.key_hash, {}, now=clock.now()).valid
    assert list_keys(ada.id) == []
    later, _ = create_key(NewKey(user_id=ada.id), now=clock.now())
    assert verify(later.key_hash, {}, now=clock.now()).valid


def test_a_failed_deletion_leaves_no_valid_key(ada: User, browser: Browser) -> None:
    _, raw = create_key(NewKey(user_id=ada.id), now=clock.now())
    status = partial(Sender(raw), "GET", "/v8/artifacts/status")
    assert status().status == 200
    with answering("dynamodb", "Query", error("InternalServerError", 500)):
        assert browser.post(PATH, {**CHANGE, "revokeApiKeys": True}).status == 200
    assert status().status == 401
    invoke("accounts.sweep_deleted_users.handler", {})
    assert list_keys(ada.id) == []


def test_the_new_session_keeps_the_remember_me_choice(ada: User) -> None:
    forgetful = Browser()
    forgetful.post("/sign-in/email", {"email": ada.email, "password": PASSWORD, "rememberMe": False})
    reply = forgetful.post(PATH, {**CHANGE, "revokeOtherSessions": True})
    assert not any("Max-Age" in cookie for cookie in reply.cookies)


def test_reset_links_for_the_old_password_stop_working(ada: User, browser: Browser) -> None:
    token = issue_reset_token(ada, now=clock.now())
    browser.post(PATH, CHANGE)
    reply = Browser().post("/reset-password", {"newPassword": "a third password", "token": token})
    assert reply.refusal == (400, "INVALID_TOKEN")


def test_the_current_password_is_required(ada: User, browser: Browser) -> None:
    reply = browser.post(PATH, {**CHANGE, "currentPassword": "wrong password"})
    assert reply.refusal == (400, "INVALID_PASSWORD")
    assert check_credentials(ada.email, PASSWORD).id == ada.id


@pytest.mark.parametrize(("password", "code"), [("x" * 7, "PASSWORD_TOO_SHORT"), ("x" * 129, "PASSWORD_TOO_LONG")])
def test_a_password_outside_the_length_limits_is_refused(browser: Browser, password: str, code: str) -> None:
    reply = browser.post(PATH, {**CHANGE, "newPassword": password})
    assert reply.refusal == (400, code)
    assert reply.json["message"].startswith("newPassword: must have 8 to 128 characters")
