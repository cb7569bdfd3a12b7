"""GET /console and GET /console/{proxy+}"""

import gzip

import pytest

from tests.conftest import SetOption
from tests.requests import Sender

PATH = "/console"
VIEW = "/console/t/acme/keys"


def test_every_view_is_the_same_page(environment: pytest.MonkeyPatch) -> None:
    assert Sender(None)("GET", VIEW).body == Sender(None)("GET", PATH).body


@pytest.mark.parametrize("path", [f"/console/t/{slug}/protection" for slug in ("acme", "web")])
def test_the_view_of_protection_has_more_scripts(
    environment: pytest.MonkeyPatch, path: str
) -> None:
    more, usual = Sender(None)("GET", path), Sender(None)("GET", PATH)
    assert b"function CreateRule(" in more.body
    assert b"function CreateRule(" not in usual.body
    assert more.headers["etag"] != usual.headers["etag"]
    assert more.headers["content-security-policy"] != usual.headers["content-security-policy"]


def test_the_view_of_the_account_has_more_scripts(environment: pytest.MonkeyPatch) -> None:
    more, usual = Sender(None)("GET", "/console/account"), Sender(None)("GET", PATH)
    assert b"function Account(" in more.body
    assert b"function Account(" not in usual.body


def test_the_first_view_fits_into_45_kb(environment: pytest.MonkeyPatch) -> None:
    reply = Sender(None)("GET", PATH, headers={"accept-encoding": "gzip, br"})
    assert len(reply.body) <= 45_000
    assert gzip.decompress(reply.body) == Sender(None)("GET", PATH).body


def test_a_browser_keeps_the_page_and_asks_whether_it_has_changed(
    environment: pytest.MonkeyPatch,
) -> None:
    first = Sender(None)("GET", PATH)
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["vary"] == "Accept-Encoding"
    for known in (first.headers["etag"], f'"other", {first.headers["etag"]}'):
        again = Sender(None)("GET", VIEW, headers={"if-none-match": known})
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["cache-control"] == "no-cache"


def test_another_version_is_sent(environment: pytest.MonkeyPatch, option: SetOption) -> None:
    before = Sender(None)("GET", PATH).headers["etag"]
    option("retention_days", "31")
    reply = Sender(None)("GET", PATH, headers={"if-none-match": before})
    assert reply.status == 200
    assert reply.headers["etag"] != before
    assert b'data-retention-days="31"' in reply.body
