"""GET /api/auth/reset-password/{token}"""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_callback_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token, reset_password
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.mailbox import Mailbox
from tests.requests import DOMAIN, Browser


def test_the_link_in_the_mail_leads_to_the_page_with_the_token(ada: User, mailbox: Mailbox) -> None:
    Browser().post("/request-password-reset", {"email": ada.email, "redirectTo": "/reset?a=b#form"})
    link = mailbox.link().removeprefix("/api/auth")
    token = link.partition("?")[0].rpartition("/")[2]
    reply = Browser().get(link)
    assert reply.status == 302
    assert reply.headers["location"] == f"https://{DOMAIN}/reset?a=b&token={token}#form"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert reply.headers["cache-control"] == "no-store"


def test_following_the_link_does_not_use_up_the_token(ada: User) -> None:
    token = issue_reset_token(ada, now=clock.now())
    for _ in range(2):
        reply = Browser().get(f"/reset-password/{token}?callbackURL=%2Freset")
        assert reply.headers["location"].endswith(f"/reset?token={token}")


def test_a_token_of_an_earlier_link_is_replaced(ada: User) -> None:
    """As from a page that offers to send the mail again, with its own address."""
    token = issue_reset_token(ada, now=clock.now())
    page = "%2Freset%3Ftoken%3DOLD%26a%3Db"
    reply = Browser().get(f"/reset-password/{token}?callbackURL={page}")
    assert reply.headers["location"].endswith(f"/reset?a=b&token={token}")


def test_an_expired_used_or_unknown_token_redirects_with_an_error(ada: User, mailbox: Mailbox) -> None:
    now = clock.now()
    expired = issue_reset_token(ada, now=now - timedelta(hours=1))
    used = issue_reset_token(ada, now=now)
    reset_password(used, "another correct horse", MAIL_CONTEXT, now=now)
    for token in (expired, used, "A" * 24, "short", "%F0%9F%98%80", "..%2F..%2Fetc"):
        reply = Browser().get(f"/reset-password/{token}?callbackURL=%2Freset%3Fa%3Db")
        assert reply.status == 302
        assert reply.headers["location"] == f"https://{DOMAIN}/reset?a=b&error=INVALID_TOKEN"


def test_the_link_in_the_mail_leads_to_the_page_after_its_use_too(ada: User, mailbox: Mailbox) -> None:
    Browser().post("/request-password-reset", {"email": ada.email, "redirectTo": "/reset?a=b"})
    link = mailbox.link().removeprefix("/api/auth")
    token = link.partition("?")[0].rpartition("/")[2]
    new = "another correct horse"
    reset_password(token, new, MAIL_CONTEXT, now=clock.now())
    location = Browser().get(link).headers["location"]
    assert location == f"https://{DOMAIN}/reset?a=b&error=INVALID_TOKEN"


def test_the_page_of_a_mail_must_still_be_trusted(ada: User, option: SetOption) -> None:
    token = issue_reset_token(ada, now=clock.now())
    url = "https://app.example.org/reset"
    link = f"/reset-password/{token}?callback={issue_callback_token(url, now=clock.now())}"
    option("trusted_origins", "https://app.example.org")
    assert Browser().get(link).headers["location"] == f"{url}?token={token}"
    option("trusted_origins", "")
    assert Browser().get(link).refusal == (403, "INVALID_CALLBACK_URL")


@pytest.mark.parametrize("query", ["", "?callbackURL=", "?callback=", "?callback=x", "?callback=a.b.c"])
def test_without_a_callback_it_redirects_to_the_page_of_larder(ada: User, query: str) -> None:
    token = issue_reset_token(ada, now=clock.now())
    reply = Browser().get(f"/reset-password/{token}{query}")
    page = f"https://{DOMAIN}/reset-password?token={token}"
    # Our page shows a password manager which address the password is for. No server gets that part.
    assert reply.headers["location"] == f"{page}#email=ada%40example.com"


def test_it_redirects_only_to_trusted_pages(ada: User) -> None:
    token = issue_reset_token(ada, now=clock.now())
    reply = Browser().get(f"/reset-password/{token}?callbackURL=https%3A%2F%2Fevil.example")
    assert reply.refusal == (403, "INVALID_CALLBACK_URL")
    assert token not in reply.body.decode()
