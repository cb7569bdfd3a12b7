"""GET /turborepo/token"""

import pytest

from tests.conftest import SetOption
from tests.page import opened
from tests.requests import Sender

PATH = "/turborepo/token"


@pytest.mark.parametrize(
    ("options", "signs_in", "signs_up"),
    [
        ({}, "true", "true"),
        ({"sign_up_policy": "invited"}, "true", "true"),
        ({"sign_up_policy": "closed"}, "true", "false"),
        ({"enable_email_and_password": "false"}, "false", "false"),
    ],
)
def test_the_page_passes_the_sign_up_options_to_its_script(
    environment: pytest.MonkeyPatch, option: SetOption, options: dict[str, str], signs_in: str, signs_up: str
) -> None:
    for name, value in options.items():
        option(name, value)
    body = opened(PATH).body
    assert (body["data-signs-in"], body["data-signs-up"]) == (signs_in, signs_up)


def test_the_page_passes_the_password_limits_and_its_address_to_its_script(
    environment: pytest.MonkeyPatch, option: SetOption
) -> None:
    option("minimum_password_length", 12)
    option("maximum_password_length", 64)
    option("base_url", "https://cache.acme.example")
    body = opened(PATH).body
    assert (body["data-shortest-password"], body["data-longest-password"]) == ("12", "64")
    assert body["data-base-url"] == "https://cache.acme.example"


def test_nothing_from_the_query_is_in_the_page(environment: pytest.MonkeyPatch) -> None:
    plain = Sender(None)("GET", PATH)
    hostile = Sender(None, query='redirect_uri="><script>alert(1)</script>&state=%0d%0aX:y')
    assert hostile("GET", PATH) == plain


def test_the_page_shows_who_gives_what_to_which_program_before_it_asks(environment: pytest.MonkeyPatch) -> None:
    page = opened(PATH)
    order = [
        "consent-email", "not-you", "consent-scope-name", "consent-rights", "consent-ends", "consent-team-id",
        "consent-name-field", "consent-client", "cancel",
    ]  # fmt: skip
    assert [one for one in page.ids if one in order] == order
