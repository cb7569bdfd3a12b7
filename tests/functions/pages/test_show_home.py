"""GET /"""

import pytest

from tests.page import opened


def test_it_says_what_to_paste(environment: pytest.MonkeyPatch) -> None:
    page = opened("/")
    text = "".join(page.texts["pre"])
    for line in ("turbo login", "turbo link", "turbo run build", "TURBO_TOKEN="):
        assert line in text
    # The script fills in the address that the page has come from.
    assert len([one for one in page.elements if "data-home" in one.attributes]) == 4


def test_it_is_there_for_whoever_comes_from_a_mail(environment: pytest.MonkeyPatch) -> None:
    links = [link.attributes["href"] for link in opened("/").all("a")]
    assert links == ["/reset-password"]
