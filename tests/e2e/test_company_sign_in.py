"""People sign in with the provider of their company: real providers, a real browser, and the Better Auth client."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from . import better_auth, browser
from .browser import Browser
from .cloud import LocalCloud
from .example_company import ADA, BOB, choose

pytestmark = pytest.mark.e2e

SERVER_OPTIONS = {"PROVIDER": "1"}
PASSWORD = "correct horse battery"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    with browser.opened(tmp_path / "profile") as opened:
        yield opened


def test_an_account_is_linked_confirmed_and_unlinked_in_the_console(
    server: LocalCloud, page: Browser
) -> None:
    body = {"name": "Cy", "email": "cy@company.example", "password": PASSWORD}
    httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False)
    page.open(f"{server.url}/sign-in?next=/console/account")
    page.type("Email address", body["email"])
    page.type("Password", PASSWORD)
    page.press("Sign in")
    page.wait_for_heading("Your account")

    page.press("Link Example Company")
    choose(page, "Cy")
    page.wait_for_heading("Your account")
    page.wait_for_text("Ways to sign in")
    page.wait_until("return document.querySelector('[aria-label=\"Unlink Example Company\"]')")

    # Of another person, whose address is not this user's.
    page.run("document.querySelector('[aria-label=\"Unlink Example Company\"]').click()")
    page.press("Unlink the account")
    page.wait_until("return !document.querySelector('[aria-label=\"Unlink Example Company\"]')")
    page.press("Link Example Company")
    choose(page, "Mallory")
    page.wait_for_text("Your company account has another email address than this account.")
    assert "error" not in page.url
    assert page.errors() == []


def test_a_person_without_an_address_that_counts_gets_a_sentence(
    server: LocalCloud, page: Browser
) -> None:
    """Attack 19: the text of a code in the address is never shown."""
    body = {"name": "M", "email": "mallory@company.example", "password": PASSWORD}
    httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False)
    page.open(f"{server.url}/sign-in")
    page.press("Continue with Example Company")
    choose(page, "Mallory")
    page.wait_for_text("There is an account with your email address already.")
    page.open(f"{server.url}/sign-in")
    page.press("Continue with Example Company")
    page.wait_for_heading("Example Company")
    page.press("Cancel")
    page.wait_for_text("You canceled the sign-in at your company")
    page.open(f"{server.url}/sign-in?error=call_us_at_555&error_description=call+555")
    page.wait_for_heading("Sign in")
    assert "555" not in page.text()
    assert page.errors() == []


@pytest.fixture(params=better_auth.PACKAGES)
def open_client(
    request: pytest.FixtureRequest, server: LocalCloud
) -> Iterator[Callable[[], better_auth.Page]]:
    """Opens a page with the Better Auth client, in a new browser: the newest release, and 1.3.34."""
    tools = request.config.rootpath / ".tools" / "better-auth"
    folder = better_auth.installed(tools, request.param)
    with contextlib.ExitStack() as browsers:
        yield lambda: browsers.enter_context(better_auth.page(folder, server.url))


def test_the_better_auth_client_signs_in_links_lists_and_unlinks(
    server: LocalCloud, open_client: Callable[[], better_auth.Page]
) -> None:
    client = open_client()
    started = client.data("signIn.social", provider="example", callbackURL="/welcome?a=b")
    assert started["redirect"] is True
    # The client has moved the page to the provider, where the person is chosen.
    assert client.address == started["url"]
    assert client.open(f"{client.address}&person={ADA}") == f"{server.url}/welcome?a=b"
    assert client.cookies.keys() == {"better-auth.session_token"}
    ada = client.data("getSession")["user"]
    assert (ada["email"], ada["emailVerified"]) == ("ada@company.example", True)
    (account,) = client.data("listAccounts")
    assert (account["providerId"], account["accountId"]) == ("example", ADA)
    assert account["issuer"].endswith("/_local/provider")
    refused = client.error("unlinkAccount", providerId="example", accountId=account["id"])
    assert refused == (400, "FAILED_TO_UNLINK_LAST_ACCOUNT")

    other = open_client()
    email = "bob@company.example"
    server.larder("users", "delete", "ada@company.example", "--yes")
    other.data("signUp.email", name="Bob", email=email, password=PASSWORD)
    linked = other.data("linkSocial", provider="example", callbackURL="/linked")
    assert other.open(f"{linked['url']}&person={BOB}") == f"{server.url}/linked"
    found = {one["providerId"]: one for one in other.data("listAccounts")}
    assert found.keys() == {"credential", "example"}
    chosen = {"providerId": "example", "accountId": found["example"]["id"]}
    assert other.data("unlinkAccount", **chosen) == {"status": True}
    assert [one["providerId"] for one in other.data("listAccounts")] == ["credential"]
    server.larder("users", "delete", email, "--yes")


def test_the_better_auth_client_gets_an_error_for_an_unknown_provider(
    open_client: Callable[[], better_auth.Page],
) -> None:
    client = open_client()
    assert client.error("signIn.social", provider="nobody") == (404, "PROVIDER_NOT_FOUND")
