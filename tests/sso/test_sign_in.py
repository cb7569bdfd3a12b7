"""Which user a person of a provider is, and what a sign-in changes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from threading import Lock
from typing import Any

import pytest
import time_machine

from larder import clock
from larder.accounts import repository
from larder.accounts.linking import UnlinkRequest, unlink
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.provider_sign_in import finish
from larder.accounts.service import create_user, delete_user, find_user, find_user_by_email, list_users
from larder.accounts.sessions import list_sessions, start_session
from larder.accounts.sign_in import give_account
from larder.audit.service import read_entries
from larder.errors import LastAccount
from larder.sso import service
from larder.sso.callback import CallbackRequest
from larder.sso.models import IdentityProvider, Mode
from larder.sso.refusals import SignInRefused
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.mailbox import Mailbox
from tests.requests import Browser, browser_of, invoke
from tests.sso.conftest import FROM_PAGE, ORIGIN, Journey, add, error_of
from tests.sso.hostile_provider import HostileProvider, curve_key, key_for
from tests.sso.providers import SECRET, link


def actions(owner: str) -> list[str]:
    page = read_entries(owner, limit=50, now=clock.now())
    return [entry.action.value for entry in page.entries]


def test_a_new_person_gets_a_user_and_a_session(journey: Journey) -> None:
    reply = journey.sign_in(start={"newUserCallbackURL": "/console/welcome"})
    assert reply.headers["location"] == "/console/welcome"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["referrer-policy"] == "no-referrer"
    user = journey.session()["user"]
    assert (user["email"], user["name"], user["emailVerified"]) == ("ada@acme.example", "Ada Lovelace", True)
    assert {*actions(user["id"])} == {"signed_up", "account_linked", "signed_in"}
    # Of the cookie of the sign-in, nothing is left.
    assert not [name for name in journey.browser.cookies if "larder.sso" in name]
    again = journey.sign_in(start={"newUserCallbackURL": "/console/welcome"})
    assert again.headers["location"] == "/console"
    assert journey.session()["user"]["id"] == user["id"]


def test_a_session_is_that_of_the_provider_and_as_old_as_the_login(journey: Journey) -> None:
    hour_ago = int(clock.now().timestamp()) - 3600
    journey.sign_in(auth_time=hour_ago)
    user = find_user_by_email("ada@acme.example")
    assert user is not None
    (session,) = list_sessions(user, now=clock.now())
    assert session.provider == "acme"
    assert session.authenticated_at is not None
    assert int(session.authenticated_at.timestamp()) == hour_ago
    (entry,) = [
        one for one in read_entries(user.id, limit=9, now=clock.now()).entries if one.action.value == "signed_in"
    ]
    assert entry.actor is not None
    assert entry.actor.credential_id == "provider:acme"


def test_a_name_that_is_none_becomes_the_part_before_the_at(journey: Journey) -> None:
    journey.sign_in(name="\x00", picture="https://evil.example/x.png")
    assert journey.session()["user"]["name"] == "ada"
    assert journey.session()["user"]["image"] is None


def test_a_known_person_is_the_same_user_whatever_the_address(journey: Journey, mailbox: Mailbox) -> None:
    journey.sign_in()
    user = journey.session()["user"]
    journey.provider.userinfo = {"sub": "ada-1"}
    for changed in ({"email": None}, {"email": "x@home.example"}, {"email_verified": False}):
        assert error_of(journey.sign_in(**changed)) is None
        assert journey.session()["user"]["id"] == user["id"]
        assert journey.session()["user"]["email"] == "ada@acme.example"
    mailbox.payloads.clear()
    assert error_of(journey.sign_in(email="ada.king@acme.example")) is None
    assert journey.session()["user"]["id"] == user["id"]
    assert journey.session()["user"]["email"] == "ada.king@acme.example"
    (notice,) = mailbox.payloads
    assert (notice["kind"], notice["email"], notice["by_provider"]) == ("email_changed", "ada@acme.example", "Acme")
    assert "email_changed" in actions(user["id"])


def test_an_address_that_another_user_has_does_not_replace_the_old_one(journey: Journey) -> None:
    journey.sign_in()
    create_user("taken@acme.example", "T", now=clock.now())
    assert error_of(journey.sign_in(email="taken@acme.example")) is None
    assert journey.session()["user"]["email"] == "ada@acme.example"


def test_an_address_that_the_user_chose_here_stays(journey: Journey) -> None:
    user = create_user("ada@home.example", "Ada", email_verified=True, now=clock.now())
    journey.browser = browser_of(user)
    journey.sign_in(start={"path": "/link-social"})
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["email"] == "ada@home.example"


def test_a_proven_user_is_linked_and_learns_of_it(journey: Journey, mailbox: Mailbox) -> None:
    user = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] == user.id
    (notice,) = mailbox.payloads
    assert (notice["kind"], notice["user_id"], notice["provider"]) == ("provider_linked", user.id, "Acme")
    (message,) = mailbox.deliver()
    assert message.to == "ada@acme.example"
    assert "Acme" in message.text


def test_an_address_that_does_not_count_signs_up_as_with_a_password(
    journey: Journey, mailbox: Mailbox, option: SetOption
) -> None:
    option("sign_up_policy", "open")
    assert error_of(journey.sign_in(email="ada@home.example")) is None
    user = find_user_by_email("ada@home.example")
    assert user is not None
    assert (user.email_verified, user.proven) == (False, False)
    assert [job["kind"] for job in mailbox.payloads] == ["verify_email"]
    option("sign_up_policy", "closed")
    other = Journey(journey.provider, Browser())
    assert error_of(other.sign_in(sub="2", email="eve@home.example")) == "signup_disabled"
    assert find_user_by_email("eve@home.example") is None


def test_an_address_that_must_be_verified_first_starts_no_session(
    journey: Journey, mailbox: Mailbox, option: SetOption
) -> None:
    option("sign_up_policy", "open")
    option("require_email_verification", "true")
    for _ in range(2):
        assert error_of(journey.sign_in(email="ada@home.example")) == "email_not_verified"
        assert journey.session() is None
    assert [job["kind"] for job in mailbox.payloads] == ["verify_email"] * 2
    assert len(list_users()) == 1
    # An address that counts needs no mail.
    assert error_of(Journey(journey.provider, Browser()).sign_in(sub="2")) is None


@pytest.mark.usefixtures("aws_in_memory", "on_loopback")
def test_without_sign_up_only_users_sign_in(hostile: HostileProvider) -> None:
    add(hostile, signs_up=False)
    journey = Journey(hostile, Browser())
    assert error_of(journey.sign_in()) == "signup_disabled"
    create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    assert error_of(journey.sign_in()) is None


@pytest.mark.usefixtures("aws_in_memory", "on_loopback")
def test_a_person_without_an_address(hostile: HostileProvider) -> None:
    add(hostile)
    hostile.userinfo = {"sub": "ada-1"}
    journey = Journey(hostile, Browser())
    for email in (None, "", 7, "not an address", ["ada@acme.example"], "ada@unreachable"):
        assert error_of(journey.sign_in(email=email)) == "email_not_found"
    entries = read_entries("sso#acme", limit=9, now=clock.now()).entries
    assert [(entry.action.value, entry.subject) for entry in entries[:6]] == [
        ("sign_in_refused", "email_not_found")
    ] * 6


def test_refusals_before_a_valid_token_are_no_entries(journey: Journey, log: StringIO) -> None:
    """Strangers cannot fill the table. The log has no address, token, code or secret."""
    journey.sign_in(nonce="x", email="ada@acme.example")
    journey.start()
    journey.callback({**journey.provider.authorize(journey.url), "code": "stolen"})
    create_user("eve@home.example", "Eve", email_verified=True, now=clock.now())
    journey.sign_in(email="eve@home.example")
    assert [action for action in actions("sso#acme") if action != "provider_added"] == ["sign_in_refused"]
    text = log.getvalue()
    for reason in ("nonce", "invalid_grant", "address_does_not_count"):
        assert f'"reason":"{reason}"' in text
    assert '"SignInFailures":1' in text
    assert '"domain":"home.example"' in text
    for secret in ("eve@", "ada@", "stolen", SECRET, journey.asked["state"], "access"):
        assert secret not in text
    provider = service.find_provider("acme")
    assert provider is not None
    assert provider.last_failure == "invalid_code"


def callback_of(journey: Journey) -> CallbackRequest:
    """The last request of a sign-in that has started, as the function gets it."""
    journey.start()
    query = journey.provider.authorize(journey.url)
    return CallbackRequest(
        provider_id="acme",
        parameters={name: [value] for name, value in query.items()},
        cookies={name.rpartition(".")[2]: [value] for name, value in journey.browser.cookies.items()},
        session_id=None,
        client="192.0.2.1",
        origin=ORIGIN,
    )


def finished(request: CallbackRequest) -> str:
    """The id of the user, or the code of the refusal."""
    try:
        done = finish(request, MAIL_CONTEXT, user=None, now=clock.now())
    except SignInRefused as refused:
        return refused.code
    assert done.session is not None
    return done.user.id


def at_once(requests: list[CallbackRequest]) -> list[str]:
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(finished, requests))


def test_parallel_callbacks_of_one_new_person_make_one_user(journey: Journey) -> None:
    requests = [callback_of(Journey(journey.provider, Browser())) for _ in range(6)]
    (user_id,) = set(at_once(requests))
    (user,) = list_users()
    assert user.id == user_id
    assert len(list_sessions(user, now=clock.now())) == 6
    assert len(repository.list_provider_accounts(user.id)) == 1


def test_parallel_callbacks_of_two_persons_with_one_address_link_one(journey: Journey) -> None:
    requests = []
    for subject in ("ada-1", "ada-2"):
        journey.provider.person["sub"] = subject
        requests.append(callback_of(Journey(journey.provider, Browser())))
    results = at_once(requests)
    (user,) = list_users()
    assert sorted(results) == sorted([user.id, "account_not_linked"])


def test_the_same_callback_at_once_starts_one_session(journey: Journey) -> None:
    reply = journey.provider.token_reply
    first: list[tuple[int, Any]] = []
    one_at_a_time = Lock()

    def same(form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, Any]:
        # The provider gives tokens several times for one code.
        with one_at_a_time:
            if not first:
                first.append(reply(form, headers))
            return first[0]

    journey.provider.token_reply = same  # type: ignore[method-assign]
    request = callback_of(journey)
    results = at_once([request] * 4)
    (user,) = list_users()
    assert sorted(results) == sorted([user.id, *["state_mismatch"] * 3])
    assert len(list_sessions(user, now=clock.now())) == 1


@pytest.mark.parametrize(
    "algorithm", [*("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), *("ES256", "ES384", "ES512", "EdDSA")]
)
def test_every_usual_algorithm(journey: Journey, algorithm: str) -> None:
    journey.provider.algorithm = algorithm
    journey.provider.keys = {"first": key_for(algorithm)}
    assert error_of(journey.sign_in()) is None


def test_a_token_without_kid_with_the_only_key(journey: Journey) -> None:
    journey.provider.keys, journey.provider.kid = {None: key_for("RS256")}, None
    assert error_of(journey.sign_in()) is None
    journey.provider.keys["second"] = curve_key("ES256")
    with time_machine.travel(clock.now() + timedelta(hours=2)):
        assert error_of(journey.sign_in()) == "invalid_id_token"


def test_a_key_of_another_curve_does_not_verify(journey: Journey) -> None:
    journey.provider.algorithm = "ES256"
    journey.provider.keys = {"first": curve_key("ES384")}
    journey.provider.signs_with = curve_key("ES256")
    assert error_of(journey.sign_in()) == "invalid_id_token"


def test_the_provider_rotates_its_keys_without_a_failed_sign_in(journey: Journey) -> None:
    assert error_of(journey.sign_in()) is None
    journey.provider.keys = {"second": curve_key("ES256"), "first": key_for("RS256")}
    journey.provider.kid, journey.provider.algorithm = "second", "ES256"
    with time_machine.travel(clock.now() + timedelta(seconds=61)):
        assert error_of(journey.sign_in()) is None


def test_keys_are_fetched_at_most_once_a_minute_and_kept_for_a_day(journey: Journey) -> None:
    def fetched() -> int:
        return sum(asked.path.startswith("/keys") for asked in journey.provider.asked)

    assert error_of(journey.sign_in()) is None
    journey.provider.header = {"kid": "unknown"}
    for _ in range(5):
        assert error_of(journey.sign_in()) == "invalid_id_token"
    assert fetched() == 1
    journey.provider.header = {}

    def down(handler: object) -> None:
        handler.send_response(503)  # type: ignore[attr-defined]
        handler.end_headers()  # type: ignore[attr-defined]

    journey.provider.answers["/keys"] = down
    now = clock.now()
    with time_machine.travel(now + timedelta(hours=23)):
        assert error_of(journey.sign_in()) is None
    with time_machine.travel(now + timedelta(hours=25)):
        assert error_of(journey.sign_in()) == "provider_unavailable"


def test_a_new_client_secret_does_not_fail_a_sign_in(journey: Journey) -> None:
    service.rotate_secret("acme", "the-next-secret", now=clock.now())
    assert error_of(journey.sign_in()) is None
    journey.provider.secrets = ("the-next-secret",)
    assert error_of(journey.sign_in()) is None
    journey.provider.secrets = (SECRET,)
    with time_machine.travel(clock.now() + timedelta(hours=25)):
        assert error_of(journey.sign_in()) == "invalid_code"


def test_a_new_signing_secret_does_not_fail_a_sign_in(journey: Journey, option: SetOption) -> None:
    option("signing_secret", "one")
    service.rotate_secret("acme", SECRET, now=clock.now())
    journey.start()
    reply = journey.provider.authorize(journey.url)
    option("signing_secret", "two,one")
    assert error_of(journey.callback(reply)) is None
    option("signing_secret", "three,two")
    assert error_of(journey.sign_in()) == "provider_unavailable"


@pytest.mark.usefixtures("aws_in_memory", "on_loopback")
@pytest.mark.parametrize("authentication", ["client_secret_basic", "client_secret_post"])
def test_the_client_proves_itself_as_announced(hostile: HostileProvider, authentication: str) -> None:
    add(hostile, authentication=authentication)
    assert error_of(Journey(hostile, Browser()).sign_in()) is None
    (asked,) = (one for one in hostile.asked if one.path.startswith("/token"))
    assert ("Authorization" in asked.headers) == (authentication == "client_secret_basic")
    assert ("client_secret" in asked.form) == (authentication == "client_secret_post")
    assert asked.path == "/token?tenant=1"


def test_two_tabs_both_work(journey: Journey) -> None:
    journey.start()
    first = journey.provider.authorize(journey.url)
    journey.start()
    assert error_of(journey.callback(journey.provider.authorize(journey.url))) is None
    assert error_of(journey.callback(first)) is None


# ---------------------------------------------------------------------------- link and unlink


def test_a_signed_in_user_links_an_account(journey: Journey, mailbox: Mailbox) -> None:
    user = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    journey.browser = browser_of(user)
    before = dict(journey.browser.cookies)
    reply = journey.sign_in(start={"path": "/link-social"}, email_verified=False)
    assert error_of(reply) is None
    assert journey.browser.cookies == before
    assert [job["kind"] for job in mailbox.payloads] == ["provider_linked"]
    # Once more changes nothing.
    assert error_of(journey.sign_in(start={"path": "/link-social"})) is None
    assert len(journey.browser.get("/list-accounts").json) == 1


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"email": "x@home.example", "email_verified": True}, "email_does_not_match"),
        ({"email": "x@acme.example", "email_verified": False}, "email_does_not_match"),
        ({"email": None}, "email_does_not_match"),
        ({"sub": "of-bob"}, "account_already_linked_to_different_user"),
        ({"sub": "second"}, "unable_to_link_account"),
    ],
)
def test_accounts_that_are_not_linked(journey: Journey, claims: dict[str, str], code: str) -> None:
    now = clock.now()
    provider = service.find_provider("acme")
    assert provider is not None
    bob = create_user("bob@acme.example", "Bob", email_verified=True, now=now)
    link(bob, provider, "of-bob")
    ada = create_user("ada@acme.example", "Ada", email_verified=True, now=now)
    journey.provider.userinfo = {"sub": "ada-1"}
    if code == "unable_to_link_account":
        link(ada, provider, "first")
    journey.browser = browser_of(ada)
    reply = journey.sign_in(start={"path": "/link-social"}, **claims)
    assert error_of(reply) == code
    accounts = journey.browser.get("/list-accounts").json
    assert len(accounts) == (1 if code == "unable_to_link_account" else 0)


def test_unlinking_ends_the_sessions_that_the_account_started(journey: Journey) -> None:
    now = clock.now()
    user = create_user("ada@acme.example", "Ada", password="correct horse b", email_verified=True, now=now)
    journey.sign_in()
    other = browser_of(user)
    accounts = other.get("/list-accounts").json
    assert [account["providerId"] for account in accounts] == ["credential", "acme"]
    assert accounts[1]["issuer"] == journey.provider.url
    assert accounts[1]["accountId"] == "ada-1"
    reply = other.post("/unlink-account", {"providerId": "acme"}, headers=FROM_PAGE)
    assert (reply.status, reply.json) == (200, {"status": True})
    assert journey.session() is None
    assert other.get("/get-session").json is not None
    assert "account_unlinked" in actions(user.id)
    assert repository.find_subject(journey.provider.url, "ada-1") is None


def test_the_password_can_be_unlinked(journey: Journey) -> None:
    user = create_user("ada@acme.example", "Ada", password="correct horse b", email_verified=True, now=clock.now())
    journey.sign_in()
    body = {"providerId": "credential", "accountId": user.id}
    assert journey.browser.post("/unlink-account", body, headers=FROM_PAGE).status == 200
    (left,) = journey.browser.get("/list-accounts").json
    assert left["providerId"] == "acme"
    last = journey.browser.post("/unlink-account", {"providerId": "acme"}, headers=FROM_PAGE)
    assert last.refusal == (400, "FAILED_TO_UNLINK_LAST_ACCOUNT")


def test_a_managed_user_cannot_unlink(journey: Journey) -> None:
    create_user("ada@acme.example", "Ada", password="correct horse b", email_verified=True, now=clock.now())
    journey.sign_in()
    service.change_provider("acme", lambda one: replace(one, mode=Mode.REQUIRED), now=clock.now())
    reply = journey.browser.post("/unlink-account", {"providerId": "acme"}, headers=FROM_PAGE)
    assert reply.refusal == (403, "SSO_REQUIRED")


def test_of_two_unlinks_at_once_one_way_stays(journey: Journey) -> None:
    user = create_user("ada@acme.example", "Ada", password="correct horse b", email_verified=True, now=clock.now())
    journey.sign_in()
    session, _ = start_session(user, now=clock.now())

    def unlinked(provider_id: str) -> str:
        try:
            unlink(UnlinkRequest(provider_id=provider_id), session, now=clock.now())
        except LastAccount:
            return "refused"
        return "done"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(unlinked, ["acme", "credential"])) == ["done", "refused"]


def test_an_unlink_at_the_same_time_as_a_sign_in_leaves_no_session(journey: Journey) -> None:
    user = create_user("ada@acme.example", "Ada", password="correct horse b", email_verified=True, now=clock.now())
    journey.sign_in()
    session, _ = start_session(user, now=clock.now())
    requests = [callback_of(Journey(journey.provider, Browser())) for _ in range(4)]
    with ThreadPoolExecutor(5) as pool:
        signing_in = [pool.submit(finished, request) for request in requests]
        unlink(UnlinkRequest(provider_id="acme"), session, now=clock.now())
        assert {one.result() for one in signing_in} == {user.id}
    for one in list_sessions(user, now=clock.now()):
        # The sign-ins after it have linked the account again.
        assert one.provider is None or repository.list_provider_accounts(user.id)


# ---------------------------------------------------------------------------- the end of a user


def test_deleting_a_user_deletes_their_accounts(journey: Journey) -> None:
    journey.sign_in()
    user = find_user_by_email("ada@acme.example")
    assert user is not None
    delete_user(user.id, now=clock.now())
    assert repository.list_provider_accounts(user.id) == []
    assert repository.find_subject(journey.provider.url, "ada-1") is None
    # The next sign-in makes a new user.
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] != user.id


def test_what_is_left_of_an_account_does_not_keep_the_person_out(journey: Journey, added: IdentityProvider) -> None:
    """The account was linked while the user was being deleted. The sweep deletes it, and not that of the new user."""
    ada = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    delete_user(ada.id, now=clock.now())
    link(ada, added, "ada-1")
    assert error_of(journey.sign_in()) is None
    new = journey.session()["user"]["id"]
    assert new != ada.id
    invoke("accounts.sweep_deleted_users.handler", {})
    assert repository.list_provider_accounts(ada.id) == []
    assert [provider_account.user_id for provider_account in repository.list_provider_accounts(new)] == [new]
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] == new


def test_the_account_goes_with_the_address_that_the_operator_takes_away(journey: Journey) -> None:
    journey.sign_in()
    user = find_user_by_email("ada@acme.example")
    assert user is not None
    give_account(user.id, "grace@acme.example", now=clock.now())
    assert journey.session() is None
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] != user.id
    assert find_user(user.id) is not None


def test_resetting_the_password_of_an_unproven_account_unlinks_what_a_stranger_linked(
    journey: Journey, option: SetOption
) -> None:
    option("sign_up_policy", "open")
    option("scrypt_cost", 1024)
    journey.sign_in(email="victim@home.example")
    assert journey.session() is not None
    user = find_user_by_email("victim@home.example")
    assert user is not None
    token = issue_reset_token(user, now=clock.now())
    body = {"newPassword": "another correct horse", "token": token}
    assert Browser().post("/reset-password", body, headers=FROM_PAGE).status == 200
    assert journey.session() is None
    assert error_of(journey.sign_in(email="victim@home.example")) == "account_not_linked"
