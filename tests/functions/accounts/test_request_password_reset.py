"""POST /api/auth/request-password-reset"""

from larder.accounts.email_jobs import ResetPassword
from larder.accounts.models import User
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Browser

PATH = "/request-password-reset"


def test_a_link_is_sent_to_the_users_address(ada: User, mailbox: Mailbox) -> None:
    reply = Browser().post(PATH, {"email": "ADA@example.com", "redirectTo": "/reset"})
    assert reply.status == 200
    assert reply.json == {
        "status": True,
        "message": "If this email exists in our system, check your email for the reset link",
    }
    (job,) = mailbox.jobs
    assert isinstance(job, ResetPassword)
    assert job.callback_url == "/reset"
    assert mailbox.deliver()[0].to == "ada@example.com"


def test_known_and_unknown_addresses_get_the_same_reply(ada: User, mailbox: Mailbox) -> None:
    replies, calls = [], []
    for email in ("ada@example.com", "nobody@example.com"):
        with counted() as made:
            replies.append(Browser().post(PATH, {"email": email}))
        calls.append(len(made.made))
    known, unknown = replies
    assert (known.status, known.body, known.headers) == (unknown.status, unknown.body, unknown.headers)
    assert calls == [0, 0]  # no lookup
    assert len(mailbox.deliver()) == 1


def test_no_password_is_reset_when_passwords_are_disabled(ada: User, mailbox: Mailbox, option: SetOption) -> None:
    option("enable_email_and_password", "false")
    reply = Browser().post(PATH, {"email": ada.email})
    assert reply.refusal == (400, "RESET_PASSWORD_DISABLED")
    assert mailbox.jobs == []
