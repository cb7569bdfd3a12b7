"""The notice to a user of an API key that never expires, which a thief of a session could create."""

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.functions.api_keys.people import API, signed_in, verified
from tests.mailbox import Mailbox
from tests.requests import Cloud, Sender


@pytest.fixture
def owner(cloud: Cloud) -> User:
    return verified(cloud.user)


@pytest.fixture
def send(owner: User) -> Sender:
    return signed_in(owner)


def test_the_owner_of_a_new_key_that_never_expires_is_notified(send: Sender, owner: User, mailbox: Mailbox) -> None:
    words = "Your-account-is-blocked"
    created = send("POST", f"{API}/create", json_body={"prefix": words, "name": words}).json
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == (owner.email, "Larder: An API key never expires")
    assert f"Its id is {created['id']} and it begins with {created['key'][23:29]} after" in (message.text)
    assert created["key"] not in message.text
    assert words not in message.text


def test_no_notice_of_a_key_that_expires(send: Sender, mailbox: Mailbox) -> None:
    assert send("POST", f"{API}/create", json_body={"expiresIn": 86_400}).status == 200
    assert mailbox.jobs == []


def test_a_key_that_no_longer_expires_is_reported(send: Sender, mailbox: Mailbox) -> None:
    key_id = send("POST", f"{API}/create", json_body={"expiresIn": 86_400}).json["id"]
    assert send("POST", f"{API}/update", json_body={"keyId": key_id, "name": "ci"}).status == 200
    assert mailbox.jobs == []
    body = {"keyId": key_id, "expiresIn": None}
    assert send("POST", f"{API}/update", json_body=body).status == 200
    assert key_id in mailbox.deliver()[0].text


def test_an_unverified_address_gets_no_notice(cloud: Cloud, mailbox: Mailbox) -> None:
    """It may be another person's."""
    assert signed_in(cloud.user)("POST", f"{API}/create", json_body={}).status == 200
    assert mailbox.jobs == []


@pytest.mark.parametrize("is_verified", [True, False])
def test_a_user_whose_key_an_operator_creates_is_notified(
    send: Sender, owner: User, mailbox: Mailbox, option: SetOption, is_verified: bool
) -> None:
    option("operator_emails", owner.email)
    bob = create_user("bob@acme.example", "Bob", email_verified=is_verified, now=clock.now())
    assert send("POST", f"{API}/create", json_body={"userId": bob.id}).status == 200
    assert [message.to for message in mailbox.deliver()] == [bob.email] * is_verified


def test_a_key_is_created_even_if_the_notice_cannot_be_sent(send: Sender) -> None:
    with unreachable("lambda", "Invoke"):
        assert send("POST", f"{API}/create", json_body={}).status == 200
