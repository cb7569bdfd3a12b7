"""API2: Broken authentication. Credentials that Larder did not issue, or that have ended, are refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_verification_token
from larder.signing import sign
from tests.catalogue import valid
from tests.owasp.conftest import Person, operations
from tests.requests import SESSION_COOKIE, Browser, Sender


def paths(scheme: str) -> list[tuple[str, str]]:
    """The operations that require credentials and accept this kind of them."""
    return [
        (method, valid(f"{method} {path}").path)
        for (method, path), operation in operations().items()
        if any(scheme in way for way in operation["security"]) and {} not in operation["security"]
    ]


BY_BEARER, IN_PERSON = paths("bearer"), paths("sessionToken")


FOR_ANYBODY = {
    "GET /", "GET /api/auth/console", "GET /api/auth/callback/{id}", "GET /api/auth/get-session",
    "GET /api/auth/ok", "GET /api/auth/reset-password/{token}", "GET /api/auth/sign-in/providers",
    "GET /api/auth/sso", "GET /api/auth/turbo-login", "GET /api/auth/verify-email", "GET /console", "GET /docs",
    "GET /join", "GET /openapi.json", "GET /registration/verify", "GET /reset-password", "GET /sign-in",
    "GET /turborepo/success", "GET /turborepo/token", "GET /verified", "OPTIONS /v8/artifacts",
    "OPTIONS /v8/artifacts/events", "OPTIONS /v8/artifacts/status", "OPTIONS /v8/artifacts/{hash}",
    "POST /api/auth/api-key/verify", "POST /api/auth/confirm-email-change", "POST /api/auth/request-password-reset",
    "POST /api/auth/reset-password", "POST /api/auth/send-verification-email", "POST /api/auth/sign-in/email",
    "POST /api/auth/sign-in/social", "POST /api/auth/sign-in/sso", "POST /api/auth/sign-out",
    "POST /api/auth/sign-up/email", "POST /login/oauth/token", "POST /login/oauth/token/revoke",
    "POST /v1/teams/invitation",
}  # fmt: skip


def test_only_these_operations_work_without_credentials() -> None:
    open_to_all = {
        f"{method} {path}"
        for (method, path), operation in operations().items()
        if not operation["security"] or {} in operation["security"]
    }
    assert open_to_all == FOR_ANYBODY
    assert len(BY_BEARER) + len(IN_PERSON) == len(operations()) - len(FOR_ANYBODY)


FORGED = {
    "none": "",
    "another scheme": "Basic YWRhOnBhc3N3b3Jk",
    "an unknown key": f"Bearer {'k' * 64}",
    "an unknown session": f"Bearer {'S' * 32}",
    "an unsigned token": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
    "two tokens": f"Bearer {'S' * 32}, Bearer {'k' * 64}",
    "a wildcard": "Bearer *",
    "a query": 'Bearer {"$ne": null}',
    "an end of line": f"Bearer {'S' * 31}\n",
}


@pytest.mark.parametrize("forged", FORGED)
def test_every_operation_that_requires_credentials_refuses_forged_ones(forged: str, ada: Person) -> None:
    send = Sender(None, authorization=FORGED[forged])
    for method, path in BY_BEARER:
        reply = send(method, path)
        # For something that looks like a token, errors in other parameters are reported first.
        is_bad_request = reply.status == 400 and "unknown" in forged
        assert reply.status == 401 or is_bad_request, (method, path)
    # These report errors in the body even without credentials, but nothing else.
    for method, path in IN_PERSON:
        reply = send(method, path, json_body={})
        assert reply.status in (400, 401, 403), (method, path)
        assert reply.status != 403 or reply.json["code"] == "MISSING_OR_NULL_ORIGIN"


def both(first: Person, second: Person, **headers: str) -> dict[str, str]:
    """Headers with the session cookies of two people, as a browser sends them after a sibling domain set one."""
    values = [quote(f"{who.session}.{sign(who.session)}", safe="") for who in (first, second)]
    return {"cookie": "; ".join(f"{SESSION_COOKIE}={value}" for value in values), **headers}


def test_two_session_cookies_sign_no_one_in(ada: Person, mallory: Person) -> None:
    for first, second in ((mallory, ada), (ada, mallory), (ada, ada)):
        headers = both(first, second)
        assert Browser().get("/get-session", headers=headers).json is None
        assert Browser().get("/api-key/list", headers=headers).status == 401
        assert Browser().post("/api-key/create", {}, headers=headers).status == 401
    bearer = {"authorization": f"Bearer {ada.session}"}
    assert Browser().get("/get-session", headers=both(mallory, ada, **bearer)).json is not None


def deleted(cookies: Sequence[str]) -> set[tuple[str, str]]:
    """Domain and path of each session cookie that a browser deletes because of these Set-Cookie headers."""
    found = set()
    for line in cookies:
        (name, value), *attributes = [part.partition("=")[::2] for part in line.split("; ")]
        given = dict(attributes)
        if (name, value, given.get("Max-Age")) == (SESSION_COOKIE, "", "0"):
            assert "Secure" in given  # Browsers do not let other cookies replace a secure one.
            found.add((given.get("Domain", ""), given["Path"]))
    return found


def test_two_session_cookies_are_deleted_whatever_their_domain_and_path(ada: Person, mallory: Person) -> None:
    reply = Browser().get("/get-session", headers=both(mallory, ada))
    paths = ("/", "/api", "/api/", "/api/auth", "/api/auth/", "/api/auth/get-session")
    domains = ("", "cache.example.com", "example.com")
    assert deleted(reply.cookies) == {(domain, path) for domain in domains for path in paths}
    assert len(Browser().post("/sign-out", headers=both(mallory, ada)).cookies) > len(paths)
    assert Browser().get("/get-session", headers=both(ada, ada)).cookies == reply.cookies


def test_a_sign_in_replaces_two_session_cookies(ada: Person, mallory: Person) -> None:
    body = {"email": ada.user.email, "password": "a good one"}
    reply = Browser().post("/sign-in/email", body, headers=both(mallory, ada))
    assert ("example.com", "/api/auth") in deleted(reply.cookies)
    # Browsers apply them in order, so the new cookie has to be the last.
    assert reply.cookies[-1].startswith(f"{SESSION_COOKIE}={reply.json['token']}.")


def segment(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None", "typ": "JWT"},
        {"alg": "RS256", "jku": "https://evil.example/keys.json"},
        {"alg": "HS256", "kid": "../../../../dev/null"},
        {"alg": "HS256", "kid": "' UNION SELECT 'secret"},
        {"alg": "HS256", "jwk": {"kty": "oct", "k": "c2VjcmV0"}},
    ],
    ids=str,
)
def test_a_link_with_a_forged_header_verifies_no_one(header: dict[str, Any], ada: Person) -> None:
    _, payload, signature = issue_verification_token(ada.user, now=clock.now()).split(".")
    for forged in (f"{segment(header)}.{payload}.{signature}", f"{segment(header)}.{payload}."):
        reply = Browser().get(f"/verify-email?token={quote(forged)}")
        assert reply.refusal == (401, "INVALID_TOKEN")


def test_a_link_for_one_address_does_not_verify_another(ada: Person, mallory: Person) -> None:
    token = issue_verification_token(mallory.user, now=clock.now())
    header, payload, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = f"{header}.{segment({**claims, 'email': ada.user.email})}.{signature}"
    assert Browser().get(f"/verify-email?token={forged}").refusal == (401, "INVALID_TOKEN")


def test_a_key_is_not_a_session_and_a_session_is_not_a_key(ada: Person) -> None:
    assert ada.by_key("GET", "/api/auth/get-session").json is None
    presented = {"key": ada.session}
    reply = Sender(None)("POST", "/api/auth/api-key/verify", json_body=presented)
    assert reply.json["valid"] is False
