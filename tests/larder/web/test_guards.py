"""The guards of every endpoint of `/api/auth`: their order, their codes, and requests that pass."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from larder import aws
from larder.settings import settings
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.larder.web.endpoints import APP_ORIGIN, ask, outcome, post

pytestmark = pytest.mark.usefixtures("aws_in_memory")

PASSES = (200, None)
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
COOKIE = {"cookie": "better-auth.session_token=x"}
ELSEWHERE = "https://elsewhere.example"
CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
SIGN_IN = ["/sign-in/email", "/sign-up/email"]


class TestRateLimit:
    @pytest.fixture(autouse=True)
    def _switched_on(self, option: SetOption) -> None:
        option("http_rate_limit_enabled", "true")
        # No window ends while a test runs.
        option("http_rate_limit_window_seconds", 86_400)
        option("http_rate_limit_max", 2)

    def test_429_has_a_message_and_the_seconds_to_wait_but_no_code(self) -> None:
        replies = [ask("GET", "/get-session") for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert replies[2].json == {"message": "Too many requests. Please try again later."}
        wait = replies[2].headers["x-retry-after"]
        assert wait == replies[2].headers["retry-after"]
        assert 0 < int(wait) <= 86_400

    def test_each_address_and_each_path_is_counted_separately(self) -> None:
        for _ in range(3):
            ask("GET", "/get-session")
        assert ask("GET", "/list-sessions").status == 200
        assert ask("GET", "/get-session", client="192.0.2.2").status == 200
        assert ask("GET", "/get-session").status == 429

    def test_all_spellings_of_an_address_share_one_count(self) -> None:
        for client in ("192.0.2.1", "::ffff:192.0.2.1"):
            assert ask("GET", "/get-session", client=client).status == 200
        assert ask("GET", "/get-session", client="::FFFF:c000:0201").status == 429

    def test_a_client_cannot_count_as_another(self) -> None:
        for forged in range(2):
            ask("GET", "/get-session", headers={"x-forwarded-for": f"198.51.100.{forged}"})
        reply = ask("GET", "/get-session", headers={"x-forwarded-for": "198.51.100.9"})
        assert reply.status == 429

    def test_paths_with_link_tokens_share_one_count(self) -> None:
        pattern = "/reset-password/<token>"
        replies = [ask("GET", f"/reset-password/{token}", pattern=pattern) for token in "abc"]
        assert replies[2].status == 429

    def test_the_verification_of_keys_is_not_counted(self) -> None:
        assert {post("/api-key/verify").status for _ in range(10)} == {200}
        assert aws.dynamodb().scan(TableName=settings().rate_limits_table)["Count"] == 0

    def test_requests_pass_if_the_table_fails(self) -> None:
        with unreachable("dynamodb", "UpdateItem"):
            assert {ask("GET", "/get-session").status for _ in range(3)} == {200}

    def test_the_rate_limit_is_first_and_counts_requests_that_are_refused_later(self) -> None:
        headers = {**COOKIE, "content-type": "text/plain"}
        replies = [ask("POST", "/update-user", body=b"x", headers=headers) for _ in range(3)]
        assert [reply.status for reply in replies] == [415, 415, 429]


class TestBody:
    def test_the_handler_gets_the_body(self) -> None:
        assert post("/update-user", {"name": "Ada é", "n": [1]}).json == {"name": "Ada é", "n": [1]}

    @pytest.mark.parametrize("headers", [{}, JSON, FORM, {"content-type": "text/plain"}])
    def test_no_body_is_the_same_as_an_empty_object(self, headers: dict[str, str]) -> None:
        assert ask("POST", "/sign-out", headers=headers).json == {}

    @pytest.mark.parametrize(
        "media_type",
        ["application/json", "application/json; charset=utf-8", "Application/JSON", " application/json ;x"],
    )  # fmt: skip
    def test_json_is_accepted(self, media_type: str) -> None:
        reply = ask("POST", "/update-user", body=b'{"a":1}', headers={"content-type": media_type})
        assert reply.json == {"a": 1}

    @pytest.mark.parametrize(
        "media_type", ["", "text/plain", "multipart/form-data", "application/jsonp", "application/vnd.api+json",
                       "text/plain;application/json", "application/x-www-form-urlencoded"],
    )  # fmt: skip
    def test_415_for_another_media_type(self, media_type: str) -> None:
        reply = ask("POST", "/update-user", body=b'{"a":1}', headers={"content-type": media_type})
        assert outcome(reply) == (415, "UNSUPPORTED_MEDIA_TYPE")

    def test_415_without_a_media_type(self) -> None:
        assert ask("POST", "/update-user", body=b"{}").status == 415

    @pytest.mark.parametrize(
        "body", [b"{", b" ", b"\xff", b"\x00", b"{'a':1}", b"NaN", b'{"a":Infinity}', b"[" * 50_000, b"1" * 5000]
    )  # fmt: skip
    def test_400_for_bad_json(self, body: bytes) -> None:
        assert outcome(ask("POST", "/update-user", body=body, headers=JSON)) == (400, "BAD_REQUEST")

    @pytest.mark.parametrize("path", SIGN_IN)
    def test_forms_are_accepted_for_signing_in_and_up(self, path: str) -> None:
        body = b"email=ada%40acme.example&password=a+b%26c&callbackURL=&name=x&name=%C3%A9"
        assert ask("POST", path, body=body, headers=FORM).json == {
            "email": "ada@acme.example",
            "password": "a b&c",
            "callbackURL": "",
            "name": "é",
        }

    @pytest.mark.parametrize("body", [b"\xff", b"a=%ff", b"&".join([b"a=1"] * 101)])
    def test_400_for_a_bad_form(self, body: bytes) -> None:
        reply = ask("POST", "/sign-in/email", body=body, headers=FORM)
        assert outcome(reply) == (400, "BAD_REQUEST")

    def test_the_body_of_a_get_is_not_read(self) -> None:
        assert ask("GET", "/get-session", body=b"{").status == 200


ORIGINS: list[tuple[dict[str, str], str | None]] = [
    ({"origin": APP_ORIGIN}, None),
    ({"origin": "https://a.preview.example.org"}, None),
    ({"referer": f"{APP_ORIGIN}/profile?x=1"}, None),
    ({"origin": APP_ORIGIN, "referer": ELSEWHERE}, None),
    ({}, "MISSING_OR_NULL_ORIGIN"),
    ({"origin": ""}, "MISSING_OR_NULL_ORIGIN"),
    ({"origin": "null"}, "MISSING_OR_NULL_ORIGIN"),
    ({"origin": "null", "referer": APP_ORIGIN}, "MISSING_OR_NULL_ORIGIN"),
    ({"origin": ELSEWHERE}, "INVALID_ORIGIN"),
    ({"origin": ELSEWHERE, "referer": APP_ORIGIN}, "INVALID_ORIGIN"),
    ({"referer": f"{ELSEWHERE}/?{APP_ORIGIN}"}, "INVALID_ORIGIN"),
    ({"origin": f"{APP_ORIGIN}.elsewhere.example"}, "INVALID_ORIGIN"),
    ({"origin": f"{APP_ORIGIN}:8443"}, "INVALID_ORIGIN"),
    ({"origin": APP_ORIGIN.replace("https", "http")}, "INVALID_ORIGIN"),
    ({"origin": f"{APP_ORIGIN}, {ELSEWHERE}"}, "INVALID_ORIGIN"),
    ({"origin": f"{APP_ORIGIN}@elsewhere.example"}, "INVALID_ORIGIN"),
    ({"origin": "NULL"}, "INVALID_ORIGIN"),
    ({"origin": "/"}, "INVALID_ORIGIN"),
    ({"origin": "file://"}, "INVALID_ORIGIN"),
]


class TestOrigin:
    @pytest.fixture(autouse=True)
    def _trusted(self, option: SetOption) -> None:
        option("trusted_origins", "https://*.preview.example.org")

    @pytest.mark.parametrize("path", ["/update-user", "/api-key/verify", *SIGN_IN])
    @pytest.mark.parametrize(("headers", "code"), ORIGINS)
    def test_a_request_with_cookies_must_come_from_a_trusted_page(
        self, path: str, headers: dict[str, str], code: str | None
    ) -> None:
        reply = post(path, headers={**COOKIE, **headers})
        assert outcome(reply) == ((403, code) if code else PASSES)

    def test_any_cookie_requires_a_trusted_origin(self) -> None:
        for cookie in ("a=b", "a"):
            assert post("/sign-out", headers={"cookie": cookie}).status == 403

    @pytest.mark.parametrize("path", ["/update-user", "/api-key/verify"])
    @pytest.mark.parametrize("headers", [{}, {"origin": ELSEWHERE}, CROSS_SITE])
    def test_without_cookies_any_origin_passes(self, path: str, headers: dict[str, str]) -> None:
        assert outcome(post(path, headers=headers)) == PASSES

    @pytest.mark.parametrize("headers", [{}, {"origin": ELSEWHERE}, {"origin": "null"}])
    def test_a_get_request_passes_from_any_origin(self, headers: dict[str, str]) -> None:
        assert ask("GET", "/get-session", headers={**COOKIE, **headers}).status == 200

    @pytest.mark.parametrize("path", SIGN_IN)
    @pytest.mark.parametrize(
        ("headers", "code"),
        [
            ({}, None),
            *[(headers, code) for headers, code in ORIGINS if any(headers.values())],
            ({"sec-fetch-mode": "cors"}, "MISSING_OR_NULL_ORIGIN"),
            ({"sec-fetch-site": "same-origin"}, "MISSING_OR_NULL_ORIGIN"),
            ({"sec-fetch-dest": "empty"}, "MISSING_OR_NULL_ORIGIN"),
            ({"sec-fetch-mode": "cors", "origin": APP_ORIGIN}, None),
            ({"sec-fetch-mode": "cors", "origin": ELSEWHERE}, "INVALID_ORIGIN"),
            ({**CROSS_SITE, "origin": ELSEWHERE}, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"),
            ({**CROSS_SITE, "origin": APP_ORIGIN}, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"),
            (CROSS_SITE, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"),
        ],
    )
    def test_a_browser_must_sign_in_from_a_trusted_page_even_without_cookies(
        self, path: str, headers: dict[str, str], code: str | None
    ) -> None:
        assert outcome(post(path, headers=headers)) == ((403, code) if code else PASSES)

    def test_a_cross_site_form_cannot_sign_in(self) -> None:
        headers = {**FORM, **CROSS_SITE, "origin": ELSEWHERE}
        reply = ask("POST", "/sign-in/email", body=b"email=m&password=p", headers=headers)
        assert outcome(reply) == (403, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED")

    def test_a_cross_site_form_cannot_sign_out(self) -> None:
        """The request has no cookies, but the reply would clear the session cookie."""
        headers = {**FORM, **CROSS_SITE, "origin": ELSEWHERE}
        reply = ask("POST", "/sign-out", body=b"", headers=headers)
        assert outcome(reply) == (403, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED")

    @pytest.mark.parametrize("headers", [{}, {"sec-fetch-mode": "cors"}, {"origin": ELSEWHERE}])
    def test_a_client_without_cookies_can_sign_out(self, headers: dict[str, str]) -> None:
        assert outcome(post("/sign-out", headers=headers)) == PASSES

    def test_the_origin_is_checked_after_the_body(self) -> None:
        reply = ask("POST", "/update-user", body=b"{", headers={**COOKIE, **JSON})
        assert reply.status == 400


CODES = {
    "callbackURL": "INVALID_CALLBACK_URL",
    "redirectTo": "INVALID_REDIRECT_URL",
    "errorCallbackURL": "INVALID_ERROR_CALLBACK_URL",
    "newUserCallbackURL": "INVALID_NEW_USER_CALLBACK_URL",
}


@pytest.mark.parametrize(("field", "code"), CODES.items())
class TestCallbacks:
    @pytest.mark.parametrize("url", [ELSEWHERE, "//elsewhere.example", "/\\x", "javascript:alert(1)", "x"])
    def test_403_for_an_untrusted_callback(self, field: str, code: str, url: str) -> None:
        query = f"{field}={quote(url)}"
        assert outcome(post("/sign-in/email", {field: url})) == (403, code)
        assert outcome(post("/sign-in/email", query=query)) == (403, code)
        assert outcome(ask("GET", "/verify-email", query=query)) == (403, code)
        body = query.encode()
        assert outcome(ask("POST", "/sign-in/email", body=body, headers=FORM)) == (403, code)

    @pytest.mark.parametrize("url", ["/", "/welcome?x=1", f"{APP_ORIGIN}/welcome", ""])
    def test_a_trusted_callback_passes(self, field: str, code: str, url: str) -> None:
        assert outcome(post("/sign-in/email", {field: url})) == PASSES
        assert ask("GET", "/verify-email", query=f"{field}={quote(url)}").status == 200

    @pytest.mark.parametrize("value", [None, 1, True, [ELSEWHERE], {"a": ELSEWHERE}])
    def test_a_callback_of_the_wrong_type_is_left_to_the_handlers_validation(
        self, field: str, code: str, value: Any
    ) -> None:
        assert outcome(post("/sign-in/email", {field: value})) == PASSES

    def test_of_two_callbacks_the_one_that_the_handler_gets_is_checked(self, field: str, code: str) -> None:
        last = f'{{"{field}":"/","{field}":"{ELSEWHERE}"}}'.encode()
        assert outcome(ask("POST", "/sign-in/email", body=last, headers=JSON)) == (403, code)
        joined = f"{field}=/&{field}={quote(ELSEWHERE)}"
        assert outcome(ask("GET", "/verify-email", query=joined)) == (403, code)

    def test_the_callback_is_checked_after_the_origin(self, field: str, code: str) -> None:
        reply = post("/sign-in/email", {field: ELSEWHERE}, headers=COOKIE)
        assert outcome(reply) == (403, "MISSING_OR_NULL_ORIGIN")

    def test_the_reply_does_not_repeat_the_callback(self, field: str, code: str) -> None:
        reply = post("/sign-in/email", {field: "https://elsewhere.example/<script>"})
        assert "elsewhere" not in json.dumps([reply.headers, reply.json])


@pytest.mark.parametrize("body", [[], [ELSEWHERE], "x", 1, None, True])
def test_a_body_that_is_not_an_object_is_left_to_the_handlers_validation(body: Any) -> None:
    reply = ask("POST", "/update-user", body=json.dumps(body).encode(), headers=JSON)
    assert (reply.status, reply.json) == (200, body)


def test_404_without_a_body_for_an_unknown_path() -> None:
    reply = ask("GET", "/reset-password/a%20b/c", pattern="/reset-password/<token>")
    assert (reply.status, reply.body) == (404, b"")
