"""Hostile requests to `/api/auth` never get a 5xx, an injected header, a redirect to another site, or data of another
user. hypothesis generates them, and the handlers get them through the template's routes.

A request is a valid one with some fields, cookies and headers replaced, so that it passes the first checks.
FUZZ_EXAMPLES is the number of requests to each endpoint. FUZZ_SEED selects others.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from larder import clock
from larder.accounts.models import User
from larder.accounts.repository import list_provider_accounts
from larder.accounts.service import check_credentials, create_user, find_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.hashing import random_id
from larder.signing import sign
from tests.catalogue import Names, operations, valid
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.proofs.conftest import BeginRounds
from tests.requests import DOMAIN, SESSION_COOKIE, Reply, deliver
from tests.sso.providers import ENDPOINTS, add_acme, link

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 6)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

PASSWORD = "correct horse battery staple"
EVIL = "evil.example"
MARK = "<script>alert(document.domain)</script>"

BOBS_KEY_ID = "bobs-key-id"
"""A placeholder for the id of Bob's key, which does not exist yet."""

OPERATIONS = [operation for operation in operations() if " /api/auth/" in operation and "OPTIONS" not in operation]
OF_BOBS_KEY = "GET /api/auth/api-key/get, with the id of Bob's key"
MORE: dict[str, dict[str, Any]] = {
    "POST /api/auth/sign-up/email": {"image": None, "callbackURL": "/", "rememberMe": True},
    "POST /api/auth/sign-in/email": {"callbackURL": "/", "rememberMe": False},
    "POST /api/auth/update-user": {"image": "https://pictures.example/ada.png"},
    # The next request needs the same password.
    "POST /api/auth/change-password": {"newPassword": PASSWORD, "revokeOtherSessions": False},
    "POST /api/auth/delete-user": {"password": PASSWORD},
    "POST /api/auth/api-key/create": {"prefix": "larder_", "metadata": {"a": [1]}},
    "POST /api/auth/turbo-login": {"teamId": None},
}
"""Fields that requests of the catalogue do not have, or have with another value."""

FURTHER_BY_LUCK_ONLY = {
    "POST /api/auth/reset-password",  # no reset token is valid
    "POST /api/auth/confirm-email-change",  # and no token of a change
    OF_BOBS_KEY,  # it is not Ada's
    "POST /api/auth/api-key/delete-all-expired-api-keys",  # she is not an operator
}

URLS = [
    f"https://{EVIL}", f"//{EVIL}", f"/\\{EVIL}", f"\\\\{EVIL}", f"/%5c{EVIL}", f"/%2f{EVIL}", f"https:{EVIL}",
    f"https:/{EVIL}", f"https://{DOMAIN}@{EVIL}", f"https://{DOMAIN}.{EVIL}", f"https://{EVIL}#{DOMAIN}",
    f"https://{EVIL}\\@{DOMAIN}", f" https://{EVIL}", f"\thttps://{EVIL}", f"/\t/{EVIL}", f"/\n/{EVIL}",
    f"/.//{EVIL}", f"/..//{EVIL}", f"https://{DOMAIN}:443@{EVIL}/", f"https://{DOMAIN}%2e{EVIL}",
    f"javascript://{DOMAIN}/%0aalert(1)", "data:text/html,x", "/\r\nx-injected: 1", "/%0d%0ax-injected:1",
]  # fmt: skip
TRICKS = [
    "", " ", "\x00", "\r\nx-injected: 1", "\r\nSet-Cookie: x=1", "\u2028", "\ufeff", "\u202e", MARK, "__proto__",
    "constructor", "a\x00@b.de", "@", "a@b", "a@[127.0.0.1]", '"a b"@example.com', "ada@example.com\x00",
    "ada@example.com\r\nBcc: eve@example.com", "\u0130@example.com", "a" * 65 + "@example.com", "x" * 100_000,
    "\ud800", "\ud800\udc00", BOBS_KEY_ID,
    "\U0001f469\u200d\U0001f4bb" * 99, "#", "session#", "email#ada@example.com", "user",
]  # fmt: skip

texts = st.one_of(st.sampled_from(TRICKS), st.sampled_from(URLS), st.text(max_size=40))
values = st.recursive(
    st.one_of(texts, texts, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
fields = st.dictionaries(
    st.sampled_from(
        [
            "name", "email", "password", "image", "callbackURL", "redirectTo", "rememberMe", "token",
            "newPassword", "currentPassword", "newEmail", "revokeOtherSessions", "errorCallbackURL",
            "id", "role", "emailVerified", "userId", "version", "session_generation", "__proto__",
            "keyId", "key", "prefix", "expiresIn", "metadata", "permissions", "enabled", "teamId",
            "remaining", "refillAmount", "refillInterval", "rateLimitMax", "rateLimitEnabled",
            "redirectUri", "state", "team", "provider", "loginHint", "idToken", "domain", "accountId",
            "errorCallbackURL",
        ]
    ),
    values,
    max_size=4,
)  # fmt: skip
raw_bodies = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"null", b"[]", b"1", b"{", b"[" * 50_000, b'{"a":' * 20_000, b"a=b&c", b"%"]),
)
header_texts = st.one_of(
    st.sampled_from(["", "null", MARK, f"https://{EVIL}", f"https://{DOMAIN}", "x" * 5000, "\xff"]),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=30),
)
headers = st.dictionaries(
    st.sampled_from(
        [
            "origin", "referer", "host", "user-agent", "x-forwarded-for", "x-forwarded-host",
            "x-forwarded-proto", "content-type", "sec-fetch-site", "sec-fetch-mode", "accept",
            "authorization", "x-api-key", "x-http-method-override", "content-encoding",
        ]
    ),
    header_texts,
    max_size=3,
)  # fmt: skip
cookie_values = st.one_of(
    header_texts.map(lambda text: text.replace(";", "")),
    st.text(st.characters(codec="utf-8"), max_size=40).map(lambda text: quote(text, safe="")),
    st.sampled_from(["A" * 32, "x", "../..", "ada@example.com"]).map(
        lambda token: quote(f"{token}.{sign(token)}", safe="")
    ),
)
queries = st.one_of(
    st.just(""),
    st.sampled_from([f"callbackURL={quote(url, safe='')}" for url in URLS]),
    st.sampled_from([f"token=x&callbackURL={quote(url, safe='')}" for url in URLS]),
    st.sampled_from(["token=x", "token=x&callbackURL=%2F", "token=a.b.c", "callbackURL=%2Fpage"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
)


@pytest.fixture
def bob(aws_in_memory: None, option: SetOption) -> User:
    """A user whose data no request may change."""
    option("scrypt_cost", 1024)
    return create_user("bob@private.example", "Bob", password=PASSWORD, now=clock.now())


def user_with_address(email: str) -> User:
    """The user, created again after a request has deleted them."""
    now = clock.now()
    return find_user_by_email(email) or create_user(email, "Ada", password=PASSWORD, email_verified=True, now=now)


def check_reply(reply: Reply) -> None:
    assert reply.status < 500, reply
    assert MARK.encode() not in reply.body or reply.headers["content-type"] == "application/json"
    assert b"private.example" not in reply.body
    assert "x-injected" not in reply.headers
    for text in (*reply.headers.values(), *reply.cookies):
        assert re.fullmatch(r"[\x20-\x7e]*", text), text
    for line in reply.cookies:
        assert re.fullmatch(
            r"((__Secure-)?better-auth\.(session_token|session_data|dont_remember)|(__Host-)?larder\.sso\.[0-9a-f]{8})"
            r"=[A-Za-z0-9%._+/=-]*; Path=/"
            r"(; Max-Age=\d+)?; HttpOnly(; Secure)?; SameSite=Lax",
            line,
        ), line
    if location := reply.headers.get("location"):
        assert re.fullmatch(
            rf"(https://{re.escape(DOMAIN)})?/(?![/\\]).*|https://{DOMAIN}/?"
            rf"|{re.escape(ENDPOINTS.authorization)}\?.*",
            location,
        )
        assert not re.search(r"[\s\\\x00-\x1f]", location)
    if reply.status >= 400 and reply.body:
        assert reply.json.keys() <= {"message", "code"}
        assert len(reply.body) < 1000


@pytest.mark.parametrize("operation", [*OPERATIONS, OF_BOBS_KEY])
def test_hostile_account_requests(
    operation: str, bob: User, mailbox: Mailbox, begin_rounds: BeginRounds, report_lines: list[str]
) -> None:
    attack_endpoint(operation, bob, mailbox, begin_rounds, report_lines)


@pytest.mark.parametrize("path", ["/sign-up/email", "/sign-in/email"])
def test_hostile_requests_with_required_verification(
    path: str, bob: User, option: SetOption, mailbox: Mailbox, begin_rounds: BeginRounds, report_lines: list[str]
) -> None:
    option("require_email_verification", "true")
    attack_endpoint(f"POST /api/auth{path}", bob, mailbox, begin_rounds, report_lines)


def attack_endpoint(
    operation: str, bob: User, mailbox: Mailbox, begin_rounds: BeginRounds, report_lines: list[str]
) -> None:
    _, bobs_key = create_key(NewKey(user_id=bob.id, name="bob's"), now=clock.now())
    before, keys_before = find_user(bob.id), list_keys(bob.id)
    provider = add_acme()

    def check_stores() -> None:
        """Every requested mail can be sent, and Bob's data is unchanged."""
        mailbox.deliver()
        assert find_user(bob.id) == before
        assert list_keys(bob.id) == keys_before
        assert check_credentials("bob@private.example", PASSWORD) == before

    rounds = begin_rounds(check_stores)
    statuses = Counter[int]()

    @seed(SEED)
    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(fields, st.one_of(st.none(), st.none(), st.none(), raw_bodies), headers,
           st.one_of(st.none(), st.none(), cookie_values), queries)  # fmt: skip
    @example({}, None, {}, None, "")
    @example({}, None, {}, None, "token=x&callbackURL=%2F")
    def attack(
        changed: dict[str, Any], raw: bytes | None, more: Mapping[str, str], cookie: str | None, query: str
    ) -> None:
        ada, now = user_with_address("ada@example.com"), clock.now()
        _, token = start_session(ada, now=now)
        names = Names(email=ada.email, password=PASSWORD)
        if "/api-key/" in operation:
            key, raw_key = create_key(NewKey(user_id=ada.id), now=now)
            names = replace(names, key=raw_key, key_id=key.id)
        if operation == "POST /api/auth/unlink-account":
            linked = [*list_provider_accounts(ada.id), None][0] or link(ada, provider)
            names = replace(names, linked_account=linked.id)
        if operation == OF_BOBS_KEY:
            names = replace(names, key_id=keys_before[0].id)
        if operation == "POST /api/auth/sign-up/email":
            # A new address for each sign-up, so that the reply depends on the rest.
            names = replace(names, email=f"{random_id(8)}@example.com")
        request = valid(operation.partition(",")[0], names)
        sent = {"x-forwarded-proto": "https", "origin": f"https://{DOMAIN}", **request.headers}
        value = quote(f"{token}.{sign(token)}", safe="") if cookie is None else cookie
        sent["cookie"] = f"{SESSION_COOKIE}={value}"
        body = b""
        if request.method == "POST":
            sent["content-type"] = "application/json"
            fields = {**request.json, **MORE.get(operation, {}), **changed}
            body = json.dumps(fields).encode() if raw is None else raw
            body = body.replace(BOBS_KEY_ID.encode(), keys_before[0].id.encode())
        # The generated queries have their own callback URL.
        own_query = "" if "callbackURL" in request.query else request.query
        asked = "&".join(part for part in (own_query, query) if part)
        reply = deliver(request.method, request.path, asked, list({**sent, **more}.items()), body)
        statuses[reply.status] += 1
        check_reply(reply)
        assert bobs_key.encode() not in reply.body
        rounds.count()

    attack()
    check_stores()
    further = min(statuses) < 400
    assert further or operation in FURTHER_BY_LUCK_ONLY, "no request passed the first checks"
    report_lines.append(f"hostile {operation}: {dict(sorted(statuses.items()))}")
