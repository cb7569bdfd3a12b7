"""GET /verified"""

from larder.accounts.service import find_user
from tests.mailbox import Mailbox
from tests.page import opened
from tests.requests import Browser, Cloud


def test_a_link_without_a_callback_leads_to_this_page(cloud: Cloud, mailbox: Mailbox) -> None:
    Browser().post("/send-verification-email", {"email": cloud.user.email})
    link = mailbox.link().removeprefix("/api/auth")
    assert Browser().get(link).headers["location"] == "/verified"
    user = find_user(cloud.user.id)
    assert user is not None
    assert user.email_verified
    assert "verified" in opened("/verified").ids


def test_a_broken_link_shows_its_error_on_this_page(cloud: Cloud, mailbox: Mailbox) -> None:
    Browser().post("/send-verification-email", {"email": cloud.user.email})
    link = mailbox.link().removeprefix("/api/auth").replace("token=", "token=x")
    assert Browser().get(link).headers["location"] == "/verified?error=invalid_token"
