"""A browser signs up, verifies, signs in, stays signed in and resets the password, on plain http."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from . import browser
from .browser import Browser
from .cloud import LocalCloud

pytestmark = pytest.mark.e2e

SERVER_OPTIONS = {"LARDER_REQUIRE_EMAIL_VERIFICATION": "true"}

SESSION = "better-auth.session_token"
DONT_REMEMBER = "better-auth.dont_remember"
WEEK_SECONDS = 7 * 86_400
CLOCK_SECONDS = 120
# The browser gets here after a link in mail: a page of Larder's own origin, like the page of an integrator.
PAGE = "/api/auth/ok"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return tmp_path / "profile"


@pytest.fixture(params=["localhost", pytest.param("127.0.0.1", marks=pytest.mark.thorough)])
def site(request: pytest.FixtureRequest, server: LocalCloud) -> str:
    """The server's origin with one of its names."""
    return f"http://{request.param}:{server.port}"


@pytest.fixture
def person() -> Person:
    return Person(f"ada-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12))


@dataclass(frozen=True)
class Person:
    email: str
    password: str


def post(page: Browser, path: str, **body: Any) -> tuple[int, Any]:
    """The reply to the script of the page, for a JSON request to its own server."""
    headers = {"content-type": "application/json"}
    reply = page.fetch(path, method="POST", headers=headers, body=json.dumps(body))
    return reply.status, json.loads(reply.text)


def signed_in_as(page: Browser) -> str | None:
    """The email of the user that the server sees from the browser's cookies."""
    reply = page.fetch("/api/auth/get-session")
    assert reply.status == 200
    session = json.loads(reply.text)
    return session and session["user"]["email"]


def sign_in(page: Browser, person: Person, **options: Any) -> None:
    credentials = {"email": person.email, "password": person.password}
    status, answer = post(page, "/api/auth/sign-in/email", **credentials, **options)
    assert (status, answer["user"]["email"]) == (200, person.email)


def sign_up_and_verify(page: Browser, site: str, person: Person) -> None:
    """Click the link in the frame that shows the mail to its reader."""
    page.open(site + PAGE)
    new = {"name": "Ada", "email": person.email, "password": person.password, "callbackURL": PAGE}
    status, answer = post(page, "/api/auth/sign-up/email", **new)
    assert (status, answer["token"], page.cookies()) == (200, None, {})
    page.open_when_there(site + "/_local/outbox", person.email, "Verify your address")
    page.enter_frame()
    assert page.run("return self.origin") == "null"
    assert f"the address {person.email}" in page.text()
    page.follow_to_new_window("Verify your address")
    # The new window does not have the frame's sandbox, and gets no referrer.
    assert page.run("return [self.origin, document.referrer, self.opener]") == [site, "", None]
    assert page.url == site + PAGE


@pytest.mark.thorough
def test_a_session_lasts_until_the_password_is_reset(
    server: LocalCloud, profile: Path, site: str, person: Person
) -> None:
    with browser.opened(profile) as page:
        page.open(site + PAGE)
        credentials = {"email": person.email, "password": person.password}
        sign_up_and_verify(page, site, person)
        assert signed_in_as(page) is None

        sign_in(page, person)
        kept = page.cookies()
        assert list(kept) == [SESSION]
        cookie = kept[SESSION]
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Lax", False)
        assert (cookie["path"], cookie["domain"]) == ("/", urlsplit(site).hostname)
        assert abs(cookie["expiry"] - time.time() - WEEK_SECONDS) < CLOCK_SECONDS
        assert page.run("return document.cookie") == ""
        assert signed_in_as(page) == person.email

        server.restart()
        assert signed_in_as(page) == person.email

    with browser.opened(profile) as page:
        page.open(site + PAGE)
        assert signed_in_as(page) == person.email

        status, _ = post(page, "/api/auth/request-password-reset", email=person.email, redirectTo=PAGE)
        assert status == 200
        page.open_when_there(site + "/_local/outbox", person.email, "Reset your password")
        page.follow(f"{site}/api/auth/reset-password/")
        (token,) = parse_qs(urlsplit(page.url).query)["token"]
        assert page.url == f"{site}{PAGE}?token={token}"
        changed = Person(person.email, secrets.token_hex(12))
        assert post(page, "/api/auth/reset-password", newPassword=changed.password, token=token) == (
            200,
            {"status": True},
        )
        assert page.cookies() == kept
        assert signed_in_as(page) is None

        status, answer = post(page, "/api/auth/sign-in/email", **credentials)
        assert (status, answer["code"]) == (401, "INVALID_EMAIL_OR_PASSWORD")
        sign_in(page, changed)
        assert signed_in_as(page) == person.email
        assert post(page, "/api/auth/sign-out") == (200, {"success": True})
        assert page.cookies() == {}
        assert signed_in_as(page) is None


def test_a_session_without_remember_me_ends_with_the_browser(server: LocalCloud, profile: Path, person: Person) -> None:
    site = f"http://localhost:{server.port}"
    with browser.opened(profile) as page:
        sign_up_and_verify(page, site, person)
        sign_in(page, person, rememberMe=False)
        kept = page.cookies()
        assert set(kept) == {SESSION, DONT_REMEMBER}
        for cookie in kept.values():
            assert "expiry" not in cookie
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        assert signed_in_as(page) == person.email

    with browser.opened(profile) as page:
        page.open(site + PAGE)
        assert page.cookies() == {}
        assert signed_in_as(page) is None


def test_pages_of_other_origins_cannot_use_the_cookies(
    server: LocalCloud, profile: Path, person: Person, other_port: int
) -> None:
    """Another port belongs to the same site, so the browser sends the cookies. Another name is another site."""
    site = f"http://localhost:{server.port}"
    neighbour, stranger = f"http://localhost:{other_port}", f"http://127.0.0.1:{other_port}"
    with browser.opened(profile) as page:
        sign_up_and_verify(page, site, person)
        sign_in(page, person)
        kept = page.cookies()

        for other, carried, refusal in ((neighbour, kept, 403), (stranger, {}, 401)):
            page.open(other)
            assert page.cookies() == carried
            assert page.fetch(f"{site}/api/auth/get-session").type == "error"
            # A script can send this without a CORS preflight. Only the server can refuse it.
            mark = server.log_size()
            for path in ("sign-out", "revoke-sessions"):
                sent = page.fetch(f"{site}/api/auth/{path}", method="POST", mode="no-cors")
                assert (sent.type, sent.text) == ("opaque", "")
            # JSON needs a CORS preflight, which Larder refuses.
            as_json = {"headers": {"content-type": "application/json"}, "body": '{"name":"Mallory"}'}
            changed = page.fetch(f"{site}/api/auth/update-user", method="POST", **as_json)
            assert changed.type == "error"
            arrived = server.requests_since(mark)
            posts = {one.path: one.status for one in arrived if one.method == "POST"}
            assert posts["/api/auth/revoke-sessions"] == refusal
            assert "/api/auth/update-user" not in posts

        credentials = {"email": person.email, "password": person.password}
        for other, path, fields, code in (
            (neighbour, "sign-in/email", credentials, "INVALID_ORIGIN"),
            (neighbour, "sign-out", {}, "INVALID_ORIGIN"),
            (stranger, "sign-in/email", credentials, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"),
            (stranger, "sign-out", {}, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"),
        ):
            page.open(other)
            page.submit(f"{site}/api/auth/{path}", fields)
            assert json.loads(page.text()).get("code") == code, (other, path, page.cookies())

        page.open(site + PAGE)
        assert page.cookies() == kept
        assert signed_in_as(page) == person.email
