"""The unmodified Better Auth client goes through every flow of accounts. Mail is read from the outbox.

Every test runs with the newest release and, in `make proofs`, with 1.3.34.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from . import better_auth, cloud
from .cloud import LocalCloud
from .outbox import link_in, link_to, mail_to

pytestmark = pytest.mark.e2e

PASSWORD = "correct horse battery"
USER_FIELDS = {"id", "email", "name", "image", "emailVerified", "createdAt", "updatedAt"}
SESSION_FIELDS = {"id", "token", "userId", "expiresAt", "createdAt", "updatedAt", "ipAddress", "userAgent"}
ACCOUNT_FIELDS = {"id", "accountId", "providerId", "userId", "createdAt", "updatedAt", "scopes"}
SESSION_COOKIE = "better-auth.session_token"
WINDOW_SECONDS = 10
"""The window of the limit on sign-in. Windows begin at multiples of it since 1970."""
UNLIMITED = {"LARDER_HTTP_RATE_LIMIT_ENABLED": "false"}

Open = Callable[[LocalCloud], better_auth.Page]


@dataclass(frozen=True)
class Person:
    email: str
    password: str = PASSWORD

    def sign_up(self, page: better_auth.Page, **fields: Any) -> Any:
        return page.data("signUp.email", name="Ada", email=self.email, password=self.password, **fields)

    def sign_in(self, page: better_auth.Page, **fields: Any) -> Any:
        return page.data("signIn.email", email=self.email, password=self.password, **fields)


@pytest.fixture(scope="module")
def unlimited_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud without rate limits, because the tests sign in more often than they allow."""
    data = tmp_path_factory.mktemp("unlimited") / "data"
    with cloud.running(request.config.rootpath, data, **UNLIMITED) as server:
        yield server


@pytest.fixture(scope="module")
def verifying_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """The same, and an address must be verified before its user can sign in."""
    data = tmp_path_factory.mktemp("verifying") / "data"
    options = {**UNLIMITED, "LARDER_REQUIRE_EMAIL_VERIFICATION": "true"}
    with cloud.running(request.config.rootpath, data, **options) as server:
        yield server


@pytest.fixture(params=better_auth.NEWEST_IN_CI)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_page(request: pytest.FixtureRequest, release: str) -> Iterator[Open]:
    """Opens a page of a cloud in a new browser."""
    tools = request.config.rootpath / ".tools" / "better-auth"
    folder = better_auth.installed(tools, release)
    with contextlib.ExitStack() as browsers:
        yield lambda server: browsers.enter_context(better_auth.page(folder, server.url))


@pytest.fixture
def page(open_page: Open, unlimited_cloud: LocalCloud) -> better_auth.Page:
    return open_page(unlimited_cloud)


@pytest.fixture
def other_page(open_page: Open, unlimited_cloud: LocalCloud) -> better_auth.Page:
    """A page in another browser."""
    return open_page(unlimited_cloud)


@pytest.fixture
def ada() -> Person:
    """A user that no other test uses."""
    return Person(f"ada-{secrets.token_hex(6)}@acme.example")


@pytest.fixture
def stranger() -> Person:
    return Person(f"eve-{secrets.token_hex(6)}@acme.example")


def follow(link: str) -> tuple[int, str | None]:
    """Open a link without a session. Returns the status and the destination."""
    reply = httpx.get(link, trust_env=False)
    return reply.status_code, reply.headers.get("location")


def token_in(url: str) -> str:
    (token,) = parse_qs(urlsplit(url).query)["token"]
    return token


def is_recent(moment: datetime) -> bool:
    return abs(datetime.now(tz=UTC) - moment) < timedelta(minutes=1)


@pytest.mark.parametrize("release", better_auth.PACKAGES, indirect=True)
def test_sign_up_and_sign_out(page: better_auth.Page, unlimited_cloud: LocalCloud, ada: Person) -> None:
    assert page.data("ok") == {"ok": True}
    assert page.data("getSession") is None
    assert page.store_when(lambda data: data is None)["error"] is None

    image = "https://acme.example/ada.png"
    signed_up = ada.sign_up(page, image=image, callbackURL="/welcome")
    user = signed_up["user"]
    assert user.keys() == USER_FIELDS
    assert (user["email"], user["name"], user["image"]) == (ada.email, "Ada", image)
    assert user["emailVerified"] is False
    assert is_recent(user["createdAt"])
    assert user["updatedAt"] == user["createdAt"]
    assert page.cookies.keys() == {SESSION_COOKIE}

    current = page.data("getSession")
    session = current["session"]
    assert current["user"] == user
    assert session.keys() == SESSION_FIELDS
    assert (session["token"], session["userId"]) == (signed_up["token"], user["id"])
    assert (session["ipAddress"], session["userAgent"]) == ("127.0.0.1", "node")
    assert is_recent(session["createdAt"])
    assert session["expiresAt"] - session["createdAt"] == timedelta(days=7)
    assert page.store_when(bool)["data"] == current

    assert page.data("signOut") == {"success": True}
    assert page.cookies == {}
    assert page.data("getSession") is None
    assert page.store_when(lambda data: data is None)["error"] is None
    kept = {"authorization": f"Bearer {signed_up['token']}"}
    reply = httpx.get(f"{unlimited_cloud.url}/api/auth/get-session", headers=kept, trust_env=False)
    assert (reply.status_code, reply.json()) == (200, None)
    assert page.data("signOut") == {"success": True}


def test_the_page_gets_an_error_for_a_refusal(page: better_auth.Page) -> None:
    refused = page("listSessions")
    assert refused["error"].pop("message")
    assert refused == {
        "data": None,
        "error": {"status": 401, "statusText": "Unauthorized", "code": "UNAUTHORIZED"},
        "retryAfter": None,
    }
    for method in ("listAccounts", "revokeOtherSessions", "revokeSessions"):
        assert page.error(method) == (401, "UNAUTHORIZED")
    for method, sent in {
        "revokeSession": {"token": "t" * 32},
        "updateUser": {"name": "Eve"},
        "verifyPassword": {"password": PASSWORD},
        "changePassword": {"currentPassword": PASSWORD, "newPassword": PASSWORD},
        "changeEmail": {"newEmail": "eve@acme.example"},
        "deleteUser": {"password": PASSWORD},
    }.items():
        assert page.error(method, **sent) == (401, "UNAUTHORIZED")


def test_sign_up_again_and_sign_in(
    page: better_auth.Page, unlimited_cloud: LocalCloud, ada: Person, stranger: Person
) -> None:
    user = ada.sign_up(page)["user"]
    page.data("signOut")
    again = {"name": "Eve", "email": ada.email.upper(), "password": "another password"}
    refused = (422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL")
    assert page.error("signUp.email", **again) == refused
    assert page.error("signUp.email", **{**again, "password": "7 chars"}) == (400, "PASSWORD_TOO_SHORT")

    wrong = page("signIn.email", email=ada.email, password="another password")
    unknown = page("signIn.email", email=stranger.email, password=PASSWORD)
    assert wrong == unknown
    assert (wrong["data"], wrong["error"]["status"]) == (None, 401)
    assert wrong["error"]["code"] == "INVALID_EMAIL_OR_PASSWORD"
    assert page.cookies == {}

    home = page.address
    signed_in = ada.sign_in(page)
    assert signed_in == {"redirect": False, "token": signed_in["token"], "user": user}
    assert page.address == home
    assert page.data("getSession")["session"]["token"] == signed_in["token"]

    dashboard = f"{unlimited_cloud.url}/dashboard?tab=keys"
    moved = ada.sign_in(page, callbackURL=dashboard)
    assert (moved["redirect"], moved["url"]) == (True, dashboard)
    assert page.address == dashboard
    assert page.data("getSession")["session"]["token"] == moved["token"] != signed_in["token"]

    elsewhere = {"email": ada.email, "password": PASSWORD, "callbackURL": "https://evil.example/"}
    assert page.error("signIn.email", **elsewhere) == (403, "INVALID_CALLBACK_URL")
    assert page.address == dashboard


def test_a_session_without_remember_me_ends_with_the_browser(page: better_auth.Page, ada: Person) -> None:
    ada.sign_up(page)
    assert page.cookies[SESSION_COOKIE]["maxAge"] == 604_800
    before = page.data("getSession")
    page.restart_browser()
    assert page.data("getSession") == before
    page.data("signOut")

    ada.sign_in(page, rememberMe=False)
    assert {name: kept["maxAge"] for name, kept in page.cookies.items()} == {
        SESSION_COOKIE: None,
        "better-auth.dont_remember": None,
    }
    session = page.data("getSession")["session"]
    assert session["expiresAt"] - session["createdAt"] == timedelta(days=1)
    page.restart_browser()
    assert page.data("getSession") is None


@pytest.mark.parametrize("release", better_auth.PACKAGES, indirect=True)
def test_sessions_are_listed_and_revoked(
    page: better_auth.Page, open_page: Open, unlimited_cloud: LocalCloud, release: str, ada: Person, stranger: Person
) -> None:
    phone, tablet, foreign = (open_page(unlimited_cloud) for _ in range(3))
    tokens = [ada.sign_up(page)["token"], ada.sign_in(phone)["token"], ada.sign_in(tablet)["token"]]
    stranger.sign_up(foreign)

    listed = page.data("listSessions")
    assert [session.keys() for session in listed] == [SESSION_FIELDS] * 3
    began = [session["createdAt"] for session in listed]
    assert began == sorted(began, reverse=True)
    by_id = {session["id"]: session["token"] for session in listed}
    own, phones, tablets = (one.data("getSession")["session"]["id"] for one in (page, phone, tablet))
    assert by_id.keys() == {own, phones, tablets}
    assert by_id[own] == tokens[0]
    assert not {by_id[phones], by_id[tablets]} & set(tokens)

    assert foreign.data("revokeSession", token=by_id[phones]) == {"status": True}
    assert phone.data("getSession") is not None
    assert page.data("revokeSession", token=by_id[phones]) == {"status": True}
    assert phone.data("getSession") is None
    assert {session["id"] for session in page.data("listSessions")} == {own, tablets}

    assert page.data("revokeOtherSessions") == {"status": True}
    assert tablet.error("listSessions") == (401, "UNAUTHORIZED")
    assert [session["id"] for session in page.data("listSessions")] == [own]

    ada.sign_in(phone)
    page.store_when(bool)
    assert page.data("revokeSessions") == {"status": True}
    assert page.data("getSession") is None
    if release == "newest":
        # The store of 1.3.34 does not follow the end of all sessions.
        assert page.store_when(lambda data: data is None)["error"] is None
    assert phone.data("getSession") is None
    assert foreign.data("getSession")["user"]["email"] == stranger.email


def test_a_profile_is_changed(page: better_auth.Page, ada: Person) -> None:
    before = ada.sign_up(page, image="https://acme.example/ada.png")["user"]
    page.store_when(bool)

    assert page.data("updateUser", name="Ada Lovelace") == {"status": True}
    named = page.data("getSession")["user"]
    assert named == {**before, "name": "Ada Lovelace", "updatedAt": named["updatedAt"]}
    assert named["updatedAt"] > before["updatedAt"]
    assert page.store_when(lambda data: data["user"]["name"] == "Ada Lovelace")["error"] is None

    assert page.data("updateUser", image=None) == {"status": True}
    plain = page.data("getSession")["user"]
    assert (plain["name"], plain["image"]) == ("Ada Lovelace", None)

    assert page.error("updateUser", email="x@acme.example") == (400, "EMAIL_CAN_NOT_BE_UPDATED")
    assert page.error("updateUser", image="javascript:alert(1)") == (400, "VALIDATION_ERROR")
    assert page.data("getSession")["user"] == plain


def test_the_account_is_listed_without_its_password(
    page: better_auth.Page, other_page: better_auth.Page, ada: Person
) -> None:
    user = ada.sign_up(page)["user"]
    (account,) = page.data("listAccounts")
    assert account.keys() == {*ACCOUNT_FIELDS, "issuer"}
    assert account["issuer"] == "local:credential"
    assert (account["providerId"], account["scopes"]) == ("credential", [])
    assert account["accountId"] == account["userId"] == user["id"]
    assert account["createdAt"] == account["updatedAt"] == user["createdAt"]

    changed = {"currentPassword": ada.password, "newPassword": "a new password"}
    assert page.error("changePassword", **{**changed, "currentPassword": "wrong one"}) == (400, "INVALID_PASSWORD")
    page.data("changePassword", **changed)
    (after,) = page.data("listAccounts")
    assert after == {**account, "updatedAt": after["updatedAt"]}
    assert after["updatedAt"] > account["updatedAt"]
    assert other_page.error("listAccounts") == (401, "UNAUTHORIZED")


def test_an_address_is_verified_by_the_link_in_the_mail(
    page: better_auth.Page, other_page: better_auth.Page, unlimited_cloud: LocalCloud, ada: Person
) -> None:
    stranger = Person(f"eve-{secrets.token_hex(6)}@acme.example")
    assert other_page.data("sendVerificationEmail", email=stranger.email) == {"status": True}
    ada.sign_up(page)
    assert page.error("sendVerificationEmail", email=stranger.email) == (400, "EMAIL_MISMATCH")
    asked = page.data("sendVerificationEmail", email=ada.email, callbackURL="/verified?by=mail")
    assert asked == {"status": True}

    first, message = mail_to(unlimited_cloud, ada.email, count=2)
    assert first["subject"] == message["subject"]
    link = link_in(message)
    assert link.startswith(f"{unlimited_cloud.url}/api/auth/verify-email?token=")
    assert page.data("getSession")["user"]["emailVerified"] is False
    assert follow(link) == (302, "/verified?by=mail")
    assert page.data("getSession")["user"]["emailVerified"] is True

    again = page.data("verifyEmail", query={"token": token_in(link)})
    assert again == {"status": True, "user": None}
    forged = token_in(link)[:-8] + "AAAAAAAA"
    assert page.error("verifyEmail", query={"token": forged}) == (401, "INVALID_TOKEN")
    assert follow(link.replace(token_in(link), forged)) == (302, "/verified?by=mail&error=invalid_token")
    already = page.error("sendVerificationEmail", email=ada.email)
    assert already == (400, "EMAIL_ALREADY_VERIFIED")
    assert mail_to(unlimited_cloud, stranger.email, count=0) == []


def test_a_forgotten_password_is_reset_once_by_the_link(
    page: better_auth.Page, other_page: better_auth.Page, unlimited_cloud: LocalCloud, ada: Person, stranger: Person
) -> None:
    ada.sign_up(page)
    target = f"{unlimited_cloud.url}/reset"
    unknown = other_page.data("requestPasswordReset", email=stranger.email, redirectTo=target)
    known = other_page.data("requestPasswordReset", email=ada.email, redirectTo=target)
    assert unknown == known
    assert known["status"] is True

    link = link_to(unlimited_cloud, ada.email, f"{unlimited_cloud.url}/api/auth/reset-password/")
    status, location = follow(link)
    assert status == 302
    assert location is not None
    assert location.startswith(f"{target}?")
    token = token_in(location)

    too_short = other_page.error("resetPassword", newPassword="7 chars", token=token)
    assert too_short == (400, "PASSWORD_TOO_SHORT")
    new = Person(ada.email, "a new password")
    spent = {"newPassword": new.password, "token": token}
    assert other_page.data("resetPassword", **spent) == {"status": True}
    assert other_page.error("resetPassword", **spent) == (400, "INVALID_TOKEN")
    assert follow(link) == (302, f"{target}?error=INVALID_TOKEN")

    assert page.data("getSession") is None
    old = other_page.error("signIn.email", email=ada.email, password=ada.password)
    assert old == (401, "INVALID_EMAIL_OR_PASSWORD")
    assert new.sign_in(other_page)["user"]["email"] == ada.email
    *_, news = mail_to(unlimited_cloud, ada.email, count=3)
    assert "was changed" in news["subject"]
    assert mail_to(unlimited_cloud, stranger.email, count=0) == []


def test_a_password_is_changed(page: better_auth.Page, other_page: better_auth.Page, ada: Person) -> None:
    user = ada.sign_up(page)["user"]
    ada.sign_in(other_page)
    new = Person(ada.email, "a new password")

    assert page.data("verifyPassword", password=ada.password) == {"status": True}
    mistaken = page.error("verifyPassword", password="no such password")
    assert mistaken == (400, "INVALID_PASSWORD")
    wrong = {"currentPassword": "no such password", "newPassword": new.password}
    assert page.error("changePassword", **wrong) == (400, "INVALID_PASSWORD")
    short = {"currentPassword": ada.password, "newPassword": "7 chars"}
    assert page.error("changePassword", **short) == (400, "PASSWORD_TOO_SHORT")
    changed = page.data("changePassword", currentPassword=ada.password, newPassword=new.password)
    assert changed["token"] is None
    assert changed["user"].keys() == USER_FIELDS
    assert changed["user"]["id"] == user["id"]
    assert other_page.data("getSession") is not None

    before = page.data("getSession")["session"]
    newest = Person(ada.email, "the newest password")
    ended = page.data(
        "changePassword", currentPassword=new.password, newPassword=newest.password, revokeOtherSessions=True
    )
    after = page.data("getSession")["session"]
    assert after["token"] == ended["token"] != before["token"]
    assert [session["id"] for session in page.data("listSessions")] == [after["id"]]
    assert other_page.data("getSession") is None
    for gone in (ada, new):
        refused = other_page.error("signIn.email", email=gone.email, password=gone.password)
        assert refused == (401, "INVALID_EMAIL_OR_PASSWORD")
    assert newest.sign_in(other_page)["user"]["id"] == user["id"]


def test_an_address_is_changed_by_the_link_to_the_new_one(
    page: better_auth.Page, other_page: better_auth.Page, unlimited_cloud: LocalCloud, ada: Person, stranger: Person
) -> None:
    user = ada.sign_up(page)["user"]
    stranger.sign_up(other_page)
    other_page.data("signOut")
    moved = Person(f"ada-{secrets.token_hex(6)}@new.example")

    assert page.error("changeEmail", newEmail=ada.email) == (400, "EMAIL_IS_THE_SAME")
    taken = page.data("changeEmail", newEmail=stranger.email, callbackURL="/moved")
    free = page.data("changeEmail", newEmail=moved.email, callbackURL="/moved")
    assert taken == free == {"status": True}

    (message,) = mail_to(unlimited_cloud, moved.email)
    assert page.data("getSession")["user"]["email"] == ada.email
    assert follow(link_in(message)) == (302, "/moved")
    changed = page.data("getSession")["user"]
    assert (changed["id"], changed["email"]) == (user["id"], moved.email)
    assert changed["emailVerified"] is True

    old = other_page.error("signIn.email", email=ada.email, password=ada.password)
    assert old == (401, "INVALID_EMAIL_OR_PASSWORD")
    assert moved.sign_in(other_page)["user"] == changed
    (welcome,) = mail_to(unlimited_cloud, stranger.email)
    assert "Verify your address" in welcome["subject"]


def test_a_user_deletes_their_account(page: better_auth.Page, other_page: better_auth.Page, ada: Person) -> None:
    user = ada.sign_up(page)["user"]
    ada.sign_in(other_page)
    assert page.error("deleteUser", password="no such password") == (400, "INVALID_PASSWORD")
    assert page.data("getSession")["user"] == user

    deleted = page.data("deleteUser", password=ada.password)
    assert deleted == {"success": True, "message": "User deleted"}
    assert page.cookies == {}
    assert page.store_when(lambda data: data is None)["error"] is None
    assert other_page.data("getSession") is None
    refused = page.error("signIn.email", email=ada.email, password=ada.password)
    assert refused == (401, "INVALID_EMAIL_OR_PASSWORD")

    assert ada.sign_up(page)["user"]["id"] != user["id"]
    # A user who has signed in recently needs no password.
    assert page.data("deleteUser") == deleted
    assert page.data("getSession") is None


def test_no_sign_in_before_the_address_is_verified(open_page: Open, verifying_cloud: LocalCloud, ada: Person) -> None:
    page = open_page(verifying_cloud)
    new = ada.sign_up(page, callbackURL="/welcome")
    assert new["token"] is None
    assert new["user"].keys() == USER_FIELDS
    assert page.cookies == {}
    (first,) = mail_to(verifying_cloud, ada.email)

    signs_in = {"email": ada.email, "password": ada.password, "callbackURL": "/welcome"}
    wrong = page.error("signIn.email", **{**signs_in, "password": "no such password"})
    assert wrong == (401, "INVALID_EMAIL_OR_PASSWORD")
    assert page.error("signIn.email", **signs_in) == (403, "EMAIL_NOT_VERIFIED")
    assert page.cookies == {}
    _, second = mail_to(verifying_cloud, ada.email, count=2)
    assert first["subject"] == second["subject"]

    assert follow(link_in(second)) == (302, "/welcome")
    signed_in = ada.sign_in(page)
    assert signed_in["user"]["id"] == new["user"]["id"]
    assert signed_in["user"]["emailVerified"] is True
    assert page.data("getSession")["session"]["token"] == signed_in["token"]
    assert len(mail_to(verifying_cloud, ada.email)) == 2


def test_a_taken_address_gets_the_same_reply_as_a_new_one(
    open_page: Open, verifying_cloud: LocalCloud, ada: Person
) -> None:
    page = open_page(verifying_cloud)
    new = ada.sign_up(page)
    mail_to(verifying_cloud, ada.email)
    taken = Person(ada.email, "another password").sign_up(page)

    unlike = {"id", "createdAt", "updatedAt"}
    assert taken["token"] is new["token"] is None
    assert taken["user"].keys() == new["user"].keys()
    for field in USER_FIELDS - unlike:
        assert taken["user"][field] == new["user"][field]
    assert len(taken["user"]["id"]) == len(new["user"]["id"])
    assert taken["user"]["id"] != new["user"]["id"]
    assert is_recent(taken["user"]["createdAt"])
    assert page.cookies == {}

    link, news = mail_to(verifying_cloud, ada.email, count=2)
    assert "have an account" in news["subject"]
    assert "token=" not in link_in(news)
    assert follow(link_in(link))[0] == 302
    assert page.error("signIn.email", email=ada.email, password="another password") == (
        401,
        "INVALID_EMAIL_OR_PASSWORD",
    )
    assert ada.sign_in(page)["user"]["id"] == new["user"]["id"]


# It waits for two windows, so one client has to do.
@pytest.mark.thorough
@pytest.mark.parametrize("release", ["newest"], indirect=True)
def test_too_many_sign_ins_get_429_with_retry_after(open_page: Open, local_cloud: LocalCloud, ada: Person) -> None:
    page = open_page(local_cloud)
    # Other tests may have used some of the tries of this window.
    time.sleep(WINDOW_SECONDS - time.time() % WINDOW_SECONDS)

    def sign_in() -> dict[str, Any]:
        return page("signIn.email", email=ada.email, password=ada.password)

    # Three in a window of ten seconds. The attempts can be in two windows.
    tries = [sign_in()]
    while tries[-1]["error"]["status"] != 429:
        assert len(tries) < 7
        tries.append(sign_in())
    *passed, refused = tries
    assert [one["error"]["status"] for one in passed] == [401] * len(passed)
    assert len(passed) >= 3
    assert {one["retryAfter"] for one in passed} == {None}
    assert refused["data"] is None
    assert refused["error"] == {
        "status": 429,
        "statusText": "Too Many Requests",
        "message": "Too many requests. Please try again later.",
    }
    assert 1 <= int(refused["retryAfter"]) <= 10
    assert page("getSession")["error"] is None

    time.sleep(int(refused["retryAfter"]))
    assert sign_in()["error"]["code"] == "INVALID_EMAIL_OR_PASSWORD"
