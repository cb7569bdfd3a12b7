"""GET /sign-in"""

import pytest

from tests.page import opened
from tests.requests import Sender

PATH = "/sign-in"


def test_users_can_sign_in_and_sign_up_on_the_page(environment: pytest.MonkeyPatch) -> None:
    assert {"sign-in-form", "sign-up-form"} <= set(opened(PATH).ids)


def test_the_address_to_continue_at_is_not_in_the_page(environment: pytest.MonkeyPatch) -> None:
    plain = Sender(None)("GET", PATH)
    assert Sender(None, query="next=https%3A%2F%2Fevil.example%2F")("GET", PATH) == plain


@pytest.mark.parametrize("path", ["/verified", "/reset-password"])
def test_pages_that_end_with_a_password_link_to_it(environment: pytest.MonkeyPatch, path: str) -> None:
    assert PATH in [link.attributes["href"] for link in opened(path).all("a")]
