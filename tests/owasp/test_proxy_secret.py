"""With `ProxySecretHash`, only requests that the proxy in front of the API passes on get an answer."""

from __future__ import annotations

import base64
import hashlib
import json
from io import StringIO

import pytest

from larder.web.errors import NotThroughProxy
from larder.web.gateway import HEADER
from tests.conftest import SetOption
from tests.owasp.conftest import HASH, Person, operations
from tests.requests import Sender

SECRET = "a long random secret"
PASSED_ON = {HEADER: SECRET}


@pytest.fixture
def behind_proxy(ada: Person, option: SetOption) -> None:
    digest = hashlib.sha256(SECRET.encode()).digest()
    option("proxy_secret_hash", base64.b64encode(digest).decode())
    option("trusted_proxy_hops", 1)


def paths() -> list[tuple[str, str]]:
    """Every operation of the OpenAPI document, a preflight of a page and a request without a route."""
    listed = [*operations(), ("OPTIONS", "/api/auth/any"), ("GET", "/nothing")]
    filled = {"hash": HASH, "idOrSlug": "team-of-ada", "token": "A" * 32}
    filled |= {"uid": "x", "keyId": "x", "ruleId": "x", "runId": "x", "id": "x"}
    return [(method, path.format(**filled)) for method, path in listed]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {HEADER: ""},
        {HEADER: "another secret"},
        {HEADER: SECRET.replace(" ", "")},
        {HEADER: "\ud800"},
        {"x-forwarded-for": "203.0.113.5, 192.0.2.1"},
    ],
    ids=["no-header", "empty", "another", "without-spaces", "no-text", "forged-address"],
)
@pytest.mark.usefixtures("behind_proxy")
def test_every_direct_request_is_refused(ada: Person, headers: dict[str, str]) -> None:
    for send in (Sender(None), ada.by_key, ada.by_session):
        for method, path in paths():
            reply = send(method, path, headers=headers)
            assert reply.status == 403, (method, path)
            if path.startswith("/login/oauth/"):
                assert reply.json["error"] == "not_through_proxy"
            elif method != "HEAD":
                assert reply.json["code"].lower() == "not_through_proxy", (method, path)
                assert reply.json["message"] == NotThroughProxy.message, (method, path)


@pytest.mark.usefixtures("behind_proxy")
def test_a_request_through_the_proxy_gets_the_same_reply_as_without_the_option(ada: Person, option: SetOption) -> None:
    reads = [
        *(("GET", f"/v8/artifacts/{HASH}"), ("HEAD", f"/v8/artifacts/{HASH}"), ("GET", "/nothing")),
        *(("GET", "/v2/teams"), ("GET", "/api/auth/ok"), ("GET", "/turborepo/token"), ("GET", "/")),
    ]
    through = [ada.by_key(*read, headers=PASSED_ON).status for read in reads]
    option("proxy_secret_hash", "")
    assert through == [ada.by_key(*read).status for read in reads]
    assert 403 not in through


@pytest.mark.usefixtures("behind_proxy")
def test_while_the_secret_changes_the_proxy_sends_both(ada: Person) -> None:
    for both in (f"{SECRET}, the next", f"the next,{SECRET}"):
        assert ada.by_key("GET", f"/v8/artifacts/{HASH}", headers={HEADER: both}).status == 200


@pytest.mark.usefixtures("behind_proxy")
def test_the_log_names_the_reason_and_no_secret(ada: Person, log: StringIO) -> None:
    for path in (f"/v8/artifacts/{HASH}", "/api/auth/get-session", "/", "/nothing"):
        ada.by_key("GET", path, headers={HEADER: "a wrong secret"})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["error"]) for line in lines] == [(403, "not_through_proxy")] * 4
    assert "a wrong secret" not in log.getvalue()


@pytest.mark.usefixtures("behind_proxy")
def test_forged_addresses_without_the_secret_reach_no_password_check(ada: Person) -> None:
    body = {"email": ada.user.email, "password": "wrong"}
    for number in range(12):
        forged = {"x-forwarded-for": f"203.0.113.{number}, 192.0.2.1"}
        reply = Sender(None)("POST", "/api/auth/sign-in/email", json_body=body, headers=forged)
        assert reply.status == 403


def test_by_default_no_secret_is_needed(ada: Person) -> None:
    assert ada.by_key("GET", f"/v8/artifacts/{HASH}").status == 200
