"""POST /api/auth/sign-in/email"""

from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest

from larder import clock
from larder.accounts.email_jobs import VerifyEmail
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.signing import sign
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import DOMAIN, Browser, Reply

PATH = "/sign-in/email"
WRONG = (401, "INVALID_EMAIL_OR_PASSWORD")


def sign_in(browser: Browser | None = None, /, **fields: Any) -> Reply:
    body = {"email": "ada@example.com", "password": PASSWORD, **fields}
    return (browser or Browser()).post(PATH, body)


def test_the_right_password_signs_in(ada: User) -> None:
    browser = Browser()
    reply = sign_in(browser)
    assert reply.status == 200
    assert list(reply.json) == ["redirect", "token", "user"]
    assert reply.json["redirect"] is False
    assert (reply.json["user"]["id"], reply.json["user"]["email"]) == (ada.id, ada.email)
    assert "location" not in reply.headers
    assert browser.get("/get-session").json["session"]["token"] == reply.json["token"]


def test_each_sign_in_starts_a_new_session(ada: User) -> None:
    first, second = Browser(), Browser()
    assert sign_in(first).json["token"] != sign_in(second).json["token"]
    assert first.get("/get-session").json["user"] == second.get("/get-session").json["user"]


@pytest.mark.parametrize("email", ["ADA@example.com", " ada@EXAMPLE.com", "ada@\uff45xample.com"])
def test_the_spelling_of_the_address_does_not_matter(ada: User, email: str) -> None:
    assert sign_in(email=email).json["user"]["id"] == ada.id


def test_the_cookie_byte_for_byte(ada: User) -> None:
    reply = sign_in()
    token = reply.json["token"]
    value = quote(f"{token}.{sign(token)}", safe="")
    assert reply.cookies == (
        f"__Secure-better-auth.session_token={value}; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax",
    )


def test_the_cookies_of_a_session_that_is_not_remembered_byte_for_byte(ada: User) -> None:
    reply = sign_in(rememberMe=False)
    token = reply.json["token"]
    value, forgets = (quote(f"{text}.{sign(text)}", safe="") for text in (token, "true"))
    attributes = "Path=/; HttpOnly; Secure; SameSite=Lax"
    assert reply.cookies == (
        f"__Secure-better-auth.session_token={value}; {attributes}",
        f"__Secure-better-auth.dont_remember={forgets}; {attributes}",
    )


def test_over_http_cookies_have_no_prefix_and_no_secure_attribute(ada: User) -> None:
    for cookie in sign_in(Browser(https=False), rememberMe=False).cookies:
        assert cookie.startswith("better-auth.")
        assert "Secure" not in cookie


def test_the_cookie_lives_as_long_as_the_session(ada: User, option: SetOption) -> None:
    option("session_expires_in_seconds", 3600)
    assert "; Max-Age=3600;" in sign_in().cookies[0]


@pytest.mark.parametrize("url", ["/builds", "/builds?from=mail#today", f"https://{DOMAIN}/builds", "/sign%20in"])
def test_the_reply_is_200_with_the_callback_as_url(ada: User, url: str) -> None:
    reply = sign_in(callbackURL=url)
    assert (reply.status, reply.headers["location"]) == (200, url)
    assert list(reply.json) == ["redirect", "token", "url", "user"]
    assert (reply.json["redirect"], reply.json["url"]) == (True, url)


def test_an_option_allows_callbacks_to_any_origin(ada: User, option: SetOption) -> None:
    option("trusted_origins", "https://*.example.org")
    assert sign_in(callbackURL="https://app.example.org/x").json["redirect"] is True


# Refusals do not reveal the reason --------------------------------------------------------------


@pytest.fixture
def without_password(aws_in_memory: None) -> User:
    return create_user("command@example.com", "Made by command", now=clock.now())


@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com", "command@example.com"])
@pytest.mark.parametrize("password", ["wrong password", "", "\x00", "short"])
def test_a_wrong_password_an_unknown_address_and_no_password_get_the_same_reply(
    ada: User, without_password: User, email: str, password: str
) -> None:
    expected = sign_in(email="unknown@example.com", password="unknown password")
    reply = sign_in(email=email, password=password)
    assert reply.refusal == WRONG
    assert reply == expected


@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com", "command@example.com"])
def test_every_refusal_takes_one_read_and_one_hash(
    ada: User, without_password: User, hashes: list[int], email: str
) -> None:
    sign_in(email="unknown@example.com")
    hashes.clear()
    with counted() as calls:
        assert sign_in(email=email, password="wrong password").refusal == WRONG
    assert [call.operation for call in calls.made] == ["TransactGetItems"]
    assert hashes == [1024]


def test_a_sign_in_takes_one_hash_and_three_calls_including_the_rate_limit(
    ada: User, option: SetOption, hashes: list[int]
) -> None:
    option("http_rate_limit_enabled", "true")
    with counted() as calls:
        assert sign_in().status == 200
    made = [call.operation for call in calls.made]
    assert made == ["UpdateItem", "TransactGetItems", "TransactWriteItems"]
    assert hashes == [1024]


def test_the_default_hash_is_the_same_as_in_better_auth(
    aws_in_memory: None, option: SetOption, hashes: list[int]
) -> None:
    option("scrypt_cost", 16384)
    create_user("ada@example.com", "Ada", password=PASSWORD, now=clock.now())
    hashes.clear()
    assert sign_in().status == 200
    assert hashes == [16384]


def test_a_fourth_attempt_in_ten_seconds_must_wait(ada: User, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    replies = [sign_in(password="wrong") for _ in range(8)]
    counts = Counter(reply.status for reply in replies)
    assert counts[429] >= 2  # a window can end in between
    refused = next(reply for reply in replies if reply.status == 429)
    assert "code" not in refused.json
    assert 1 <= int(refused.headers["x-retry-after"]) <= 10


# Unverified addresses ---------------------------------------------------------------------------


@pytest.fixture
def verification(option: SetOption) -> None:
    option("require_email_verification", "true")


def test_an_option_requires_a_verified_address(ada: User, verification: None, mailbox: Mailbox) -> None:
    reply = sign_in(callbackURL="/builds")
    assert (reply.refusal, reply.cookies) == ((403, "EMAIL_NOT_VERIFIED"), ())
    (job,) = mailbox.jobs
    assert isinstance(job, VerifyEmail)
    assert (job.email, job.callback_url) == ("ada@example.com", "/builds")


def test_each_attempt_sends_the_verification_link(ada: User, verification: None, mailbox: Mailbox) -> None:
    for _ in range(2):
        assert sign_in().status == 403
    assert len(mailbox.deliver()) == 2


@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com"])
def test_only_the_right_password_reveals_that_the_address_is_unverified(
    ada: User, verification: None, mailbox: Mailbox, email: str
) -> None:
    assert sign_in(email=email, password="wrong password").refusal == WRONG
    assert mailbox.jobs == []


def test_a_verified_user_is_signed_in(aws_in_memory: None, verification: None, mailbox: Mailbox) -> None:
    create_user("ada@example.com", "Ada", password=PASSWORD, email_verified=True, now=clock.now())
    assert sign_in().status == 200
    assert mailbox.jobs == []


# Options, faults and bad requests ---------------------------------------------------------------


def test_signing_in_can_be_disabled(ada: User, option: SetOption) -> None:
    option("enable_email_and_password", "false")
    assert sign_in().refusal == (400, "EMAIL_PASSWORD_DISABLED")


def test_existing_users_can_sign_in_when_sign_up_is_disabled(ada: User, option: SetOption) -> None:
    option("sign_up_policy", "closed")
    option("allowed_email_domains", "elsewhere.example")
    assert sign_in().status == 200


def test_an_unavailable_table_is_not_reported_as_a_wrong_password(ada: User) -> None:
    with unreachable("dynamodb", "TransactGetItems"):
        assert sign_in().refusal == (503, "TRY_AGAIN")
    with unreachable("dynamodb", "TransactWriteItems"):
        reply = sign_in()
    assert (reply.refusal, reply.cookies) == ((503, "TRY_AGAIN"), ())


@pytest.mark.parametrize("password", ["x" * 129, "x" * 1_000_000, "\U0001f511" * 65])
@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com"])
def test_an_impossible_password_costs_no_hash(ada: User, hashes: list[int], email: str, password: str) -> None:
    assert sign_in(email=email, password=password).refusal == (400, "PASSWORD_TOO_LONG")
    assert hashes == []


def test_a_form_is_accepted_only_from_the_deployments_own_pages(ada: User) -> None:
    form = b"email=ada%40example.com&password=" + quote(PASSWORD).encode()
    form_headers = {"content-type": "application/x-www-form-urlencoded"}
    assert Browser().post(PATH, raw=form, headers=form_headers).status == 200
    elsewhere = {**form_headers, "origin": "https://evil.example"}
    assert Browser().post(PATH, raw=form, headers=elsewhere).refusal == (403, "INVALID_ORIGIN")
