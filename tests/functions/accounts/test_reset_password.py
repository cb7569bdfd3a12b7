"""POST /api/auth/reset-password"""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.email_links import follow_verification_token
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import check_credentials, create_user, delete_user, find_user, users_with_ending_keys
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.errors import InvalidEmailOrPassword
from larder.hashing import hash_key
from larder.tables import IDENTITY, commit
from tests.conftest import SetOption
from tests.faults import answering, error
from tests.functions.accounts.conftest import MAIL_CONTEXT, PASSWORD, prove
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Browser, Sender, invoke

PATH = "/reset-password"
NEW = "another correct horse"
STEPS = 9
"""Calls to AWS, one after another, of a reset that deletes the keys."""


def token_of(user: User) -> str:
    return issue_reset_token(user, now=clock.now())


def test_the_token_of_a_link_sets_the_password(ada: User, mailbox: Mailbox) -> None:
    reply = Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert (reply.status, reply.json) == (200, {"status": True})
    assert check_credentials(ada.email, NEW).id == ada.id
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials(ada.email, PASSWORD)


def test_the_token_can_be_in_the_query(ada: User, mailbox: Mailbox) -> None:
    assert Browser().post(f"{PATH}?token={token_of(ada)}", {"newPassword": NEW}).status == 200
    assert check_credentials(ada.email, NEW).id == ada.id


def test_a_token_works_once(ada: User, mailbox: Mailbox) -> None:
    token = token_of(ada)
    Browser().post(PATH, {"newPassword": NEW, "token": token})
    reply = Browser().post(PATH, {"newPassword": "a third password", "token": token})
    assert reply.refusal == (400, "INVALID_TOKEN")
    assert check_credentials(ada.email, NEW).id == ada.id


def test_a_link_expires_after_an_hour(ada: User) -> None:
    token = issue_reset_token(ada, now=clock.now() - timedelta(hours=1))
    reply = Browser().post(PATH, {"newPassword": NEW, "token": token})
    assert reply.refusal == (400, "INVALID_TOKEN")


def test_the_link_of_a_deleted_user_does_not_work(ada: User) -> None:
    token = token_of(ada)
    delete_user(ada.id, now=clock.now())
    reply = Browser().post(PATH, {"newPassword": NEW, "token": token})
    assert reply.refusal == (400, "INVALID_TOKEN")


def change_address(user: User, new_email: str) -> None:
    """Follow the link that was sent to the new address."""
    now = clock.now()
    link = issue_verification_token(user, new_email=new_email, now=now)
    follow_verification_token(link, MAIL_CONTEXT, now=now)


def test_a_link_to_a_previous_address_is_refused(ada: User, mailbox: Mailbox) -> None:
    """Someone else may read the previous mailbox, which is a reason to change the address."""
    token = token_of(ada)
    change_address(ada, "ada@new.example")
    reply = Browser().post(PATH, {"newPassword": NEW, "token": token})
    assert reply.refusal == (400, "INVALID_TOKEN")
    assert check_credentials("ada@new.example", PASSWORD).id == ada.id


def test_a_link_works_after_another_spelling_of_the_address(ada: User, mailbox: Mailbox) -> None:
    token = token_of(ada)
    change_address(ada, "\uff41da@example.com")  # a full-width a
    assert Browser().post(PATH, {"newPassword": NEW, "token": token}).status == 200


def test_a_link_of_version_0_1_0_has_no_address_and_works(ada: User, mailbox: Mailbox) -> None:
    token = token_of(ada)
    item = IDENTITY.get(f"reset#{hash_key(token)}", "reset")
    assert item is not None
    del item["address"]
    commit(IDENTITY.put(item))
    assert Browser().post(PATH, {"newPassword": NEW, "token": token}).status == 200


def test_every_session_ends(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    assert browser.get("/get-session").json is not None
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert browser.get("/get-session").json is None


def test_sessions_stay_valid_if_the_option_says_so(
    ada: User, browser: Browser, mailbox: Mailbox, option: SetOption
) -> None:
    prove(ada)
    option("revoke_sessions_on_password_reset", "false")
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert browser.get("/get-session").json is not None
    assert "stay signed in" in mailbox.deliver()[0].text


def test_a_reset_link_verifies_the_address(ada: User, mailbox: Mailbox) -> None:
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    stored = find_user(ada.id)
    assert stored is not None
    assert stored.email_verified


@pytest.mark.parametrize("sessions_end", ["true", "false"])
def test_resetting_an_unverified_account_deletes_its_api_keys(
    ada: User, browser: Browser, mailbox: Mailbox, option: SetOption, sessions_end: str
) -> None:
    """A stranger can sign up with an address and make a key before the owner of the address resets the password."""
    option("revoke_sessions_on_password_reset", sessions_end)
    assert browser.post("/api-key/create", {"name": "for later"}).status == 200
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert list_keys(ada.id) == []
    assert browser.get("/get-session").json is None
    (message,) = mailbox.deliver()
    assert "The API keys of the account were deleted" in message.text
    assert "still work" not in message.text
    assert "have been signed out" in message.text


def test_an_interrupted_reset_leaves_the_keys_to_the_sweep(ada: User, mailbox: Mailbox) -> None:
    create_key(NewKey(user_id=ada.id), now=clock.now())
    body = {"newPassword": NEW, "token": token_of(ada)}
    throttled = error("ProvisionedThroughputExceededException")
    # Of the keys: the user's accounts are read before.
    with answering("dynamodb", "Query", throttled, only=lambda sent: "by_user" in str(sent["body"])):
        assert Browser().post(PATH, body).status == 200
    assert check_credentials(ada.email, NEW).id == ada.id
    own, _ = create_key(NewKey(user_id=ada.id), now=clock.now() + timedelta(seconds=1))
    for _ in range(2):
        invoke("accounts.sweep_deleted_users.handler", {})
        assert [key.id for key in list_keys(ada.id)] == [own.id]
    assert users_with_ending_keys() == []


def test_a_reset_that_deletes_the_keys_leaves_no_note(ada: User, mailbox: Mailbox) -> None:
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert users_with_ending_keys() == []


@pytest.mark.parametrize("number", [1, 30])
def test_a_reset_ends_all_keys_and_sessions_in_the_same_number_of_steps(
    ada: User, mailbox: Mailbox, number: int
) -> None:
    tokens = [start_session(ada, now=clock.now())[1] for _ in range(number)]
    keys = [create_key(NewKey(user_id=ada.id), now=clock.now())[1] for _ in range(number)]
    token = token_of(ada)
    with counted() as calls:
        assert Browser().post(PATH, {"newPassword": NEW, "token": token}).status == 200
    assert calls.sequential == STEPS
    for raw in (*tokens, *keys):
        assert Sender(raw)("GET", "/v8/artifacts/status").status == 401


def test_what_a_stranger_made_ends_even_if_a_scanner_has_opened_the_link(
    ada: User, browser: Browser, mailbox: Mailbox
) -> None:
    """A stranger signed up with the address, had a link sent to it, and made a key."""
    browser.post("/send-verification-email", {"email": ada.email})
    assert Browser().get(mailbox.link().removeprefix("/api/auth")).status == 302
    key = browser.post("/api-key/create", {"name": "for later"}).json["key"]
    assert Sender(key)("GET", "/v8/artifacts/status").status == 200
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert Sender(key)("GET", "/v8/artifacts/status").status == 401
    assert browser.get("/get-session").json is None
    assert "The API keys of the account were deleted" in mailbox.deliver()[0].text


def test_a_reset_proves_the_address_so_that_the_next_one_keeps_the_keys(ada: User, mailbox: Mailbox) -> None:
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    reset = find_user(ada.id)
    assert reset is not None
    assert reset.proven
    key, _ = create_key(NewKey(user_id=ada.id), now=clock.now())
    Browser().post(PATH, {"newPassword": "a third password", "token": token_of(reset)})
    assert [kept.id for kept in list_keys(ada.id)] == [key.id]


def test_resetting_a_proven_account_keeps_its_api_keys(ada: User, mailbox: Mailbox) -> None:
    prove(ada)
    key, _ = create_key(NewKey(user_id=ada.id), now=clock.now())
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    assert [kept.id for kept in list_keys(ada.id)] == [key.id]
    (message,) = mailbox.deliver()
    assert "API keys of the account still work" in message.text
    assert "deleted" not in message.text


def test_resetting_an_account_without_a_password_keeps_its_api_keys(aws_in_memory: None, mailbox: Mailbox) -> None:
    """The operator made the user and the keys, and no one has signed in yet."""
    eve = create_user("eve@example.com", "Eve", now=clock.now())
    key, _ = create_key(NewKey(user_id=eve.id), now=clock.now())
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(eve)})
    assert [kept.id for kept in list_keys(eve.id)] == [key.id]
    assert "API keys of the account still work" in mailbox.deliver()[0].text


def test_the_user_is_notified_by_mail(ada: User, mailbox: Mailbox) -> None:
    Browser().post(PATH, {"newPassword": NEW, "token": token_of(ada)})
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == (ada.email, "Larder: Your password was changed")


def test_the_password_length_is_checked_before_the_token(ada: User) -> None:
    token = token_of(ada)
    for password, code in (("x" * 7, "PASSWORD_TOO_SHORT"), ("x" * 129, "PASSWORD_TOO_LONG")):
        for given in (token, "unknown"):
            reply = Browser().post(PATH, {"newPassword": password, "token": given})
            assert reply.refusal == (400, code)
            assert reply.json["message"].startswith("newPassword: must have 8 to 128 characters")
    assert Browser().post(PATH, {"newPassword": "x"}).refusal == (400, "INVALID_TOKEN")
