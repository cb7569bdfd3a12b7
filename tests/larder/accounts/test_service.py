"""Users: creating them, finding them by any spelling of their address, and changing them concurrently."""

from dataclasses import replace

import pytest

from larder import clock
from larder.accounts import service
from larder.accounts.models import EmailTaken, User
from larder.accounts.service import check_credentials, create_user, find_user_by_email
from larder.errors import InvalidEmail
from tests.conftest import SetOption

PASSWORD = "correct horse battery staple"


def make(email: str = "ada@example.com", password: str | None = PASSWORD) -> User:
    return create_user(email, "Ada", password=password, now=clock.now())


def test_a_user_is_found_by_address_in_any_letter_case(aws_in_memory: None) -> None:
    ada = make("Ada@Example.com")
    assert ada.email == "ada@example.com"
    assert find_user_by_email(" ADA@example.COM ") == ada
    assert find_user_by_email("bob@example.com") is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ada@example.com", "ADA@example.com"),
        ("ada@example.com", "ada@EXAMPLE.com"),
        ("jos\u00e9@example.com", "jose\u0301@example.com"),
        ("jos\u00e9@example.com", "JOS\u00c9@example.com"),
        ("ada@ex\u00e4mple.com", "ada@xn--exmple-cua.com"),
        ("ada@example.com", "ada@\uff45xample.com"),
        ("strasse@example.com", "stra\u00dfe@example.com"),
    ],
)
def test_an_address_belongs_to_one_user_in_every_equivalent_spelling(
    aws_in_memory: None, first: str, second: str
) -> None:
    make(first)
    with pytest.raises(EmailTaken):
        make(second)


def test_the_right_password_returns_the_user(aws_in_memory: None) -> None:
    ada = make()
    assert check_credentials("ADA@example.com", PASSWORD) == ada


def test_a_hash_with_other_parameters_is_replaced_at_the_next_sign_in(aws_in_memory: None, option: SetOption) -> None:
    option("scrypt_cost", 1024)
    ada = make()
    before = service.read_account(ada.id).password_hash
    option("scrypt_cost", 2048)
    check_credentials(ada.email, PASSWORD)
    after = service.read_account(ada.id).password_hash
    assert before is not None
    assert after is not None
    assert (before.split("$")[1], after.split("$")[1]) == ("1024", "2048")
    assert check_credentials(ada.email, PASSWORD).id == ada.id


def test_a_changed_address_belongs_to_the_user_and_the_old_one_is_free(aws_in_memory: None) -> None:
    ada = make()
    new = service.change_account(
        ada.id, lambda account: replace(account, user=replace(account.user, email="ada@new.example"))
    ).user
    assert find_user_by_email("ada@new.example") == new
    assert find_user_by_email("ada@example.com") is None
    assert check_credentials("ada@new.example", PASSWORD) == new
    make("ada@example.com")


def test_an_address_cannot_be_changed_to_a_taken_one(aws_in_memory: None) -> None:
    ada = make()
    make("bob@example.com")
    with pytest.raises(EmailTaken):
        service.change_account(
            ada.id, lambda account: replace(account, user=replace(account.user, email="Bob@example.com"))
        )
    assert find_user_by_email("ada@example.com") == ada


def test_an_operator_is_in_the_option_and_has_a_verified_address(aws_in_memory: None, option: SetOption) -> None:
    option("operator_emails", "Root@Example.com, ops@example.com")
    verified = create_user("root@example.com", "Root", email_verified=True, now=clock.now())
    squatter = create_user("ops@example.com", "Ops", now=clock.now())
    other = create_user("ada@example.com", "Ada", email_verified=True, now=clock.now())
    assert [service.is_operator(user) for user in (verified, squatter, other)] == [True, False, False]


def test_a_padded_address_is_found_and_a_too_long_one_is_refused(aws_in_memory: None) -> None:
    ada = make()
    padded = " " * 1_000_000 + "ada@example.com"
    assert find_user_by_email(padded) == ada
    with pytest.raises(InvalidEmail):
        find_user_by_email("a" * 1_000_000 + "@example.com")
