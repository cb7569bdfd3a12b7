"""Callers with a cookie, a bearer token or an API key, and the endpoints that each can use."""

import json
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any
from urllib.parse import quote

import pytest
from aws_lambda_powertools.event_handler import Response

from larder import clock, extensions
from larder.accounts import repository as accounts
from larder.accounts.service import create_user, read_account
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import RateLimit, Refill
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.signing import sign
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import (
    KeyMaker,
    MaybeSignedIn,
    Operator,
    SignedIn,
    SignedInInPerson,
    SignedInLately,
    UserPrincipal,
)
from larder.web.responses import json_response
from local.http_event import build_http_event
from tests.conftest import SetOption
from tests.principals import by_session
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Context, Sender


def shown(principal: UserPrincipal | None) -> Response[str]:
    if principal is None:
        return json_response(None)
    expires_at = clock.to_iso(principal.session.expires_at)
    return json_response(
        {
            "user": principal.user.id,
            "token": principal.token,
            "operator": principal.is_operator,
            "expiresAt": expires_at,
            "key": principal.key.id if principal.key else None,
            "all": repr(principal),
        }
    )


def maybe(principal: MaybeSignedIn) -> Response[str]:
    return shown(principal)


def by_any(principal: SignedIn) -> Response[str]:
    return shown(principal)


def key_maker(principal: KeyMaker) -> Response[str]:
    return shown(principal)


def in_person(principal: SignedInInPerson) -> Response[str]:
    return shown(principal)


def fresh(principal: SignedInLately) -> Response[str]:
    return shown(principal)


def operator(principal: Operator) -> Response[str]:
    return shown(principal)


HANDLERS = {"maybe": maybe, "any": by_any, "keys": key_maker, "in person": in_person, "fresh": fresh}


def ask(handler: Any = by_any, **headers: str) -> tuple[int, Any]:
    """The status and body for a request with these headers; `x_api_key` is sent as `x-api-key`."""
    app = better_auth_api()
    app.get("/api/auth/who")(handler)
    event = build_http_event(
        "GET",
        "/api/auth/who",
        "",
        [(name.replace("_", "-"), value) for name, value in headers.items()],
        b"",
        route_key="GET /api/auth/who",
        path_parameters={},
        source_ip="192.0.2.1",
        request_id="request-1",
        now=datetime.now(UTC),
        domain_name="cache.example.com",
    )
    reply = lambda_handler(app)(event, Context())  # type: ignore[arg-type]
    return reply["statusCode"], json.loads(reply["body"])


def refused(handler: Any = by_any, **headers: str) -> tuple[int, str]:
    status, body = ask(handler, **headers)
    return status, body["code"]


def cookie_of(token: str) -> str:
    return f"__Secure-better-auth.session_token={quote(f'{token}.{sign(token)}', safe='')}"


@pytest.fixture
def sessions_for_keys(option: SetOption) -> None:
    option("session_for_api_keys", "true")


@pytest.fixture
def key(cloud: Cloud) -> str:
    """A personal key of Ada's."""
    return create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1]


def test_401_without_a_credential(cloud: Cloud) -> None:
    assert ask(maybe) == (200, None)
    assert refused() == (401, "UNAUTHORIZED")
    assert refused(key_maker) == (401, "UNAUTHORIZED_SESSION")


def test_a_cookie_and_a_bearer_token_sign_in(cloud: Cloud) -> None:
    token = start_session(cloud.user, now=clock.now())[1]
    for headers in ({"cookie": cookie_of(token)}, {"authorization": f"Bearer {token}"}):
        for handler in HANDLERS.values():
            status, body = ask(handler, **headers)
            assert (status, body["user"], body["token"]) == (200, cloud.user.id, token)


# Sessions from keys -------------------------------------------------------------------------------


def test_session_for_api_keys_is_off_by_default(cloud: Cloud, key: str) -> None:
    assert refused(x_api_key=key) == (401, "UNAUTHORIZED")


def test_session_for_api_keys_a_valid_key_creates_a_session_for_its_owner(
    sessions_for_keys: None, cloud: Cloud, key: str
) -> None:
    status, body = ask(x_api_key=key)
    assert (status, body["user"]) == (200, cloud.user.id)
    assert datetime.fromisoformat(body["expiresAt"]) > clock.now() + timedelta(days=6)
    assert accounts.list_sessions(cloud.user.id) == []


def test_session_for_api_keys_affects_accounts_but_not_the_cache(
    sessions_for_keys: None, cloud: Cloud, key: str
) -> None:
    headers = {"x-api-key": key}
    anonymous = Sender(None, slug=cloud.team.slug)
    for path in ("/v8/artifacts/status", "/v1/usage", "/v2/user"):
        assert anonymous("GET", path, headers=headers).status == 401
        assert Sender(key, slug=cloud.team.slug)("GET", path).status == 200


def test_the_session_contains_neither_the_key_nor_its_hash(
    sessions_for_keys: None, cloud: Cloud, key: str, option: SetOption
) -> None:
    _, body = ask(x_api_key=key)
    assert key not in str(body)
    assert body["token"] == body["key"]
    option("disable_key_hashing", "true")
    made, raw = create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    _, body = ask(x_api_key=raw)
    assert body["token"] == made.id


def test_disable_session_for_api_keys_takes_precedence(
    sessions_for_keys: None, option: SetOption, cloud: Cloud, key: str
) -> None:
    option("disable_session_for_api_keys", "true")
    assert refused(x_api_key=key) == (401, "UNAUTHORIZED")
    token = start_session(cloud.user, now=clock.now())[1]
    assert ask(x_api_key=key, cookie=cookie_of(token))[1]["token"] == token


def test_a_key_takes_precedence_over_cookie_and_bearer_token(sessions_for_keys: None, cloud: Cloud, key: str) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    token = start_session(mallory, now=clock.now())[1]
    headers = {"cookie": cookie_of(token), "authorization": f"Bearer {token}"}
    assert ask(**headers)[1]["user"] == mallory.id
    assert ask(x_api_key=key, **headers)[1]["user"] == cloud.user.id


def test_a_request_counts_one_use(sessions_for_keys: None, cloud: Cloud) -> None:
    made, raw = create_key(NewKey(user_id=cloud.user.id, remaining=5), now=clock.now())
    assert ask(x_api_key=raw)[0] == 200
    stored = find_key(made.id)
    assert stored is not None
    assert stored.remaining == 4


def test_an_invalid_key_is_refused_even_with_a_valid_cookie(sessions_for_keys: None, cloud: Cloud, key: str) -> None:
    now = clock.now()
    cookie = cookie_of(start_session(cloud.user, now=now)[1])
    past = now - timedelta(hours=1)
    disabled, disabled_raw = create_key(NewKey(user_id=cloud.user.id), now=now)
    owner = by_session(cloud.user.id)
    update_key(owner, disabled.id, KeyChanges(enabled=False), now=now)
    limit = RateLimit(enabled=True, window_ms=60_000, max_requests=1)
    refill = Refill(interval_ms=60_000, amount=1)
    limited = create_key(NewKey(user_id=cloud.user.id, rate_limit=limit), now=now)[1]
    used_up = create_key(NewKey(user_id=cloud.user.id, remaining=1, refill=refill), now=now)[1]
    assert ask(x_api_key=limited)[0] == 200
    assert ask(x_api_key=used_up)[0] == 200
    expected = {
        "A" * 64: (401, "UNAUTHORIZED"),
        "A" * 5000: (401, "UNAUTHORIZED"),
        "é" * 64: (401, "UNAUTHORIZED"),
        "A" * 63: (403, "INVALID_API_KEY"),
        "x": (403, "INVALID_API_KEY"),
        "#clean-up": (403, "INVALID_API_KEY"),
        disabled_raw: (401, "UNAUTHORIZED"),
        create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=past)[1]: (401, "UNAUTHORIZED"),
        limited: (429, "RATE_LIMITED"),
        used_up: (429, "USAGE_EXCEEDED"),
    }
    for raw, outcome in expected.items():
        for handler in (maybe, by_any):
            assert refused(handler, x_api_key=raw, cookie=cookie) == outcome


def test_401_for_a_key_of_a_deleted_user(sessions_for_keys: None, cloud: Cloud, key: str) -> None:
    assert accounts.delete(read_account(cloud.user.id), now=clock.now())
    assert refused(x_api_key=key) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("handler", [in_person, fresh, operator])
def test_401_for_an_api_key_where_a_session_is_required(
    sessions_for_keys: None, cloud: Cloud, key: str, handler: Any, option: SetOption
) -> None:
    option("operator_emails", cloud.user.email)
    expected = (403, "OPERATOR_ONLY") if handler is operator else (401, "UNAUTHORIZED")
    assert refused(handler, x_api_key=key) == expected


def test_a_key_is_never_an_operator(sessions_for_keys: None, cloud: Cloud, option: SetOption) -> None:
    now = clock.now()
    boss = create_user("boss@acme.example", "Boss", email_verified=True, now=now)
    option("operator_emails", boss.email)
    raw = create_key(NewKey(user_id=boss.id), now=now)[1]
    token = start_session(boss, now=now)[1]
    assert ask(authorization=f"Bearer {token}")[1]["operator"] is True
    assert ask(x_api_key=raw)[1]["operator"] is False


def test_api_key_headers_the_first_one_present_counts(
    sessions_for_keys: None, option: SetOption, cloud: Cloud, key: str
) -> None:
    option("api_key_headers", "X-Larder-Key, x-other")
    assert refused(x_api_key=key) == (401, "UNAUTHORIZED")
    assert ask(x_larder_key=key)[0] == 200
    assert ask(x_other=key)[0] == 200
    assert ask(x_larder_key=key, x_other="short")[0] == 200
    assert refused(x_larder_key="short", x_other=key) == (403, "INVALID_API_KEY")


def test_custom_api_key_getter_replaces_the_headers(
    sessions_for_keys: None, option: SetOption, cloud: Cloud, key: str, integrator: ModuleType
) -> None:
    integrator.find_api_key = lambda headers: headers.get("x-mine", "").removeprefix("key=") or None  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert ask(x_mine=f"key={key}")[0] == 200
    assert refused(x_api_key=key) == (401, "UNAUTHORIZED")
    integrator.find_api_key = lambda headers: 5  # type: ignore[attr-defined]
    extensions.clear_hooks()
    assert refused(x_mine=f"key={key}") == (500, "INTERNAL_ERROR")


def test_custom_api_key_getter_of_the_request(
    sessions_for_keys: None, option: SetOption, cloud: Cloud, key: str, integrator: ModuleType
) -> None:
    seen: list[Any] = []

    async def key_of(ctx: Any) -> str | None:
        seen.append(ctx)
        return ctx["headers"].get("x-api-key")

    integrator.find_api_key = key_of  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert ask(x_api_key=key)[0] == 200
    assert ask(maybe)[1] is None
    assert [ctx.keys() for ctx in seen] == [{"method", "path", "headers"}] * 2
    assert seen[0]["method"] == "GET"


def test_a_session_from_a_key_reads_the_key_its_membership_and_its_user(
    sessions_for_keys: None, cloud: Cloud, key: str
) -> None:
    with counted() as calls:
        ask(x_api_key=key)
    assert calls.steps == [["GetItem"], ["BatchGetItem", "UpdateItem"], ["GetItem"]]


def test_no_log_line_contains_the_key(
    sessions_for_keys: None,
    cloud: Cloud,
    key: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(x_api_key=key)
    ask(x_api_key=key[:40])
    assert key[:40] not in capsys.readouterr().out + caplog.text
