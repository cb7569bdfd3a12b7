"""GET /"""

import pytest

from tests.page import opened


def test_the_page_shows_the_commands_to_paste(environment: pytest.MonkeyPatch) -> None:
    page = opened("/")
    text = "".join(page.texts["pre"])
    for line in ("turbo login", "turbo link", "turbo run build", "TURBO_TOKEN="):
        assert line in text
    # The script fills in the address of the page.
    assert len([element for element in page.elements if "data-home" in element.attributes]) == 4


def test_the_page_answers_links_from_mail(environment: pytest.MonkeyPatch) -> None:
    links = [link.attributes["href"] for link in opened("/").all("a")]
    assert links == ["/console", "/docs/trust", "/console", "/docs", "/reset-password"]
