"""The check that every reply of every test passes: tests/documented.py."""

import json

import pytest

from tests.documented import OF_EVERY_REPLY, undocumented

SIGN_OUT = "POST /api/auth/sign-out"
STATUS = "GET /v8/artifacts/status"
JSON = {"content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff"}
ENABLED = b'{"status":"enabled"}'


@pytest.mark.parametrize(
    ("status", "headers", "reply", "lacking"),
    [
        (418, {}, {"status": "enabled"}, "returns 418"),
        (200, {}, {"status": "on"}, "status"),
        (200, {"location": "/"}, {"status": "enabled"}, "with {'location'}"),
        (200, {"content-type": "text/plain"}, {}, "with text/plain"),
        (401, {}, {}, "without {'www-authenticate'}"),
    ],
)
def test_what_the_document_lacks_of_a_reply_is_named(
    status: int, headers: dict[str, str], reply: object, lacking: str
) -> None:
    body = json.dumps(reply).encode()
    assert lacking in str(undocumented(STATUS, status, {**JSON, **headers}, [], body))


@pytest.mark.parametrize("name", sorted(OF_EVERY_REPLY))
def test_every_reply_needs_the_security_headers(name: str) -> None:
    headers = {known: value for known, value in JSON.items() if known != name}
    assert f"without {{'{name}'}}" in str(undocumented(STATUS, 200, headers, [], ENABLED))


def test_only_some_replies_set_cookies() -> None:
    cookies = ["session=1"]
    assert undocumented(SIGN_OUT, 200, JSON, cookies, b'{"success":true}') is None
    assert undocumented(STATUS, 200, JSON, [], ENABLED) is None
    assert "set-cookie" in str(undocumented(STATUS, 200, JSON, cookies, ENABLED))
