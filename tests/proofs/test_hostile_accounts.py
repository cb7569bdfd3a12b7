"""Hostile requests to the account endpoints never get a 5xx, a header of their own making, a way to another site, or
anything of another user's: as hypothesis draws them, to the handlers through the template's routes.

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
from larder.accounts.service import check_credentials, create_user, find_user, read_account
from larder.accounts.sessions import start_session
from larder.hashing import random_id
from larder.signing import sign
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.requests import DOMAIN, SESSION_COOKIE, Reply, deliver

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 150)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

PASSWORD = "correct horse battery staple"
EVIL = "evil.example"
MARK = "<script>alert(document.domain)</script>"

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
}  # fmt: skip

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
    "\ud800", "\ud800\udc00", "\U0001f469\u200d\U0001f4bb" * 99, "#", "session#", "email#ada@example.com", "user",
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
    method: str, path: str, bob: User, mailbox: Mailbox, told: list[str]
) -> None:
    attack_endpoint(method, path, bob, told)
    mailbox.deliver()


@pytest.mark.parametrize("path", ["/sign-up/email", "/sign-in/email"])
def test_whatever_is_sent_where_addresses_must_be_verified(
    path: str, bob: User, option: SetOption, mailbox: Mailbox, told: list[str]
) -> None:
    option("require_email_verification", "true")
    attack_endpoint("POST", path, bob, told)
    mailbox.deliver()


def attack_endpoint(method: str, path: str, bob: User, told: list[str]) -> None:
    ada = create_user(
        "ada@example.com", "Ada", password=PASSWORD, email_verified=True, now=clock.now()
    )
    before, statuses = find_user(bob.id), Counter[int]()

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(fields, st.one_of(st.none(), st.none(), st.none(), raw_bodies), headers,
           st.one_of(st.none(), st.none(), cookie_values), queries)  # fmt: skip
    @example({}, None, {}, None, "")
    def attack(
        changed: dict[str, Any],
        raw: bytes | None,
        more: Mapping[str, str],
        cookie: str | None,
        query: str,
    ) -> None:
        _, token = start_session(read_account(ada.id).user, now=clock.now())
        sent = {"x-forwarded-proto": "https", "origin": f"https://{DOMAIN}"}
        value = quote(f"{token}.{sign(token)}", safe="") if cookie is None else cookie
        sent["cookie"] = f"{SESSION_COOKIE}={value}"
        body = b""
        if method == "POST":
            sent["content-type"] = "application/json"
            body = (
                json.dumps({**valid_body(method, path), **changed}).encode() if raw is None else raw
            )
        reply = deliver(method, f"/api/auth{path}", query, list({**sent, **more}.items()), body)
        statuses[reply.status] += 1
        check_reply(reply)

    attack()
    assert find_user(bob.id) == before
    assert check_credentials("bob@private.example", PASSWORD) == before
    # Of reset tokens there is none that is good.
    assert min(statuses) < 400 or path == "/reset-password", "none got further than the first look"
    told.append(f"hostile {path}: {dict(sorted(statuses.items()))}")
