"""GET /join"""

import pytest

from tests.page import opened
from tests.requests import Sender

PATH = "/join"


def test_it_says_who_would_join_before_it_asks(environment: pytest.MonkeyPatch) -> None:
    order = ["invitation-email", "not-you", "invitation-form"]
    assert [one for one in opened(PATH).ids if one in order] == order


def test_people_can_sign_in_and_up_on_it(environment: pytest.MonkeyPatch) -> None:
    assert {"sign-in-form", "sign-up-form"} <= set(opened(PATH).ids)


def test_the_token_does_not_get_into_it(environment: pytest.MonkeyPatch) -> None:
    assert Sender(None, query="token=abc%22%3E")("GET", PATH) == Sender(None)("GET", PATH)
