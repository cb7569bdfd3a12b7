"""POST /api/auth/turbo-login"""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import list_keys
from larder.api_keys.models import ApiKey
from larder.hashing import hash_key
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.functions.api_keys.people import stored_keys
from tests.functions.pages.addresses import NOT_LOOPBACK, STATES
from tests.functions.pages.conftest import CLIENT, PATH, STATE
from tests.requests import DOMAIN, Browser, Cloud, Reply, Sender, browser_of

BODY = {"redirectUri": CLIENT, "state": STATE, "name": "turbo on Linux"}


def grant(browser: Browser, **body: Any) -> Reply:
    return browser.post(PATH, {**BODY, **body})


def token_in(reply: Reply) -> str:
    """The token that the browser passes to turbo."""
    assert reply.status == 200, reply.body
    (token,) = parse_qs(urlsplit(reply.json["url"]).query)["token"]
    return token


def key_of(user: User, token: str) -> ApiKey:
    (key,) = (key for key in list_keys(user.id) if key.key_hash == hash_key(token))
    return key


def keys_of(cloud: Cloud) -> int:
    """The number of keys in addition to the first one of `cloud`."""
    return len(stored_keys()) - 1


def test_a_session_that_is_not_fresh_needs_the_password(cloud: Cloud, option: SetOption) -> None:
    """A thief of an old session must not get a key that outlives it."""
    option("scrypt_cost", 1024)
    option("http_rate_limit_enabled", "true")  # so that wrong passwords count
    eve = create_user("eve@acme.example", "Eve", password=PASSWORD, now=clock.now())
    _, token = start_session(eve, now=clock.now() - timedelta(days=1))
    late = browser_of(eve, token=token)
    shown = late.get(f"{PATH}?redirect_uri={CLIENT}")
    assert shown.json["user"]["needsPassword"] is True
    assert grant(late).refusal == (403, "SESSION_NOT_FRESH")
    assert grant(late, password="wrong").refusal == (400, "INVALID_PASSWORD")
    assert list_keys(eve.id) == []
    assert grant(late, password=PASSWORD).status == 200
    assert len(list_keys(eve.id)) == 1


def test_consent_creates_a_key_with_a_name_and_an_expiry(browser: Browser, cloud: Cloud) -> None:
    reply = grant(browser)
    token = token_in(reply)
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json == {"url": f"{CLIENT}/?token={token}&state={STATE}"}
    key = key_of(cloud.user, token)
    assert (key.name, key.team_id) == ("turbo on Linux", None)
    assert key.permissions == {"artifacts": ("read", "write")}
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days == 90
    assert Sender(token)("GET", "/v2/user").json["user"]["email"] == "ada@acme.example"
    assert Sender(token, slug="acme")("PUT", "/v8/artifacts/abc", body=b"x").status == 202


def test_logout_deletes_the_key(browser: Browser, cloud: Cloud) -> None:
    token = token_in(grant(browser))
    assert Sender(token)("DELETE", "/v3/user/tokens/current").status == 200
    assert Sender(token)("GET", "/v2/user").status == 401
    assert keys_of(cloud) == 0


def test_a_key_for_one_team_works_only_for_that_team(browser: Browser, cloud: Cloud) -> None:
    create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    token = token_in(grant(browser, teamId=cloud.team.id))
    assert key_of(cloud.user, token).team_id == cloud.team.id
    teams = Sender(token)("GET", "/v2/teams").json["teams"]
    assert [team["slug"] for team in teams] == ["acme"]
    assert Sender(token, slug="other")("GET", "/v8/artifacts/status").status == 403


def test_a_viewer_gets_a_key_that_reads(cloud: Cloud) -> None:
    vera = create_user("vera@acme.example", "Vera", now=clock.now())
    add_member(cloud.team.id, vera.id, Role.VIEWER, now=clock.now())
    token = token_in(grant(browser_of(vera), teamId=cloud.team.id))
    assert key_of(vera, token).permissions == {"artifacts": ("read",)}


def test_the_key_has_only_artifact_permissions_whatever_the_default_is(
    browser: Browser, cloud: Cloud, option: SetOption
) -> None:
    option("default_key_permissions", '{"artifacts":["read"],"deploys":["run"]}')
    token = token_in(grant(browser))
    assert key_of(cloud.user, token).permissions == {"artifacts": ("read", "write")}


def test_403_for_another_users_team(cloud: Cloud) -> None:
    mallory = browser_of(create_user("mallory@elsewhere.example", "Mallory", now=clock.now()))
    assert grant(mallory, teamId=cloud.team.id).refusal == (403, "NOT_A_TEAM_MEMBER")
    assert grant(mallory, teamId="team_nobody").refusal == (403, "NOT_A_TEAM_MEMBER")
    assert grant(mallory, team="acme").refusal == (404, "TEAM_NOT_FOUND")
    assert keys_of(cloud) == 0


def test_an_sso_login_returns_a_code_and_creates_no_key_yet(browser: Browser, cloud: Cloud) -> None:
    code = token_in(grant(browser, team="acme"))
    assert len(code) == 32
    assert keys_of(cloud) == 0
    assert Sender(code)("GET", "/v2/user").status == 401


@pytest.mark.parametrize("state", STATES)
def test_the_state_is_returned_unchanged(browser: Browser, state: str) -> None:
    url = grant(browser, state=state).json["url"]
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url
    parts = urlsplit(url)
    assert (f"{parts.scheme}://{parts.netloc}", parts.path, parts.fragment) == (CLIENT, "/", "")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    assert [name for name, _ in parameters] == ["token", "state"]
    assert parameters[1][1] == state
    # The client reads at most 8 kB of the request line.
    assert len(url) < 7000


def test_no_state_is_returned_if_none_was_sent(browser: Browser) -> None:
    assert "state" not in grant(browser, state=None).json["url"]


@pytest.mark.parametrize("state", ["x" * 513])
def test_400_for_an_invalid_state(browser: Browser, cloud: Cloud, state: object) -> None:
    assert grant(browser, state=state).refusal == (400, "VALIDATION_ERROR")
    assert keys_of(cloud) == 0


def test_400_for_an_address_that_is_not_this_computer(browser: Browser, cloud: Cloud) -> None:
    for redirect_uri in NOT_LOOPBACK:
        reply = grant(browser, redirectUri=redirect_uri)
        assert reply.refusal == (400, "REDIRECT_IS_NOT_LOOPBACK"), redirect_uri
    assert keys_of(cloud) == 0


@pytest.mark.parametrize("client", ["http://localhost:1", "http://[::1]:65535", CLIENT + "/"])
def test_the_token_is_sent_to_the_clients_address(browser: Browser, client: str) -> None:
    url = grant(browser, redirectUri=client).json["url"]
    assert url.startswith(f"{client.rstrip('/')}/?token=")


# ------------------------------------------------------------------------------ refused callers


OTHERS = [
    "https://evil.example", f"https://{DOMAIN}.evil.example", f"https://evil-{DOMAIN}", f"http://{DOMAIN}",
    f"https://{DOMAIN}:8443", f"https://app.{DOMAIN}", "https://trusted.example", "null", "", "file://",
    "http://127.0.0.1:9789",
]  # fmt: skip


@pytest.mark.parametrize("origin", OTHERS)
def test_403_for_another_origin_even_a_trusted_one(
    browser: Browser, cloud: Cloud, option: SetOption, origin: str
) -> None:
    option("trusted_origins", "https://trusted.example")
    reply = browser.post(PATH, BODY, headers={"origin": origin})
    assert reply.status == 403
    assert reply.json["code"] in ("INVALID_ORIGIN", "MISSING_OR_NULL_ORIGIN")
    assert keys_of(cloud) == 0


@pytest.mark.parametrize("site", ["same-site", "cross-site", "none"])
def test_403_for_requests_that_do_not_come_from_our_own_page(browser: Browser, cloud: Cloud, site: str) -> None:
    reply = browser.post(PATH, BODY, headers={"sec-fetch-site": site})
    assert reply.refusal == (403, "INVALID_ORIGIN")
    assert keys_of(cloud) == 0


@pytest.mark.parametrize("is_signed_in", [False, True])
def test_401_for_a_key_even_with_a_session(
    browser: Browser, cloud: Cloud, option: SetOption, is_signed_in: bool
) -> None:
    option("session_for_api_keys", "true")
    sender = browser if is_signed_in else Browser()
    reply = sender.post(PATH, BODY, headers={"x-api-key": cloud.token})
    assert reply.refusal == (401, "UNAUTHORIZED")
    assert keys_of(cloud) == 0


@pytest.mark.parametrize("name", ["x" * 33, "a\x1b[31m", "a\nb"])
def test_400_for_an_invalid_key_name(browser: Browser, cloud: Cloud, name: str) -> None:
    assert grant(browser, name=name).status == 400
    assert keys_of(cloud) == 0


def test_without_a_name_the_key_is_called_turbo(browser: Browser, cloud: Cloud) -> None:
    assert key_of(cloud.user, token_in(grant(browser, name=None))).name == "turbo"


def test_the_token_is_in_no_log(
    browser: Browser, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    tokens = [token_in(grant(browser)), token_in(grant(browser, team="acme"))]
    seen = capsys.readouterr().out + caplog.text
    assert "answered" in seen
    for secret in [*tokens, *map(hash_key, tokens)]:
        assert secret not in seen
