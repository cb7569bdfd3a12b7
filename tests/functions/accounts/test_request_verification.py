"""POST /api/auth/send-verification-email"""

from larder.accounts.email_jobs import VerifyEmail
from larder.accounts.models import User
from larder.accounts.service import find_user
from tests.functions.accounts.conftest import prove, verify
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Browser

PATH = "/send-verification-email"


def test_a_link_is_sent_to_an_unverified_address(ada: User, mailbox: Mailbox) -> None:
    reply = Browser().post(PATH, {"email": "ADA@example.com", "callbackURL": "/welcome"})
    assert (reply.status, reply.json) == (200, {"status": True})
    (job,) = mailbox.jobs
    assert isinstance(job, VerifyEmail)
    assert job.callback_url == "/welcome"
    assert mailbox.deliver()[0].to == "ada@example.com"


def test_unknown_verified_and_unverified_addresses_get_the_same_reply(ada: User, bob: User, mailbox: Mailbox) -> None:
    verify(bob)
    replies, calls = [], []
    for email in ("ada@example.com", "bob@example.com", "nobody@example.com"):
        with counted() as made:
            replies.append(Browser().post(PATH, {"email": email}))
        calls.append(len(made.made))
    assert len({(reply.status, reply.body, str(reply.headers)) for reply in replies}) == 1
    assert calls == [0, 0, 0]  # no lookup
    assert [message.to for message in mailbox.deliver()] == ["ada@example.com"]


def test_a_signed_in_user_is_informed_that_the_address_is_verified(ada: User, browser: Browser) -> None:
    prove(ada)
    reply = browser.post(PATH, {"email": ada.email})
    assert reply.refusal == (400, "EMAIL_ALREADY_VERIFIED")


def test_a_signed_in_user_can_prove_a_verified_address(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    verify(ada)
    assert browser.post(PATH, {"email": ada.email}).status == 200
    browser.get(mailbox.link().removeprefix("/api/auth"))
    stored = find_user(ada.id)
    assert stored is not None
    assert stored.proven


def test_a_signed_in_user_can_only_request_it_for_their_own_address(
    bob: User, browser: Browser, mailbox: Mailbox
) -> None:
    assert browser.post(PATH, {"email": bob.email}).refusal == (400, "EMAIL_MISMATCH")
    assert mailbox.jobs == []
