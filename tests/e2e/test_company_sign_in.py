"""People sign in with the provider of their company: real providers, a real browser, and the Better Auth client."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.oidc import servers

from . import better_auth
from .accessibility import problems
from .browser import Browser
from .cloud import LocalCloud
from .example_company import ADA, BOB, choose
from .outbox import link_to

pytestmark = pytest.mark.e2e

SERVER_OPTIONS = {"PROVIDER": "1"}
DAY_MS = 86_400_000
PASSWORD = "correct horse battery"


@pytest.fixture(params=servers.OF_TESTS)
def kind(request: pytest.FixtureRequest) -> str:
    """The name of a provider of the registries."""
    return str(request.param)


@pytest.fixture
def company(request: pytest.FixtureRequest, server: LocalCloud, kind: str, tmp_path: Path) -> Iterator[servers.Server]:
    """A company with such a provider, which the operator has added under the same name."""
    tools = request.config.rootpath / ".tools"
    with servers.added(kind, server, tools, tmp_path) as added:
        yield added


def user_of(page: Browser) -> dict[str, Any]:
    """The user that the server sees from the browser's cookies."""
    session = json.loads(page.fetch("/api/auth/get-session").text)
    user: dict[str, Any] = session["user"]
    return user


def test_a_person_signs_in_with_each_provider_and_lands_on_the_console(
    server: LocalCloud, page: Browser, kind: str, company: servers.Server
) -> None:
    """A new user, the same user again, an account that is taken over, and one that is linked and unlinked."""

    def sign_in(name: str) -> dict[str, Any]:
        page.forget_cookies()
        page.open(f"{server.url}/sign-in")
        page.press(f"Continue with {kind}")
        page.wait_until(f"return location.href.startsWith('{company.issuer}')")
        company.sign_in(page, name)
        page.wait_for_heading("Get started")
        return user_of(page)

    ada, again = sign_in("Ada"), sign_in("Ada")
    assert (ada["email"], ada["name"]) == (f"ada@{company.domain}", "Ada")
    assert ada["emailVerified"] is True
    assert again["id"] == ada["id"]
    assert not [name for name in page.cookies() if name.startswith("larder.sso")]

    body = {"name": "Bob", "email": f"bob@{company.domain}", "password": PASSWORD}
    stranger = httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False).json()
    # The address was not proven, so the person takes the account over.
    assert sign_in("Bob")["id"] == stranger["user"]["id"]
    headers = {"authorization": f"Bearer {stranger['token']}"}
    former = httpx.get(f"{server.url}/api/auth/get-session", headers=headers, trust_env=False)
    assert former.json() is None

    # A user with a password links the account, and unlinks it.
    cy = {"name": "Cy", "email": f"cy@{company.domain}", "password": PASSWORD}
    httpx.post(f"{server.url}/api/auth/sign-up/email", json=cy, trust_env=False)
    page.forget_cookies()
    page.open(f"{server.url}/sign-in?next=/console/account")
    page.type("Email address", cy["email"])
    page.type("Password", PASSWORD)
    page.press("Sign in")
    page.wait_for_heading("Your account")
    page.press(f"Link {kind}")
    page.wait_until(f"return location.href.startsWith('{company.issuer}')")
    company.sign_in(page, "Cy")
    unlink = f"document.querySelector('[aria-label=\"Unlink {kind}\"]')"
    page.wait_until(f"return location.href.startsWith('{server.url}') && {unlink}")
    page.run(f"{unlink}.click()")
    page.press("Unlink the account")
    page.wait_until(f"return !{unlink}")
    assert page.errors() == []


def test_an_account_is_linked_confirmed_and_unlinked_in_the_console(server: LocalCloud, page: Browser) -> None:
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


def test_a_person_without_an_address_that_counts_gets_a_sentence(server: LocalCloud, page: Browser, axe: str) -> None:
    """Attack 19: the text of a code in the address is never shown."""
    body = {"name": "M", "email": "mallory@company.example", "password": PASSWORD}
    httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False)
    page.open(f"{server.url}/sign-in")
    page.press("Continue with Example Company")
    choose(page, "Mallory")
    page.wait_for_text("There is an account with your email address already.")
    page.run(axe)
    assert problems(page) == []
    page.open(f"{server.url}/sign-in")
    page.press("Continue with Example Company")
    page.wait_for_heading("Example Company")
    page.press("Cancel")
    page.wait_for_text("You canceled the sign-in at your company")
    page.open(f"{server.url}/sign-in?error=call_us_at_555&error_description=call+555")
    page.wait_for_heading("Sign in")
    assert "555" not in page.text()
    assert page.errors() == []


def age_sessions(server: LocalCloud, user_id: str) -> None:
    """Move the user's sessions two days back, so that they are no longer fresh."""
    table = server.table("LARDER_IDENTITY_TABLE")
    for item in server.items("LARDER_IDENTITY_TABLE"):
        if item["pk"] == user_id and item["sk"].startswith("session#"):
            moved = {"created_at": item["created_at"] - 2 * DAY_MS}
            if item.get("authenticated_at"):
                moved["authenticated_at"] = item["authenticated_at"] - 2 * DAY_MS
            table.put_item(Item={**item, **moved})


def test_the_company_confirms_that_it_is_the_user(server: LocalCloud, page: Browser, axe: str) -> None:
    """A user without a password confirms before `turbo login`, and in the console."""
    redirect_uri = quote("http://127.0.0.1:9789", safe="")
    consent = f"{server.url}/turborepo/token?redirect_uri={redirect_uri}&state=abc"
    page.open(consent)
    page.press("Continue with Example Company")
    choose(page, "Ada")
    page.wait_for_heading("Let turbo use your cache?")
    assert "Confirm with Example Company" not in page.text()

    age_sessions(server, user_of(page)["id"])
    page.open(consent)
    page.wait_for_heading("Let turbo use your cache?")
    assert "Send the key to turbo" not in page.text()
    page.run(axe)
    assert problems(page) == []
    page.press("Confirm with Example Company")
    choose(page, "Ada")
    page.wait_for_heading("Let turbo use your cache?")
    assert "Send the key to turbo" in page.text()

    age_sessions(server, user_of(page)["id"])
    page.open(f"{server.url}/console/account")
    page.press("Confirm with Example Company")
    choose(page, "Ada")
    page.wait_for_text("this one")
    assert page.errors() == []


@pytest.mark.thorough
def test_the_console_marks_members_by_group(server: LocalCloud, page: Browser) -> None:
    """They cannot be changed there, because the next sign-in would undo it."""

    def sign_in(name: str) -> None:
        page.forget_cookies()
        page.open(f"{server.url}/sign-in")
        page.press("Continue with Example Company")
        choose(page, name)
        page.wait_for_heading("Get started")

    sign_in("Ada")
    slug = f"team-{secrets.token_hex(4)}"
    owner = ["--owner", "ada@company.example"]
    server.larder("teams", "create", "--name", "Acme", "--slug", slug, *owner)
    grace = f"grace-{slug}@other.example"
    server.larder("users", "create", "--email", grace, "--name", "Grace")
    server.larder("teams", "add-member", slug, grace, "--unverified")
    mapping = ["--team", slug, "--role", "DEVELOPER"]
    server.larder("sso", "map", "example", "--group", "eng", *mapping)
    sign_in("Bob")
    sign_in("Ada")

    page.open(f"{server.url}/console/t/{slug}/members")
    page.wait_for_text("Roles by group")
    assert page.text().count("Example Company: eng") == 2  # Bob, and the role of the group.
    shown = page.run("return [...document.querySelectorAll('main [aria-label]')].map((one) => one.ariaLabel)")
    assert "Role of Grace" in shown
    assert not [one for one in shown if "Bob" in one]
    assert page.errors() == []


@pytest.mark.thorough
def test_an_invited_person_joins_without_mail(server: LocalCloud, page: Browser, axe: str) -> None:
    """The invitation names the company of the address, which is hidden here, and the address needs no mail."""
    server.larder("teams", "invite", server.team, "bob@company.example", "--role", "DEVELOPER")
    server.larder("sso", "set", "example", "--hidden")
    try:
        page.open(link_to(server, "bob@company.example", "/join?"))
        page.wait_for_heading("Create an account")
        page.run(axe)
        assert problems(page) == []
        page.press("Continue with Example Company")
        choose(page, "Bob")
        page.wait_for_heading("Join the team?")
        page.press("Join the team")
        page.wait_for_heading("Welcome to the team")
    finally:
        server.larder("sso", "set", "example", "--shown")
        server.larder("users", "delete", "bob@company.example", "--yes")
    assert page.errors() == []


@pytest.mark.thorough
def test_an_invitation_into_a_required_domain_offers_no_password(server: LocalCloud, page: Browser) -> None:
    """Attack 17: neither an account with a password, nor another person of the company."""
    server.larder("teams", "invite", server.team, "cy@company.example", "--role", "DEVELOPER")
    with required(server):
        page.open(link_to(server, "cy@company.example", "/join?"))
        page.wait_for_heading("Sign in")
        assert "Create one" not in page.text()
        page.press("Continue with Example Company")
        choose(page, "Ada")
        page.wait_for_heading("Join the team?")
        page.press("Join the team")
        page.wait_for_text("sent to another email address")
    assert page.errors() == []


@contextlib.contextmanager
def required(server: LocalCloud, *options: str) -> Iterator[None]:
    server.larder("sso", "require", "example", "--yes", *options)
    try:
        yield
    finally:
        server.larder("sso", "optional", "example")


@pytest.mark.thorough
def test_a_required_provider_asks_for_the_address_first(server: LocalCloud, page: Browser, axe: str) -> None:
    """No one types a company's password into Larder, and an address of another domain still has one."""
    body = {"name": "Eve", "email": f"eve-{secrets.token_hex(4)}@other.example", "password": PASSWORD}
    httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False)
    with required(server, "--keys-days", "5"):
        page.open(f"{server.url}/sign-in")
        page.wait_for_heading("Sign in")
        assert "Password" not in page.text()
        page.run(axe)
        assert problems(page) == []
        page.type("Email address", body["email"])
        page.press("Continue")
        page.type("Password", PASSWORD)
        page.press("Sign in")
        page.wait_for_heading("Get started")

        page.forget_cookies()
        page.open(f"{server.url}/sign-in")
        page.type("Email address", "ada@company.example")
        page.press("Continue")
        choose(page, "Ada")
        page.wait_for_heading("Get started")
        assert user_of(page)["email"] == "ada@company.example"

        page.wait_for_text("Your keys work until")
        page.press("Sign in with your company")
        choose(page, "Ada")
        page.wait_for_heading("Get started")
    assert page.errors() == []


@pytest.fixture(params=better_auth.NEWEST_IN_CI)
def open_client(request: pytest.FixtureRequest, server: LocalCloud) -> Iterator[Callable[[], better_auth.Page]]:
    """Opens a page with the Better Auth client, in a new browser: the newest release, or 1.3.34."""
    tools = request.config.rootpath / ".tools" / "better-auth"
    folder = better_auth.installed(tools, request.param)
    with contextlib.ExitStack() as browsers:
        yield lambda: browsers.enter_context(better_auth.page(folder, server.url))


@pytest.mark.parametrize("open_client", better_auth.PACKAGES, indirect=True)
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
