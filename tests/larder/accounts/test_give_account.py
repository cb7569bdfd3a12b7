"""The operator moves an account to another address, also during concurrent requests."""

import pytest

from larder import clock
from larder.accounts import service
from larder.accounts.email_links import follow_verification_token
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import EmailTaken, User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import check_credentials, create_user, find_user, find_user_by_email
from larder.accounts.sessions import find_session, start_session
from larder.accounts.sign_in import give_account
from larder.errors import EmailUnchanged, InvalidEmail, InvalidEmailOrPassword, InvalidVerificationToken, NotSignedIn
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.mailbox import Mailbox

PASSWORD = "correct horse battery staple"


def make(email: str = "ada@example.com") -> User:
    return create_user(email, "Ada", password=PASSWORD, email_verified=True, now=clock.now())


def test_the_link_that_changed_the_address_does_not_work_again(mailbox: Mailbox) -> None:
    """The user has the address of the link again, and the link can still be within its hour."""
    ada, now = make(), clock.now()
    link = issue_verification_token(ada, new_email="thief@evil.example", now=now)
    stolen = follow_verification_token(link, MAIL_CONTEXT, now=now)
    assert stolen is not None
    assert stolen.email == "thief@evil.example"
    was, becomes = give_account(ada.id, "ada@example.com", now=now)
    assert (was.email, becomes.email) == ("thief@evil.example", "ada@example.com")
    with pytest.raises(InvalidVerificationToken):
        follow_verification_token(link, MAIL_CONTEXT, now=now)
    assert find_user(ada.id) == becomes


def test_a_concurrent_change_of_the_address_does_not_win(mailbox: Mailbox) -> None:
    ada, now = make(), clock.now()
    link = issue_verification_token(ada, new_email="thief@evil.example", now=now)

    def thief() -> None:
        follow_verification_token(link, MAIL_CONTEXT, now=now)

    with just_before("dynamodb", "TransactWriteItems", thief):
        was, becomes = give_account(ada.id, "ada@new.example", now=now)
    # The user leaves the address of that moment, and that address gets the notice.
    assert was.email == "thief@evil.example"
    assert find_user_by_email("ada@new.example") == becomes
    assert find_user_by_email("thief@evil.example") is None
    assert find_user_by_email("ada@example.com") is None


def test_a_session_started_concurrently_ends_too(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()
    signed_in = check_credentials("ada@example.com", PASSWORD)
    give_account(ada.id, "ada@new.example", now=now)
    _, session = start_session(signed_in, now=now)
    assert find_session(session, now=now) is None
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials("ada@new.example", PASSWORD)


def test_a_concurrently_taken_address_is_refused(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()

    def another() -> None:
        make("ada@new.example")

    with just_before("dynamodb", "TransactWriteItems", another), pytest.raises(EmailTaken):
        give_account(ada.id, "ada@new.example", now=now)
    assert find_user(ada.id) == ada
    assert check_credentials("ada@example.com", PASSWORD) == ada


def test_a_moved_account_is_not_an_operator_before_it_verifies_the_address(mailbox: Mailbox, option: SetOption) -> None:
    """The user must first open a link sent to the address, because the operator can mistype it."""
    option("operator_emails", "root@example.com")
    ada, now = make(), clock.now()
    _, becomes = give_account(ada.id, "root@example.com", now=now)
    assert not service.is_operator(becomes)
    token = issue_reset_token(becomes, now=now)
    assert service.is_operator(reset_password(token, PASSWORD, MAIL_CONTEXT, now=now))


def test_a_refused_change_has_no_effect(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()
    with pytest.raises(EmailUnchanged):
        give_account(ada.id, "Ada@Example.com", now=now)
    with pytest.raises(InvalidEmail):
        give_account(ada.id, "ada", now=now)
    with pytest.raises(NotSignedIn):
        give_account("x" * 32, "ada@new.example", now=now)
    assert find_user(ada.id) == ada
