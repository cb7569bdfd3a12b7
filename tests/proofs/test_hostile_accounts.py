"""Hostile requests to `/api/auth` never get a 5xx, a header of their own making, a way to another site, or anything of
another user's: as hypothesis draws them, to the handlers through the template's routes.

A request is a valid one with some of its fields, cookies and headers replaced, so that it gets further than the first
look. FUZZ_EXAMPLES is the number of requests to each endpoint, FUZZ_SEED draws others.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import check_credentials, create_user, find_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key, list_keys
from larder.hashing import random_id
from larder.signing import sign
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.proofs.conftest import BeginRounds
from tests.requests import DOMAIN, SESSION_COOKIE, Reply, deliver

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 25)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

PASSWORD = "correct horse battery staple"
EVIL = "evil.example"
MARK = "<script>alert(document.domain)</script>"

ADAS_KEY, ADAS_KEY_ID, BOBS_KEY_ID = "adas-key", "adas-key-id", "bobs-key-id"
"""Stand for what is only known once it is made."""

BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/sign-up/email"): {
        "name": "Eve", "email": "eve@example.com", "password": PASSWORD, "image": None,
        "callbackURL": "/", "rememberMe": True,
    },
    ("POST", "/sign-in/email"): {
        "email": "ada@example.com", "password": PASSWORD, "callbackURL": "/", "rememberMe": False,
    },
    ("POST", "/sign-out"): {},
    ("GET", "/get-session"): {},
    ("GET", "/list-sessions"): {},
    ("GET", "/list-accounts"): {},
    ("POST", "/revoke-session"): {"token": "A" * 32},
    ("POST", "/revoke-other-sessions"): {},
    ("POST", "/revoke-sessions"): {},
    ("POST", "/verify-password"): {"password": PASSWORD},
    ("POST", "/update-user"): {"name": "Ada", "image": "https://pictures.example/ada.png"},
    ("GET", "/ok"): {},
    ("POST", "/send-verification-email"): {"email": "ada@example.com", "callbackURL": "/"},
    ("GET", "/verify-email"): {},
    ("POST", "/request-password-reset"): {"email": "ada@example.com", "redirectTo": "/"},
    ("GET", f"/reset-password/{'A' * 24}"): {},
    ("POST", "/reset-password"): {"newPassword": PASSWORD, "token": "A" * 24},
    ("POST", "/change-password"): {"newPassword": PASSWORD, "currentPassword": PASSWORD},
    ("POST", "/change-email"): {"newEmail": "ada@elsewhere.example", "callbackURL": "/"},
    ("POST", "/delete-user"): {"password": PASSWORD},
    ("POST", "/api-key/create"): {
        "name": "ci", "prefix": "larder_", "expiresIn": 86_400, "metadata": {"a": [1]},
        "permissions": {"artifacts": ["read"]},
    },
    ("POST", "/api-key/verify"): {"key": ADAS_KEY, "permissions": {"artifacts": ["read"]}},
    ("GET", f"/api-key/get?id={ADAS_KEY_ID}"): {},
    ("GET", f"/api-key/get?id={BOBS_KEY_ID}"): {},
    ("GET", "/api-key/list"): {},
    ("POST", "/api-key/update"): {"keyId": ADAS_KEY_ID, "name": "renamed"},
    ("POST", "/api-key/delete"): {"keyId": ADAS_KEY_ID},
    ("POST", "/api-key/delete-all-expired-api-keys"): {},
    ("GET", "/turbo-login?redirect_uri=http://127.0.0.1:9789"): {},
    ("POST", "/turbo-login"): {
        "redirectUri": "http://127.0.0.1:9789", "state": "abc", "name": "turbo", "teamId": None,
    },
    ("GET", "/sso?teamId=acme&mode=login&next=http://127.0.0.1:9789"): {},
}  # fmt: skip
FURTHER_BY_LUCK_ONLY = {
    "/reset-password",  # no reset token is good
    f"/api-key/get?id={BOBS_KEY_ID}",  # it is not Ada's
    "/api-key/delete-all-expired-api-keys",  # she is no operator
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
            "redirectUri", "state", "team",
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
    """Somebody whom all of it must leave alone."""
    option("scrypt_cost", 1024)
    return create_user("bob@private.example", "Bob", password=PASSWORD, now=clock.now())


def valid_body(method: str, path: str) -> dict[str, Any]:
    body = BODIES[method, path]
    # Each sign-up has an address of its own, so that what is wrong else decides.
    return {**body, "email": f"{random_id(8)}@example.com"} if path == "/sign-up/email" else body


def user_with_address(email: str) -> User:
    """The user, made anew after a request has deleted them."""
    now = clock.now()
    return find_user_by_email(email) or create_user(
        email, "Ada", password=PASSWORD, email_verified=True, now=now
    )


def check_reply(reply: Reply) -> None:
    assert reply.status < 500, reply
    assert MARK.encode() not in reply.body or reply.headers["content-type"] == "application/json"
    assert b"private.example" not in reply.body
    assert "x-injected" not in reply.headers
    for text in (*reply.headers.values(), *reply.cookies):
        assert re.fullmatch(r"[\x20-\x7e]*", text), text
    for line in reply.cookies:
        assert re.fullmatch(
            r"(__Secure-)?better-auth\.(session_token|session_data|dont_remember)=[A-Za-z0-9%._-]*; Path=/"
            r"(; Max-Age=\d+)?; HttpOnly(; Secure)?; SameSite=Lax",
            line,
        ), line
    if location := reply.headers.get("location"):
        assert re.fullmatch(
            rf"(https://{re.escape(DOMAIN)})?/(?![/\\]).*|https://{DOMAIN}/?", location
        )
        assert not re.search(r"[\s\\\x00-\x1f]", location)
    if reply.status >= 400 and reply.body:
        assert reply.json.keys() <= {"message", "code"}
        assert len(reply.body) < 1000


@pytest.mark.parametrize(("method", "path"), BODIES, ids=lambda part: part.strip("/"))
def test_whatever_is_sent(
    method: str,
    path: str,
    bob: User,
    mailbox: Mailbox,
    begin_rounds: BeginRounds,
    told: list[str],
) -> None:
    attack_endpoint(method, path, bob, mailbox, begin_rounds, told)


@pytest.mark.parametrize("path", ["/sign-up/email", "/sign-in/email"])
def test_whatever_is_sent_where_addresses_must_be_verified(
    path: str,
    bob: User,
    option: SetOption,
    mailbox: Mailbox,
    begin_rounds: BeginRounds,
    told: list[str],
) -> None:
    option("require_email_verification", "true")
    attack_endpoint("POST", path, bob, mailbox, begin_rounds, told)


def attack_endpoint(
    method: str,
    path: str,
    bob: User,
    mailbox: Mailbox,
    begin_rounds: BeginRounds,
    told: list[str],
) -> None:
    _, bobs_key = create_key(NewKey(user_id=bob.id, name="bob's"), now=clock.now())
    before, keys_before = find_user(bob.id), list_keys(bob.id)

    def check_stores() -> None:
        """Every mail that was asked for can be sent, and Bob is who he was."""
        mailbox.deliver()
        assert find_user(bob.id) == before
        assert list_keys(bob.id) == keys_before
        assert check_credentials("bob@private.example", PASSWORD) == before

    rounds = begin_rounds(check_stores)
    statuses = Counter[int]()
    asked_for = path
    path, _, own_query = path.partition("?")

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(fields, st.one_of(st.none(), st.none(), st.none(), raw_bodies), headers,
           st.one_of(st.none(), st.none(), cookie_values), queries)  # fmt: skip
    @example({}, None, {}, None, "")
    @example({}, None, {}, None, "token=x&callbackURL=%2F")
    def attack(
        changed: dict[str, Any],
        raw: bytes | None,
        more: Mapping[str, str],
        cookie: str | None,
        query: str,
    ) -> None:
        ada, now = user_with_address("ada@example.com"), clock.now()
        _, token = start_session(ada, now=now)
        stands_for = {BOBS_KEY_ID: keys_before[0].id}
        if path.startswith("/api-key/"):
            key, raw_key = create_key(NewKey(user_id=ada.id), now=now)
            stands_for |= {ADAS_KEY_ID: key.id, ADAS_KEY: raw_key}
        sent = {"x-forwarded-proto": "https", "origin": f"https://{DOMAIN}"}
        value = quote(f"{token}.{sign(token)}", safe="") if cookie is None else cookie
        sent["cookie"] = f"{SESSION_COOKIE}={value}"
        body = b""
        if method == "POST":
            sent["content-type"] = "application/json"
            body = (
                json.dumps({**valid_body(method, path), **changed}).encode() if raw is None else raw
            )
        asked = "&".join(part for part in (own_query, query) if part)
        for placeholder, value in stands_for.items():
            body = body.replace(placeholder.encode(), value.encode())
            asked = asked.replace(placeholder, value)
        reply = deliver(method, f"/api/auth{path}", asked, list({**sent, **more}.items()), body)
        statuses[reply.status] += 1
        check_reply(reply)
        assert bobs_key.encode() not in reply.body
        rounds.count()

    attack()
    check_stores()
    further = min(statuses) < 400
    assert further or asked_for in FURTHER_BY_LUCK_ONLY, "none got further than the first look"
    told.append(f"hostile {path}: {dict(sorted(statuses.items()))}")
