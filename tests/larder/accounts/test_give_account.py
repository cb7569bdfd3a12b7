"""The operator gives an account to whoever has another address, whatever happens at that moment."""

import pytest

from larder import clock
from larder.accounts import service
from larder.accounts.links import (
    follow_verification_token,
    issue_reset_token,
    issue_verification_token,
    reset_password,
)
from larder.accounts.models import EmailTaken, User
from larder.accounts.service import check_credentials, create_user, find_user, find_user_by_email
from larder.accounts.sessions import find_session, start_session
from larder.accounts.sign_in import give_account
from larder.errors import (
    EmailUnchanged,
    InvalidEmail,
    InvalidEmailOrPassword,
    InvalidVerificationToken,
    NotSignedIn,
)
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.accounts.conftest import VISIT
from tests.mailbox import Mailbox

PASSWORD = "correct horse battery staple"


def make(email: str = "ada@example.com") -> User:
    return create_user(email, "Ada", password=PASSWORD, email_verified=True, now=clock.now())


def test_the_link_that_took_an_account_over_does_not_take_it_again(mailbox: Mailbox) -> None:
    """The address that it was made for is the user's again, and the hour that it lives may not be over."""
    ada, now = make(), clock.now()
    link = issue_verification_token(ada, new_email="thief@evil.example", now=now)
    assert follow_verification_token(link, VISIT, now=now).email == "thief@evil.example"
    was, becomes = give_account(ada.id, "ada@example.com", now=now)
    assert (was.email, becomes.email) == ("thief@evil.example", "ada@example.com")
    with pytest.raises(InvalidVerificationToken):
        follow_verification_token(link, VISIT, now=now)
    assert find_user(ada.id) == becomes


def test_whoever_changes_the_address_at_the_same_moment_does_not_keep_it(mailbox: Mailbox) -> None:
    ada, now = make(), clock.now()
    link = issue_verification_token(ada, new_email="thief@evil.example", now=now)

    def thief() -> None:
        follow_verification_token(link, VISIT, now=now)

    with just_before("dynamodb", "TransactWriteItems", thief):
        was, becomes = give_account(ada.id, "ada@new.example", now=now)
    # It is the address at that moment that is left, and told of it.
    assert was.email == "thief@evil.example"
    assert find_user_by_email("ada@new.example") == becomes
    assert find_user_by_email("thief@evil.example") is None
    assert find_user_by_email("ada@example.com") is None


def test_a_session_that_begins_at_the_same_moment_is_over_too(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()
    signed_in = check_credentials("ada@example.com", PASSWORD)
    give_account(ada.id, "ada@new.example", now=now)
    _, session = start_session(signed_in, now=now)
    assert find_session(session, now=now) is None
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials("ada@new.example", PASSWORD)


def test_an_address_that_is_taken_at_the_same_moment_is_refused(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()

    def another() -> None:
        make("ada@new.example")

    with just_before("dynamodb", "TransactWriteItems", another), pytest.raises(EmailTaken):
        give_account(ada.id, "ada@new.example", now=now)
    assert find_user(ada.id) == ada
    assert check_credentials("ada@example.com", PASSWORD) == ada


def test_nobody_is_an_operator_by_an_address_that_was_given_to_them(
    mailbox: Mailbox, option: SetOption
) -> None:
    """Not before they have read mail that came there: the operator may have mistyped it."""
    option("operator_emails", "root@example.com")
    ada, now = make(), clock.now()
    _, becomes = give_account(ada.id, "root@example.com", now=now)
    assert not service.is_operator(becomes)
    token = issue_reset_token(becomes, now=now)
    assert service.is_operator(reset_password(token, PASSWORD, VISIT, end_keys=len, now=now))


def test_what_is_refused_changes_nothing(aws_in_memory: None) -> None:
    ada, now = make(), clock.now()
    with pytest.raises(EmailUnchanged):
        give_account(ada.id, "Ada@Example.com", now=now)
    with pytest.raises(InvalidEmail):
        give_account(ada.id, "ada", now=now)
    with pytest.raises(NotSignedIn):
        give_account("x" * 32, "ada@new.example", now=now)
    assert find_user(ada.id) == ada
