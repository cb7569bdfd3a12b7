"""GET /join"""

import pytest

from tests.page import opened
from tests.requests import Sender

PATH = "/join"


def test_the_page_names_the_joining_user_before_it_asks(environment: pytest.MonkeyPatch) -> None:
    order = ["invitation-email", "not-you", "invitation-form"]
    assert [one for one in opened(PATH).ids if one in order] == order


def test_users_can_sign_in_and_sign_up_on_the_page(environment: pytest.MonkeyPatch) -> None:
    assert {"sign-in-form", "sign-up-form"} <= set(opened(PATH).ids)


def test_the_token_is_not_in_the_page(environment: pytest.MonkeyPatch) -> None:
    assert Sender(None, query="token=abc%22%3E")("GET", PATH) == Sender(None)("GET", PATH)
