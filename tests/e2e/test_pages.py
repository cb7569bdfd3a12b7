"""The pages in a browser: links in mail, use with only the keyboard, and attacks of other sites."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from . import cloud
from .browser import Browser
from .cloud import LocalCloud
from .outbox import link_in, mail_to

pytestmark = pytest.mark.e2e

SERVER_OPTIONS = {"LARDER_REQUIRE_EMAIL_VERIFICATION": "true"}

ASKED = urlencode({"redirect_uri": "http://127.0.0.1:9", "state": "a b&c=<d>"})
"""No process listens at this address. These tests do not give keys to turbo."""
CONSENT = "Let turbo use your cache?"


@pytest.fixture
def page(page: Browser) -> Iterator[Browser]:
    """A browser whose log must have no errors at the end of the test."""
    yield page
    assert page.errors() == []


@pytest.fixture
def site(request: pytest.FixtureRequest, server: LocalCloud) -> str:
    return f"http://{getattr(request, 'param', 'localhost')}:{server.port}"


@pytest.fixture
def email() -> str:
    return f"ada-{secrets.token_hex(6)}@acme.example"


def sign_up(page: Browser, server: LocalCloud, site: str, email: str, password: str) -> None:
    """Sign up at the page of `turbo login`, and open the link in the mail, which keeps the parameters of turbo."""
    page.open(f"{site}/turborepo/token?{ASKED}")
    fill_in_sign_up(page, email, password)
    (message,) = mail_to(server, email)
    page.open(link_in(message))
    page.wait_for_heading("Sign in")
    assert page.run("return location.pathname") == "/turborepo/token"
    assert page.run("return new URLSearchParams(location.search).get('state')") == "a b&c=<d>"


def fill_in_sign_up(page: Browser, email: str, password: str) -> None:
    page.press("Create one")
    page.wait_for_heading("Create an account")
    page.type("Your name", "Ada")
    page.type("Email address", email)
    page.type("Password", password)
    page.press("Create account")
    page.wait_for_heading("Check your email")
    assert email in page.text()


def sign_in(page: Browser, email: str, password: str) -> None:
    page.wait_for_heading("Sign in")
    page.type("Email address", email)
    page.type("Password", password)
    page.press("Sign in")


@pytest.mark.parametrize("site", ["127.0.0.1"], indirect=True)
def test_sign_up_verification_consent_and_password_reset(
    server: LocalCloud, page: Browser, site: str, email: str
) -> None:
    password = secrets.token_hex(12)
    sign_up(page, server, site, email, password)
    sign_in(page, email, password)
    page.wait_for_heading(CONSENT)
    page.press("Not you? Sign out")
    page.wait_for_heading("Sign in")

    page.press("Forgot your password?")
    page.wait_for_heading("Reset your password")
    page.type("Email address", email)
    page.press("Send the link")
    page.wait_for_heading("Check your email")
    page.open(link_in(mail_to(server, email, count=2)[1]))
    page.wait_for_heading("Choose a password")
    # Only the script has the token.
    assert page.url == f"{site}/reset-password"
    # Password managers store the new password for this address.
    username = "document.querySelector('#choose-form [autocomplete=username]')"
    assert page.run(f"return {username}.checkVisibility() && {username}.value") == email
    changed = secrets.token_hex(12)
    page.type("New password", changed)
    page.press("Change the password")
    page.wait_for_heading("Password changed")

    page.open(f"{site}/turborepo/token?{ASKED}")
    sign_in(page, email, password)
    page.wait_for_text("The email address or the password is wrong.")
    sign_in(page, email, changed)
    page.wait_for_heading(CONSENT)


@pytest.mark.thorough
def test_a_change_of_address_is_confirmed_with_a_button(
    server: LocalCloud, page: Browser, site: str, email: str
) -> None:
    password, new = secrets.token_hex(12), f"new-{email}"
    sign_up(page, server, site, email, password)
    sign_in(page, email, password)
    page.wait_for_heading(CONSENT)
    json_type = {"content-type": "application/json"}
    body = json.dumps({"newEmail": new})
    reply = page.fetch("/api/auth/change-email", method="POST", headers=json_type, body=body)
    assert reply.status == 200
    page.open(link_in(mail_to(server, email, count=2)[1]))
    page.wait_for_heading("Change your address?")
    # Only the script has the token.
    assert page.url == f"{site}/verified"
    page.press("Change the address")
    page.wait_for_heading("One more step")
    page.open(link_in(mail_to(server, new)[0]))
    page.wait_for_heading("Email address verified")


@pytest.mark.thorough
def test_used_or_broken_links_are_errors_and_offer_a_new_one(
    server: LocalCloud, page: Browser, site: str, email: str
) -> None:
    password = secrets.token_hex(12)
    page.open(f"{site}/verified?error=invalid_token")
    page.wait_for_heading("This link does not work")
    page.type("Email address", email)
    page.press("Send a new link")
    page.wait_for_heading("Check your email")

    sign_up(page, server, site, email, password)
    for spent in ("A" * 24, "x"):
        page.open(f"{site}/reset-password?token={spent}")
        page.wait_for_heading("Choose a password")
        page.type("New password", password)
        page.press("Change the password")
        page.wait_for_heading("Reset your password")
        assert "The link is not valid, was already used or has expired" in page.text()
    page.open(f"{site}/turborepo/token?{ASKED}&error=invalid_token")
    page.wait_for_heading("Sign in")
    assert "The link has expired or is incomplete" in page.text()


@pytest.mark.thorough
def test_everything_can_be_done_by_keyboard(server: LocalCloud, page: Browser, site: str, email: str) -> None:
    password = secrets.token_hex(12)
    sign_up(page, server, site, email, password)
    page.keys(Keys.TAB)
    page.keys(email, Keys.TAB)
    page.keys(password, Keys.TAB)
    page.keys(Keys.SPACE, Keys.ENTER)
    page.wait_for_heading(CONSENT)
    # The heading has the focus, so that screen readers read it. The next stop is the link to leave.
    assert page.run("return document.activeElement.textContent") == CONSENT
    stops = []
    for _ in range(5):
        page.keys(Keys.TAB)
        stops.append(page.run("const at = document.activeElement; return at.id || at.type || at.tagName"))
    assert stops == ["not-you", "consent-name-field", "SUMMARY", "submit", "cancel"]
    page.keys(Keys.ENTER)
    page.wait_for_heading("Login canceled")


def test_a_problem_is_shown_at_the_field_that_it_names(page: Browser, site: str, email: str) -> None:
    focused = "return document.activeElement.id"
    page.open(f"{site}/turborepo/token?{ASKED}")
    sign_in(page, email, "not the password")
    page.wait_for_text("The email address or the password is wrong.")
    assert page.run(focused) == "sign-in-password"
    assert page.run("return getSelection().toString()") != ""

    page.press("Create one")
    page.wait_for_heading("Create an account")
    # The address is kept, and nothing that was wrong in the other form.
    assert page.run("return document.getElementById('sign-up-email').value") == email
    page.type("Your name", "Ada\u202e")
    page.type("Email address", "ada")
    page.type("Password", secrets.token_hex(12))
    page.press("Create account")
    page.wait_for_text("Your name must have 1 to 100 characters and no control characters.")
    assert page.run(focused) == "sign-up-name"
    page.type("Your name", "Ada")
    page.press("Create account")
    page.wait_for_text("Enter an email address, such as ada@example.com.")
    assert page.run(focused) == "sign-up-email"
    # Screen readers read the rule with its field.
    assert page.run(
        "return [...document.querySelectorAll('[aria-invalid]')].map((field) =>"
        " document.getElementById(field.getAttribute('aria-describedby')).textContent)"
    ) == ["Enter an email address, such as ada@example.com."]

    page.run("history.back()")
    page.wait_for_heading("Sign in")
    assert page.run("return document.getElementById('sign-in-password').value") == ""
    assert "is wrong" not in page.text()


def test_a_button_keeps_the_focus_and_says_what_happens_while_it_waits(page: Browser, site: str, email: str) -> None:
    page.open(f"{site}/turborepo/token?{ASKED}")
    page.wait_for_heading("Sign in")
    page.run("window.fetch = () => new Promise((resolve) => (window.finish = resolve))")
    page.type("Email address", email)
    page.type("Password", "a password", Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER)
    page.wait_for_text("Signing in …")
    state = "const at = document.activeElement; return [at.type, at.ariaDisabled, at.form.ariaBusy]"
    assert page.run(state) == ["submit", "true", "true"]
    page.run("finish(new Response('{}', {status: 503}))")
    page.wait_for_text("The server replied with status 503.")
    assert page.run(state) == ["submit", "false", "false"]


def test_a_password_can_be_shown_and_commands_copied(page: Browser, site: str) -> None:
    page.open(f"{site}/turborepo/token?{ASKED}")
    page.wait_for_heading("Sign in")
    page.type("Password", "a password")
    page.tick("Show password")
    assert page.run("return document.getElementById('sign-in-password').type") == "text"
    page.open(f"{site}/")
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.run("document.querySelector('.copy').click()")
    page.wait_for_text("Copied")
    assert page.run("return copied") == f"turbo login --api {site} --login {site}"


@pytest.mark.parametrize(
    "redirect_uri", ["https://evil.example", "http://127.0.0.1:9@evil.example", "javascript:alert(1)", ""]
)
def test_a_callback_to_another_computer_is_refused_before_sign_in(
    page: Browser, server: LocalCloud, redirect_uri: str
) -> None:
    page.open(f"{server.url}/turborepo/token?{urlencode({'redirect_uri': redirect_uri})}")
    page.wait_for_heading("This link does not work")
    assert "No key was created" in page.text()


@pytest.mark.thorough
def test_a_page_redirects_to_the_base_url_before_sign_in(
    request: pytest.FixtureRequest, page: Browser, tmp_path: Path
) -> None:
    port = cloud.free_port()
    options = {"LARDER_BASE_URL": f"http://LOCALHOST:{port}/"}
    home = LocalCloud(request.config.rootpath, tmp_path / "data", port, options)
    home.data.mkdir()
    home.start()
    try:
        page.open(f"http://127.0.0.1:{port}/turborepo/token?{ASKED}")
        page.wait_for_heading("Sign in")
        assert page.url == f"http://localhost:{port}/turborepo/token?{ASKED}"
    finally:
        home.stop()


def test_pages_of_other_origins_cannot_consent_for_a_user(
    server: LocalCloud, page: Browser, email: str, other_port: int
) -> None:
    """Another port belongs to the same site, so the browser sends the cookies. Another name is another site."""
    site, password = f"http://localhost:{server.port}", secrets.token_hex(12)
    body = json.dumps({"redirectUri": "http://127.0.0.1:9", "name": "mine"})
    sign_up(page, server, site, email, password)
    sign_in(page, email, password)
    page.wait_for_heading(CONSENT)
    for neighbour, arrived in (("localhost", 415), ("127.0.0.1", 415)):
        page.open(f"http://{neighbour}:{other_port}/")
        mark = server.log_size()
        address = f"{site}/api/auth/turbo-login"
        assert page.fetch(f"{address}?{ASKED}").type == "error"
        as_json = {"headers": {"content-type": "application/json"}, "body": body}
        # JSON needs a CORS preflight, which is refused. Text is sent without one.
        assert page.fetch(address, method="POST", **as_json).type == "error"
        page.fetch(address, method="POST", mode="no-cors", body=body)
        posts = [request for request in server.requests_since(mark) if request.method == "POST"]
        assert [post.status for post in posts] == [arrived]
        page.open(f"http://{neighbour}:{other_port}/?{site}/turborepo/token?{ASKED}")
        page.enter_frame()
        assert CONSENT not in page.text()
        assert page.heading() == ""
    page.open(f"{site}/turborepo/success")
    assert page.fetch("/api/auth/api-key/list").text == "[]"
    assert page.errors()  # of the requests that were refused


@pytest.mark.thorough
def test_an_invitation_of_another_address_is_refused_with_the_reason(
    server: LocalCloud, page: Browser, site: str, email: str
) -> None:
    other, password = f"bob-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12)
    server.larder("teams", "invite", server.team, other, "--role", "MEMBER")
    sign_up(page, server, site, email, password)
    sign_in(page, email, password)
    page.wait_for_heading(CONSENT)
    (message,) = mail_to(server, other)
    page.open(link_in(message).replace(server.url, site))
    page.press("Join the team")
    page.wait_for_text("sent to another email address")
    assert page.heading() == "Join the team?"
    page.press("Not you? Sign out")
    page.wait_for_heading("Sign in")
