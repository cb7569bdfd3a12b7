"""POST /api/auth/update-user"""

from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import check_credentials, find_user
from larder.accounts.sessions import start_session
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import SESSION_COOKIE, Browser, browser_of

PATH = "/update-user"
PICTURE = "https://pictures.example/ada.png"


def test_only_name_and_picture_change(ada: User, browser: Browser) -> None:
    reply = browser.post(PATH, {"name": "Ada Lovelace", "image": PICTURE})
    assert (reply.status, reply.json) == (200, {"status": True})
    shown = browser.get("/get-session").json["user"]
    assert (shown["name"], shown["image"]) == ("Ada Lovelace", PICTURE)
    assert shown["updatedAt"] >= shown["createdAt"]
    assert check_credentials(ada.email, PASSWORD).name == "Ada Lovelace"


def test_fields_that_are_not_sent_stay(browser: Browser) -> None:
    browser.post(PATH, {"image": PICTURE})
    browser.post(PATH, {"name": "Countess"})
    shown = browser.get("/get-session").json["user"]
    assert (shown["name"], shown["image"]) == ("Countess", PICTURE)


@pytest.mark.parametrize("none", [None, ""])
def test_a_picture_can_be_removed(browser: Browser, none: str | None) -> None:
    browser.post(PATH, {"image": PICTURE})
    browser.post(PATH, {"image": none})
    assert browser.get("/get-session").json["user"]["image"] is None


def test_the_reply_renews_the_cookie(browser: Browser) -> None:
    value = browser.cookies[SESSION_COOKIE]
    assert browser.post(PATH, {"name": "Ada"}).cookies == (
        f"{SESSION_COOKIE}={value}; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax",
    )


def test_the_cookie_of_a_session_that_is_not_remembered_stays_a_session_cookie(ada: User) -> None:
    _, token = start_session(ada, remembered=False, now=clock.now())
    cookies = browser_of(ada, token=token).post(PATH, {"name": "Ada"}).cookies
    assert len(cookies) == 2
    assert not [line for line in cookies if "Max-Age" in line]


@pytest.mark.parametrize("body", [{"email": "new@example.com"}, {"email": None, "name": "Ada"}])
def test_the_address_cannot_be_changed_here(browser: Browser, body: dict[str, Any]) -> None:
    assert browser.post(PATH, body).refusal == (400, "EMAIL_CAN_NOT_BE_UPDATED")


def test_internal_fields_of_the_body_are_ignored(ada: User, browser: Browser) -> None:
    fields = {"id": "root", "role": "admin", "emailVerified": True, "version": 9, "password": "x"}
    reply = browser.post(PATH, fields)
    assert reply.refusal == (400, "NO_FIELDS_TO_UPDATE")
    assert reply.json["message"] == "No fields to update"
    browser.post(PATH, {**fields, "name": "Ada"})
    user = find_user(ada.id)
    assert user is not None
    assert (user.email_verified, user.version) == (False, 1)
    assert check_credentials(ada.email, PASSWORD).id == ada.id


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\u2028", "\u202e", "\u2066"], ids=ascii)
def test_a_name_with_a_character_that_changes_a_terminal_or_a_mail_is_refused(browser: Browser, character: str) -> None:
    assert browser.post(PATH, {"name": f"Ada{character}Lovelace"}).status == 400
    assert browser.post(PATH, {"name": "Ada \u05e2\u05d3\u05d4"}).status == 200
