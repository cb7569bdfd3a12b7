"""Origins whose pages can read the replies of `/api/auth`."""

import pytest

from tests.conftest import SetOption
from tests.larder.web.endpoints import APP_ORIGIN, ask

APP = "https://app.example.com"
ALLOWED = "access-control-allow-origin"

pytestmark = pytest.mark.usefixtures("aws_in_memory")


@pytest.fixture(autouse=True)
def _trusted(option: SetOption) -> None:
    option("trusted_origins", APP)


def test_trusted_origins_can_read_replies_and_send_cookies() -> None:
    reply = ask("GET", "/get-session", headers={"origin": APP})
    assert reply.status == 200
    assert (reply.headers[ALLOWED], reply.headers["access-control-allow-credentials"]) == (APP, "true")
    assert reply.headers["vary"] == "Origin"


def test_trusted_origins_can_read_refusals(option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("http_rate_limit_window_seconds", 86_400)
    option("http_rate_limit_max", 1)
    replies = [ask("GET", "/get-session", headers={"origin": APP}) for _ in range(2)]
    assert [(reply.status, reply.headers[ALLOWED]) for reply in replies] == [(200, APP), (429, APP)]
    assert replies[1].headers["access-control-expose-headers"] == "Link, Retry-After, X-Retry-After"


@pytest.mark.parametrize(
    "origin", ["https://elsewhere.example", "null", "*", "", "https://app.example.com@x", APP_ORIGIN]
)
def test_other_origins_cannot_read_replies(origin: str) -> None:
    reply = ask("GET", "/get-session", headers={"origin": origin})
    assert reply.status == 200
    assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_the_spelling_of_an_origin_cannot_inject_into_the_header() -> None:
    reply = ask("GET", "/get-session", headers={"origin": "HTTPS://APP.example.com:443/x"})
    assert reply.headers[ALLOWED] == APP
