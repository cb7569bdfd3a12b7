"""GET /turborepo/success"""

import pytest

from tests.page import opened
from tests.requests import Sender

PATH = "/turborepo/success"


def test_it_says_so_and_what_comes_next_without_any_script(environment: pytest.MonkeyPatch) -> None:
    shown = [one for one in opened(PATH).all("section") if "hidden" not in one.attributes]
    assert [one.id for one in shown] == ["success"]
    assert "turbo link" in "".join(opened(PATH).texts["pre"])


@pytest.mark.parametrize(
    "query",
    [
        "email=ada@acme.example",
        "loginError=%3Cscript%3E",
        "ssoEmail=a&teamName=b&ssoType=c",
        "error=Call+0900+666",
    ],
)
def test_nothing_that_a_client_adds_is_shown(environment: pytest.MonkeyPatch, query: str) -> None:
    assert Sender(None, query=query)("GET", PATH) == Sender(None)("GET", PATH)
