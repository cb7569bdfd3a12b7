"""POST /api/auth/confirm-email-change"""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_callback_token, issue_confirmation_token, issue_verification_token
from larder.accounts.models import User
from larder.accounts.service import find_user_by_email
from tests.functions.accounts.conftest import verify
from tests.mailbox import Mailbox
from tests.page import opened
from tests.requests import Browser, Reply


def confirm(token: str) -> Reply:
    return Browser().post("/confirm-email-change", {"token": token})


def test_a_verified_address_confirms_a_change_first(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    """A thief of a session cannot read the owner's mail."""
    verify(ada)
    browser.post("/change-email", {"newEmail": "ada@new.example", "callbackURL": "/changed"})
    (asked,) = mailbox.deliver()
    assert (asked.to, asked.subject) == ("ada@example.com", "Larder: Confirm the change of your address")
    assert "from ada@example.com to a***@new.example" in asked.text
    page = Browser().get(mailbox.link().removeprefix("/api/auth")).headers["location"]
    (token,) = parse_qs(urlsplit(page).query)["confirm"]
    assert {"confirm", "confirm-form", "confirmed"} <= {*opened(page).ids}
    assert mailbox.jobs == []
    reply = confirm(token)
    assert (reply.status, reply.json) == (200, {"status": True})
    assert find_user_by_email("ada@new.example") is None
    link, _ = mailbox.deliver()
    assert (link.to, link.subject) == ("ada@new.example", "Larder: Confirm your new address")
    reply = Browser().get(mailbox.link().removeprefix("/api/auth"))
    assert (reply.status, reply.headers["location"]) == (302, "/changed")
    stored = find_user_by_email("ada@new.example")
    assert stored is not None
    assert (stored.id, stored.email_verified) == (ada.id, True)


def test_a_confirmation_that_is_sent_again_sends_the_link_again(ada: User, mailbox: Mailbox) -> None:
    token = issue_confirmation_token(ada, new_email="ada@new.example", callback_url="", now=clock.now())
    assert [confirm(token).status, confirm(token).status] == [200, 200]
    assert [message.to for message in mailbox.deliver()] == ["ada@new.example"] * 2


@pytest.mark.parametrize("purpose", ["verify", "change", "callback", "forged"])
def test_401_for_the_token_of_another_link(ada: User, mailbox: Mailbox, purpose: str) -> None:
    now = clock.now()
    token = {
        "verify": issue_verification_token(ada, now=now),
        "change": issue_verification_token(ada, new_email="ada@new.example", now=now),
        "callback": issue_callback_token("/welcome", now=now),
        "forged": "a.b.c",
    }[purpose]
    assert confirm(token).refusal == (401, "INVALID_TOKEN")
    assert mailbox.jobs == []


def test_401_for_an_expired_token(ada: User, mailbox: Mailbox) -> None:
    earlier = clock.now() - timedelta(hours=1)
    token = issue_confirmation_token(ada, new_email="ada@new.example", callback_url="", now=earlier)
    assert confirm(token).refusal == (401, "TOKEN_EXPIRED")
    assert mailbox.jobs == []
