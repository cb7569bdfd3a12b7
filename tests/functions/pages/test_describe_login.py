"""GET /api/auth/turbo-login"""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.functions.pages.addresses import NOT_LOOPBACK
from tests.functions.pages.conftest import CLIENT, PATH
from tests.requests import DOMAIN, Browser, Cloud, Reply, browser_of

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0.0.0"
SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15"


def describe(browser: Browser, redirect_uri: str = CLIENT, **query: str) -> Reply:
    return browser.get(f"{PATH}?{urlencode({'redirect_uri': redirect_uri, **query})}")


def offered(reply: Reply) -> Any:
    assert reply.status == 200, reply.body
    return reply.json["token"]


def test_without_a_session_it_shows_only_the_clients_address(cloud: Cloud) -> None:
    reply = describe(Browser())
    assert reply.json == {"client": CLIENT, "user": None, "token": None}
    assert describe(Browser(), team="acme").json == reply.json


def test_a_signed_in_user_sees_the_key_that_turbo_would_get(browser: Browser, cloud: Cloud) -> None:
    reply = describe(browser)
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json["user"] == {"email": "ada@acme.example", "name": "Ada", "needsPassword": False}
    token = offered(reply)
    assert (token["name"], token["maxNameLength"], token["team"]) == ("turbo on this computer", 32, None)
    assert token["teams"] == [{"id": cloud.team.id, "slug": "acme", "name": "Acme", "writes": True}]
    ends = datetime.fromisoformat(token["expiresAt"]) - clock.now()
    assert timedelta(days=89, hours=23) < ends <= timedelta(days=90)


@pytest.mark.parametrize(("user_agent", "system"), [(FIREFOX, "Linux"), (CHROME, "Windows"), (SAFARI, "macOS")])
def test_the_key_is_named_after_the_browsers_system(browser: Browser, user_agent: str, system: str) -> None:
    reply = browser.get(f"{PATH}?redirect_uri={CLIENT}", headers={"user-agent": user_agent})
    assert offered(reply)["name"] == f"turbo on {system}"


def test_the_name_fits_the_configured_length(browser: Browser, option: SetOption) -> None:
    option("maximum_key_name_length", 9)
    assert offered(describe(browser))["name"] == "turbo on"
    option("maximum_key_name_length", 100)
    option("minimum_key_name_length", 30)
    assert offered(describe(browser))["name"] == "turbo on this computer........"


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"login_token_expires_in_seconds": 3600}, 3600),
        ({"maximum_key_expires_in_seconds": 600}, 600),
        ({"minimum_key_expires_in_seconds": 31_536_000}, 31_536_000),
        ({"disable_custom_key_expiry": "true", "default_key_expires_in_seconds": 60}, 60),
        ({"disable_custom_key_expiry": "true"}, None),
        ({"default_key_expires_in_seconds": 60}, 7_776_000),
    ],
)
def test_the_key_expires_as_the_options_say(
    browser: Browser, option: SetOption, options: dict[str, Any], seconds: int | None
) -> None:
    for name, value in options.items():
        option(name, value)
    ends = offered(describe(browser))["expiresAt"]
    if seconds is None:
        assert ends is None
    else:
        left = (datetime.fromisoformat(ends) - clock.now()).total_seconds()
        assert seconds - 10 < left <= seconds


def test_a_viewer_sees_that_the_key_only_reads(cloud: Cloud) -> None:
    vera = create_user("vera@acme.example", "Vera", now=clock.now())
    add_member(cloud.team.id, vera.id, Role.VIEWER, now=clock.now())
    assert offered(describe(browser_of(vera)))["teams"][0]["writes"] is False


@pytest.mark.parametrize("named_by", ["slug", "id"])
def test_a_login_for_a_team_shows_that_team(browser: Browser, cloud: Cloud, named_by: str) -> None:
    create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    token = offered(describe(browser, team=getattr(cloud.team, named_by)))
    assert (token["team"]["id"], token["teams"]) == (cloud.team.id, [])


@pytest.mark.parametrize("team", ["nobody", "team_nobody", "Acme", "../acme", "\u00e4", "a" * 5000])
def test_404_for_a_team_that_the_user_is_not_in(browser: Browser, cloud: Cloud, team: str) -> None:
    assert describe(browser, team=team).refusal == (404, "TEAM_NOT_FOUND")


def test_404_for_another_users_team(cloud: Cloud) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    for team in ("acme", cloud.team.id):
        assert describe(browser_of(mallory), team=team).refusal == (404, "TEAM_NOT_FOUND")


def test_400_for_an_sso_login_without_a_team(browser: Browser) -> None:
    assert describe(browser, team="").refusal == (400, "VALIDATION_ERROR")


def test_400_for_an_address_that_is_not_this_computer(browser: Browser) -> None:
    for redirect_uri in NOT_LOOPBACK:
        assert describe(browser, redirect_uri).refusal == (400, "REDIRECT_IS_NOT_LOOPBACK"), redirect_uri


def test_400_without_an_address(browser: Browser) -> None:
    assert browser.get(PATH).refusal == (400, "REDIRECT_IS_NOT_LOOPBACK")


def test_400_for_two_addresses(browser: Browser) -> None:
    twice = f"redirect_uri={CLIENT}&redirect_uri=http://evil.example"
    assert browser.get(f"{PATH}?{twice}").refusal == (400, "REDIRECT_IS_NOT_LOOPBACK")


def test_400_for_the_port_of_this_service_itself(browser: Browser, option: SetOption) -> None:
    option("base_url", "http://localhost:3000")
    for address in ("http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000/"):
        assert describe(browser, address).refusal == (400, "REDIRECT_IS_NOT_LOOPBACK")
    assert describe(browser, "http://127.0.0.1:3001").status == 200


@pytest.mark.parametrize(
    ("redirect_uri", "client"),
    [
        ("http://127.0.0.1:9789", "http://127.0.0.1:9789"),
        ("http://127.0.0.1:9789/", "http://127.0.0.1:9789"),
        ("http://localhost:1", "http://localhost:1"),
        ("http://[::1]:65535", "http://[::1]:65535"),
    ],
)
def test_addresses_of_this_computer_are_accepted(browser: Browser, redirect_uri: str, client: str) -> None:
    assert describe(browser, redirect_uri).json["client"] == client


def test_it_sets_no_cookie_and_other_origins_cannot_read_it(browser: Browser) -> None:
    reply = browser.get(f"{PATH}?redirect_uri={CLIENT}", headers={"origin": f"https://other.{DOMAIN}"})
    assert reply.cookies == ()
    assert not [name for name in reply.headers if name.startswith("access-control-")]
