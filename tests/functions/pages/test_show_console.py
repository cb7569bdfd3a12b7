"""GET /console and GET /console/{proxy+}"""

import gzip

import pytest

from larder import project
from tests.conftest import SetOption
from tests.requests import Sender

PATH = "/console"
VIEW = "/console/t/acme/keys"


@pytest.mark.parametrize("view", ["t/acme", "t/acme/keys", "t/protection", "me", "me/settings", "new-team"])
def test_the_views_that_most_users_open_first_are_one_page(environment: pytest.MonkeyPatch, view: str) -> None:
    assert Sender(None)("GET", f"{PATH}/{view}").body == Sender(None)("GET", PATH).body


@pytest.mark.parametrize("view", ["t/acme/protection", "t/web/run", "me/artifacts", "account", "t/acme/nowhere"])
def test_all_other_views_are_one_page_with_more_scripts(environment: pytest.MonkeyPatch, view: str) -> None:
    more, first = Sender(None)("GET", f"{PATH}/{view}"), Sender(None)("GET", PATH)
    assert b"function CreateRule(" in more.body
    assert b"function Account(" in more.body
    assert b"function Account(" not in first.body
    assert b"function CreateRule(" not in first.body
    assert more.body == Sender(None)("GET", f"{PATH}/account").body
    assert more.headers["etag"] != first.headers["etag"]
    assert more.headers["content-security-policy"] != first.headers["content-security-policy"]


def test_the_first_view_fits_into_45_kb(environment: pytest.MonkeyPatch) -> None:
    reply = Sender(None)("GET", PATH, headers={"accept-encoding": "gzip, br"})
    assert len(reply.body) <= 45_000
    assert gzip.decompress(reply.body) == Sender(None)("GET", PATH).body


def test_a_browser_keeps_the_page_and_asks_whether_it_has_changed(environment: pytest.MonkeyPatch) -> None:
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


def test_it_links_to_the_documentation_and_says_its_version(
    environment: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f'data-docs="/docs" data-version="Larder {project.VERSION}"' in Sender(None)("GET", PATH).body.decode()
    monkeypatch.setattr(project, "DOCUMENTATION", "https://docs.example.com")
    assert b'data-docs="https://docs.example.com"' in Sender(None)("GET", PATH).body
