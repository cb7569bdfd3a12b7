"""Requests that match no route"""

import pytest

from tests.default_template import template
from tests.functions.pages.conftest import STATE
from tests.loaded import loaded_by
from tests.page import opened
from tests.requests import Reply, Sender

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PARAMETERS = {"{hash}": "abc", "{idOrSlug}": "acme", "{uid}": "u1", "{token}": STATE}


def ask(method: str, path: str, **headers: str) -> Reply:
    return Sender(None)(method, path, headers=headers)


@pytest.fixture(autouse=True)
def _environment(environment: pytest.MonkeyPatch) -> None:
    """No AWS at all: the function must make no call."""


# Another method of a known path ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v8/artifacts/abc", "GET, HEAD, OPTIONS, PUT"),
        ("POST", "/v8/artifacts/abc", "GET, HEAD, OPTIONS, PUT"),
        ("GET", "/v8/artifacts", "OPTIONS, POST"),
        ("PUT", "/v8/artifacts", "OPTIONS, POST"),
        # These names cannot be hashes: they are separate paths.
        ("DELETE", "/v8/artifacts/status", "GET, OPTIONS"),
        ("PATCH", "/v8/artifacts/events", "OPTIONS, POST"),
        ("POST", "/v1/artifacts/status", "PUT"),
        ("POST", "/v1/artifacts/abc", "DELETE, GET"),
        ("OPTIONS", "/v1/usage", "GET"),
        ("PUT", "/v2/teams/acme", "GET, PATCH"),
        ("GET", "/v1/teams/acme/members/u1", "DELETE, PATCH"),
        ("GET", "/v1/teams/acme/members/teams/join", "POST"),
        ("POST", "/", "GET"),
        ("HEAD", "/", "GET"),
        ("DELETE", "/openapi.json", "GET"),
    ],
)
def test_405_lists_the_methods_of_the_path(method: str, path: str, allowed: str) -> None:
    reply = ask(method, path)
    assert (reply.status, reply.code) == (405, "method_not_allowed")
    assert reply.headers["allow"] == allowed
    assert reply.headers["content-type"] == "application/json"
    assert (reply.json["code"], reply.json["message"]) == (reply.code, reply.message)
    assert allowed in reply.message


@pytest.mark.parametrize(
    "path", ["/api/auth/verify-email", "/api/auth/reset-password/{token}"], ids=["verify", "reset"]
)
def test_head_of_a_link_in_an_email_has_no_effect(path: str) -> None:
    """Mail scanners begin with it."""
    reply = ask("HEAD", path.format(token=STATE))
    assert (reply.status, reply.body) == (200, b"")


def test_405_under_api_auth_has_the_flat_shape_and_includes_options() -> None:
    reply = ask("GET", "/api/auth/sign-in/email")
    assert reply.refusal == (405, "METHOD_NOT_ALLOWED")
    assert reply.json.keys() == {"code", "message"}
    assert reply.headers["allow"] == "OPTIONS, POST"


def test_allow_lists_exactly_the_methods_of_the_path() -> None:
    """The request uses a method that no path has."""
    allowed: dict[str, set[str]] = {}
    routes = [one for one in template().routes if one.method != "ANY"]
    for route in routes:
        path = "/".join(PARAMETERS.get(part, part) for part in route.path.split("/"))
        if not route.path.endswith("+}"):
            allowed[route.path] = set(ask("PROPFIND", path).headers["allow"].split(", "))
    assert allowed == {
        path: {one.method for one in routes if one.path == path}
        | ({"OPTIONS"} if path.startswith("/api/auth/") else set())
        for path in allowed
    }


def test_a_browser_also_gets_405_for_another_method() -> None:
    reply = ask("GET", "/v1/teams/join", **BROWSER)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


# Unknown paths -----------------------------------------------------------------------------------

UNKNOWN = [
    "/nowhere", "/v8", "/v8/artifacts/", "/v8/artifacts/a/b", "/v9/artifacts/abc", "/v2/teams//members", "/api",
    "/OPENAPI.JSON", "/{hash}", "/v8/artifacts/abc/", "/.env", "/%2e%2e/%2e%2e/etc/passwd", "/%C3%A9clair",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", UNKNOWN)
def test_404_for_an_unknown_path(path: str, method: str) -> None:
    reply = ask(method, path)
    assert (reply.status, reply.code) == (404, "not_found")
    assert "allow" not in reply.headers


@pytest.mark.parametrize("path", ["/api/auth", "/api/auth/", "/api/auth/nothing", "/api/auth/ok/"])
def test_404_under_api_auth_has_no_body_like_better_auth(path: str) -> None:
    reply = ask("POST", path)
    assert (reply.status, reply.body) == (404, b"")


@pytest.mark.parametrize("path", ["/nowhere", "/api/auth/verify-emai"])
def test_a_browser_gets_a_page_with_a_link_home(path: str) -> None:
    page = opened(path, status=404)
    assert page.texts["h1"] == ["Page not found"]
    assert [link.attributes["href"] for link in page.all("a")] == ["/"]


def test_the_page_does_not_show_the_requested_url() -> None:
    replies = [ask("GET", path, **BROWSER) for path in ("/nowhere", "/%3Cscript%3Ealert(1)")]
    assert replies[0] == replies[1]


def test_a_post_that_accepts_html_gets_json() -> None:
    assert ask("POST", "/nowhere", **BROWSER).code == "not_found"


# Cost and log ------------------------------------------------------------------------------------


def test_no_credential_is_checked_and_the_log_has_no_path(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A mistyped link can contain a token."""
    assert ask("GET", f"/api/auth/reset-pasword/{STATE}", authorization="x" * 64).status == 404
    assert STATE not in capfd.readouterr().out + caplog.text


def test_it_starts_as_fast_as_a_page() -> None:
    more = loaded_by("pages.answer_unknown") - loaded_by("pages.show_login")
    assert more == {
        "larder.errors", "larder.web.errors", "larder.web.replies", "larder.web.replies.errors",
        "larder.web.unrouted", "pages.answer_unknown",
    }  # fmt: skip
