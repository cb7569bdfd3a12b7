"""GET /turborepo/success"""

import pytest

from tests.page import opened
from tests.requests import Sender

PATH = "/turborepo/success"


def test_the_page_shows_success_and_the_next_step_without_a_script(environment: pytest.MonkeyPatch) -> None:
    shown = [one for one in opened(PATH).all("section") if "hidden" not in one.attributes]
    assert [one.id for one in shown] == ["success"]
    assert "turbo link" in "".join(opened(PATH).texts["pre"])


@pytest.mark.parametrize(
    "query",
    ["email=ada@acme.example", "loginError=%3Cscript%3E", "ssoEmail=a&teamName=b&ssoType=c", "error=Call+0900+666"],
)
def test_nothing_from_the_query_is_in_the_page(environment: pytest.MonkeyPatch, query: str) -> None:
    assert Sender(None, query=query)("GET", PATH) == Sender(None)("GET", PATH)
