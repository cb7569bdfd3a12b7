"""GET /api/auth/get-session"""

from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote, unquote

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import find_session, revoke_session, start_session
from larder.instance import restart
from larder.signing import sign
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.proofs.aws_calls import counted
from tests.requests import SESSION_COOKIE, Browser, Reply, browser_of

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def has_no_session(reply: Reply) -> bool:
    return (reply.status, reply.body, reply.cookies) == (200, b"null", ())


def has_ended(reply: Reply) -> bool:
    """The cookies are deleted, so that no page takes them for a session."""
    deleted = sum("Max-Age=0" in cookie for cookie in reply.cookies)
    return (reply.status, reply.body, deleted) == (200, b"null", 3)


def signed_in(user: User, age: timedelta, *, remembered: bool = True) -> Browser:
    """A browser where the user signed in `age` ago."""
    _, token = start_session(user, remembered=remembered, now=clock.now() - age)
    return browser_of(user, token=token)


def test_it_returns_the_user_and_the_session(ada: User, browser: Browser) -> None:
    reply = browser.get("/get-session")
    assert reply.status == 200
    assert list(reply.json) == ["session", "user"]
    assert reply.json["user"]["id"] == ada.id
    session = reply.json["session"]
    assert list(session) == [
        "id", "token", "userId", "expiresAt", "createdAt", "updatedAt", "ipAddress", "userAgent",
    ]  # fmt: skip
    assert (session["userId"], session["createdAt"]) == (ada.id, session["updatedAt"])
    assert unquote(browser.cookies[SESSION_COOKIE]).startswith(f"{session['token']}.")


def test_without_a_session_the_reply_is_null(aws_in_memory: None) -> None:
    assert has_no_session(Browser().get("/get-session"))


def test_a_bearer_token_works_like_a_cookie(ada: User) -> None:
    _, token = start_session(ada, now=clock.now())
    reply = Browser().get("/get-session", headers={"authorization": f"Bearer {token}"})
    assert (reply.json["session"]["token"], reply.cookies) == (token, ())


# Which cookies are accepted ---------------------------------------------------------------------


def cookie(browser: Browser) -> tuple[str, str]:
    """Token and signature."""
    token, _, signature = unquote(browser.cookies[SESSION_COOKIE]).rpartition(".")
    return token, signature


def test_over_https_a_cookie_without_the_prefix_is_ignored(browser: Browser) -> None:
    # A page on another port or a subdomain could have set it.
    browser.cookies = {"better-auth.session_token": browser.cookies[SESSION_COOKIE]}
    assert has_no_session(browser.get("/get-session"))


def test_over_http_only_the_cookie_without_the_prefix_is_accepted(browser: Browser) -> None:
    value = browser.cookies[SESSION_COOKIE]
    browser.https = False
    assert has_no_session(browser.get("/get-session"))
    browser.cookies = {"better-auth.session_token": value}
    assert browser.get("/get-session").json["user"]["name"] == "Ada"


def test_a_forged_signature_is_ignored(browser: Browser) -> None:
    token, signature = cookie(browser)
    other = sign("another token")
    for forged in ("", "x", signature[:-2], f"{signature}=", signature.swapcase(), other, "\u00e9"):
        browser.cookies = {SESSION_COOKIE: quote(f"{token}.{forged}", safe="")}
        assert has_no_session(browser.get("/get-session"))


@pytest.mark.parametrize(
    "value", ["", ".", "..", "null", "%", "%00", "%ff%fe", "%ED%A0%80.x", "x" * 8000, "a.b;Path=/", '"a.b"']
)
def test_a_malformed_cookie_is_ignored(aws_in_memory: None, value: str) -> None:
    browser = Browser(cookies={SESSION_COOKIE: value})
    assert has_no_session(browser.get("/get-session"))


def test_a_signed_token_of_no_session_is_ignored(aws_in_memory: None) -> None:
    for token in ("A" * 32, "short", "../../etc", "a.b"):
        value = quote(f"{token}.{sign(token)}", safe="")
        assert has_ended(Browser(cookies={SESSION_COOKIE: value}).get("/get-session"))


def test_a_cookie_signed_with_the_previous_secret_is_accepted(ada: User, option: SetOption) -> None:
    option("signing_secret", "the-old-secret")
    browser, absent = browser_of(ada), browser_of(ada)
    option("signing_secret", "the-new-secret,the-old-secret")
    assert browser.get("/get-session").json["user"]["id"] == ada.id
    option("signing_secret", "the-newest-secret,the-new-secret")
    assert has_no_session(absent.get("/get-session"))


def test_users_who_return_between_two_rotations_stay_signed_in(ada: User, option: SetOption) -> None:
    option("signing_secret", "one")
    for remembered in (True, False):
        browser = signed_in(ada, HOUR, remembered=remembered)
        option("signing_secret", "two,one")
        renewed = browser.get("/get-session").cookies
        assert renewed[0].startswith(f"{SESSION_COOKIE}=")
        assert len(renewed) == (1 if remembered else 2)
        assert ("Max-Age" in renewed[0]) is remembered
        assert browser.get("/get-session").cookies == ()
        option("signing_secret", "three,two")
        assert browser.get("/get-session").json["user"]["id"] == ada.id
        option("signing_secret", "one")


def test_a_bearer_token_or_a_forged_cookie_is_not_signed_again(ada: User, option: SetOption) -> None:
    option("signing_secret", "two,one")
    forged = Browser(cookies={SESSION_COOKIE: f"{'A' * 32}.forged"})
    assert has_no_session(forged.get("/get-session"))
    _, token = start_session(ada, now=clock.now())
    reply = forged.get("/get-session", headers={"authorization": f"Bearer {token}"})
    assert (reply.json["user"]["id"], reply.cookies) == (ada.id, ())


# Expiry ------------------------------------------------------------------------------------------


def test_a_revoked_session_is_refused_by_another_instance_at_the_next_request(ada: User, browser: Browser) -> None:
    token, _ = cookie(browser)
    assert browser.get("/get-session").json
    revoke_session(ada.id, token)
    again = replace(browser, cookies={**browser.cookies})
    assert has_ended(browser.get("/get-session"))
    restart()
    assert has_ended(again.get("/get-session"))


# A session in use is extended once a day -------------------------------------------------------


def test_a_session_in_use_is_extended_and_its_cookie_renewed(ada: User) -> None:
    browser = signed_in(ada, DAY + HOUR)
    before = browser.cookies[SESSION_COOKIE]
    reply = browser.get("/get-session")
    session = reply.json["session"]
    assert session["updatedAt"] > session["createdAt"]
    assert reply.cookies == (f"{SESSION_COOKIE}={before}; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax",)
    found = find_session(cookie(browser)[0], now=clock.now() + 6 * DAY)
    assert found is not None
    assert clock.to_iso(found[0].expires_at) == session["expiresAt"]


def test_a_session_is_extended_at_most_once_a_day(ada: User) -> None:
    browser = signed_in(ada, DAY + HOUR)
    assert browser.get("/get-session").cookies
    assert browser.get("/get-session").cookies == ()
    assert signed_in(ada, DAY - HOUR).get("/get-session").cookies == ()


def test_a_session_that_is_not_remembered_is_never_extended(ada: User, option: SetOption) -> None:
    option("session_update_age_seconds", 60)
    browser = signed_in(ada, HOUR, remembered=False)
    reply = browser.get("/get-session")
    assert reply.cookies == ()
    assert reply.json["session"]["updatedAt"] == reply.json["session"]["createdAt"]


def test_a_bearer_token_gets_no_cookie(ada: User) -> None:
    _, token = start_session(ada, now=clock.now() - DAY - HOUR)
    reply = Browser().get("/get-session", headers={"authorization": f"Bearer {token}"})
    assert reply.json["session"]["updatedAt"] > reply.json["session"]["createdAt"]
    assert reply.cookies == ()


# AWS calls --------------------------------------------------------------------------------------


def test_two_reads_and_one_when_the_instance_has_cached_the_session(browser: Browser) -> None:
    browser.get("/get-session")
    restart()
    for expected in (["GetItem", "BatchGetItem"], ["BatchGetItem"]):
        with counted() as calls:
            assert browser.get("/get-session").json
        assert [call.operation for call in calls.made] == expected


def test_a_forged_cookie_costs_no_call(aws_in_memory: None) -> None:
    browser = Browser(cookies={SESSION_COOKIE: f"{'A' * 32}.forged"})
    with counted() as calls:
        assert has_no_session(browser.get("/get-session"))
    assert calls.made == []


def test_an_unavailable_table_is_an_error_and_not_a_null_session(browser: Browser) -> None:
    with unreachable("dynamodb", "BatchGetItem"):
        assert browser.get("/get-session").refusal == (503, "TRY_AGAIN")
