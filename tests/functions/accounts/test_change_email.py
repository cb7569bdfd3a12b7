"""POST /api/auth/change-email"""

from datetime import timedelta

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import find_user
from larder.accounts.sessions import start_session
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox
from tests.requests import Browser, browser_of

PATH = "/change-email"


def test_a_link_is_sent_to_the_new_address_and_the_old_one_stays(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    reply = browser.post(PATH, {"newEmail": "Ada@New.example"})
    assert (reply.status, reply.json) == (200, {"status": True})
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == ("ada@new.example", "Larder: Confirm your new address")
    assert find_user(ada.id) == ada


def test_a_taken_address_gets_the_same_reply_but_no_mail(bob: User, browser: Browser, mailbox: Mailbox) -> None:
    free = browser.post(PATH, {"newEmail": "free@example.com"})
    taken = browser.post(PATH, {"newEmail": "BOB@example.com"})
    assert (taken.status, taken.body, taken.headers) == (free.status, free.body, free.headers)
    assert [message.to for message in mailbox.deliver()] == ["free@example.com"]


def test_the_users_own_address_is_refused(browser: Browser) -> None:
    reply = browser.post(PATH, {"newEmail": "ADA@example.com"})
    assert reply.refusal == (400, "EMAIL_IS_THE_SAME")


def test_changing_the_address_can_be_disabled(browser: Browser, option: SetOption) -> None:
    option("enable_change_email", "false")
    reply = browser.post(PATH, {"newEmail": "ada@new.example"})
    assert reply.refusal == (400, "CHANGE_EMAIL_DISABLED")


def test_a_user_asks_for_at_most_ten_changes_an_hour(browser: Browser, mailbox: Mailbox, option: SetOption) -> None:
    """Each sends an email to an address that may be another person's."""
    option("http_rate_limit_enabled", "true")
    option("trusted_proxy_hops", 1)
    statuses = [
        browser.post(
            PATH,
            {"newEmail": f"victim{number}@example.com"},
            headers={"x-forwarded-for": f"198.51.100.{number}, 192.0.2.1"},
        ).status
        for number in range(22)
    ]
    # An hour can end in between.
    assert statuses.count(429) >= 2
    assert len(mailbox.jobs) == statuses.count(200) <= 20


def late(user: User) -> Browser:
    """A browser in which the user signed in a day ago."""
    _, token = start_session(user, now=clock.now() - timedelta(days=1))
    return browser_of(user, token=token)


def test_a_session_that_is_not_fresh_needs_the_password(ada: User, mailbox: Mailbox) -> None:
    """A thief of an old session could take the account over with a new address and a reset."""
    thief = late(ada)
    body = {"newEmail": "thief@evil.example"}
    reply = thief.post(PATH, body)
    assert reply.refusal == (403, "SESSION_NOT_FRESH")
    assert "send your password" in reply.json["message"]
    assert thief.post(PATH, {**body, "password": "wrong"}).refusal == (400, "INVALID_PASSWORD")
    assert mailbox.jobs == []
    assert late(ada).post(PATH, {"newEmail": "ada@new.example", "password": PASSWORD}).status == 200
    assert [message.to for message in mailbox.deliver()] == ["ada@new.example"]


def test_a_wrong_password_is_refused_even_with_a_fresh_session(browser: Browser, mailbox: Mailbox) -> None:
    reply = browser.post(PATH, {"newEmail": "ada@new.example", "password": "wrong"})
    assert reply.refusal == (400, "INVALID_PASSWORD")
    assert mailbox.jobs == []
