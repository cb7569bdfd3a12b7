"""GET /reset-password"""

from urllib.parse import urlencode

from larder import clock
from larder.accounts.password_resets import issue_reset_token
from tests.mailbox import Mailbox
from tests.page import opened
from tests.requests import DOMAIN, Browser, Cloud, Sender

PATH = "/reset-password"


def test_a_link_without_a_callback_leads_to_this_page(cloud: Cloud, mailbox: Mailbox) -> None:
    Browser().post("/request-password-reset", {"email": cloud.user.email})
    link = mailbox.link()
    token = link.partition("?")[0].rpartition("/")[2]
    reply = Browser().get(link.removeprefix("/api/auth"))
    page, _, fragment = reply.headers["location"].partition("#")
    assert page == f"https://{DOMAIN}{PATH}?token={token}"
    # No server gets that part.
    assert fragment == urlencode({"email": cloud.user.email})


def test_the_token_is_not_in_the_page_and_opening_it_does_not_use_it_up(cloud: Cloud, mailbox: Mailbox) -> None:
    token = issue_reset_token(cloud.user, now=clock.now())
    reply = Sender(None, query=f"token={token}")("GET", PATH)
    assert token not in reply.body.decode()
    changed = Browser().post("/reset-password", {"newPassword": "correct horse", "token": token})
    assert changed.json == {"status": True}


def test_browsers_offer_to_generate_a_password(cloud: Cloud) -> None:
    fields = {field.id: field.attributes for field in opened(PATH).all("input")}
    assert fields["choose-password"]["autocomplete"] == "new-password"
