"""Users, as the operator makes them."""

import pytest

from larder import clock
from larder.accounts.models import EmailTaken
from larder.accounts.service import create_user, find_user_by_email
from larder.errors import InvalidRequest


def test_a_user_is_found_by_address_in_any_letter_case(aws_in_memory: None) -> None:
    ada = create_user("Ada@Example.com", "Ada", now=clock.now())
    assert ada.email == "ada@example.com"
    assert find_user_by_email(" ADA@example.COM ") == ada
    assert find_user_by_email("bob@example.com") is None


def test_an_address_belongs_to_one_user(aws_in_memory: None) -> None:
    create_user("ada@example.com", "Ada", now=clock.now())
    with pytest.raises(EmailTaken):
        create_user("ADA@example.com", "Another Ada", now=clock.now())


@pytest.mark.parametrize("email", ["", "ada", "@example.com", "ada@", "a b@c", "a@b@c", "a\x00@b"])
def test_a_bad_address_is_refused(aws_in_memory: None, email: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^email: "):
        create_user(email, "Ada", now=clock.now())
