"""OPTIONS under /api/auth: the reply to a browser's CORS preflight."""

import pytest

from tests.conftest import SetOption
from tests.requests import Reply, deliver

APP = "https://app.example.com"
SIGN_IN = "/api/auth/sign-in/email"

pytestmark = pytest.mark.usefixtures("aws_in_memory")


@pytest.fixture(autouse=True)
def _trusted(option: SetOption) -> None:
    option("trusted_origins", f"{APP}, https://*.acme.example")


def announce(path: str = SIGN_IN, **headers: str) -> Reply:
    preflight = {"access-control-request-method": "POST", **headers}
    return deliver("OPTIONS", path, "", list(preflight.items()), b"")


@pytest.mark.parametrize("origin", [APP, "https://build.acme.example"])
@pytest.mark.parametrize("path", [SIGN_IN, "/api/auth/get-session", "/api/auth/api-key/list"])
def test_trusted_origins_can_send_json_and_cookies(origin: str, path: str) -> None:
    reply = announce(path, origin=origin)
    assert (reply.status, reply.body) == (204, b"")
    allowed = {name: value for name, value in reply.headers.items() if name.startswith("access-")}
    assert allowed == {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "Content-Type, Authorization, x-api-key",
        "access-control-expose-headers": "Link, Retry-After, X-Retry-After",
        "access-control-max-age": "7200",
    }
    assert reply.headers["vary"] == "Origin"


def test_preflight_allows_the_configured_api_key_headers(option: SetOption) -> None:
    option("api_key_headers", "x-larder-key, x-other")
    allowed = announce(origin=APP).headers["access-control-allow-headers"]
    assert allowed == "Content-Type, Authorization, x-larder-key, x-other"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MISSING_OR_NULL_ORIGIN"),
        ({"origin": "null"}, "MISSING_OR_NULL_ORIGIN"),
        ({"origin": "https://elsewhere.example"}, "INVALID_ORIGIN"),
        ({"origin": "http://app.example.com"}, "INVALID_ORIGIN"),
        ({"origin": "https://app.example.com.elsewhere.example"}, "INVALID_ORIGIN"),
        ({"origin": "https://a.b.acme.example"}, "INVALID_ORIGIN"),
        ({"origin": "https://app.example.com:8443"}, "INVALID_ORIGIN"),
        ({"origin": "app.example.com"}, "INVALID_ORIGIN"),
    ],
)
def test_preflight_of_an_untrusted_origin_is_refused_and_unreadable(headers: dict[str, str], code: str) -> None:
    reply = announce(**headers)
    assert (reply.status, reply.json["code"]) == (403, code)
    assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_without_trusted_origins_every_other_origin_is_refused(option: SetOption) -> None:
    option("trusted_origins", "")
    assert announce(origin=APP).status == 403
