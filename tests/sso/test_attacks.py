"""Attacks on sign-in with a provider. The provider is on HTTP and misbehaves as each test says."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.utils import base64url_encode

from larder import clock
from larder.accounts.service import create_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.conditions import exists
from larder.sso import service
from larder.sso.models import IdentityProvider, Mode, VerifiedBy
from larder.tables import IDENTITY
from tests.conftest import SetOption
from tests.issuer import rsa_key
from tests.proofs.aws_calls import counted
from tests.requests import Browser, Reply, Sender, browser_of
from tests.sso.conftest import FROM_PAGE, ORIGIN, Journey, add, error_of
from tests.sso.hostile_provider import CLIENT_ID, HostileProvider, serving_provider
from tests.sso.providers import SECRET, add_acme, link
from tests.trust.exchanging import exchange
from tests.web_server import endless, slow

NOW = int(time.time())
COOKIE = "__Host-larder.sso."


def tokens_asked(provider: HostileProvider) -> int:
    return sum(asked.path.startswith("/token") for asked in provider.asked)


# ---------------------------------------------------------------------------- the request


def test_1_the_reply_of_one_provider_is_not_taken_to_another(journey: Journey) -> None:
    """Attack 1: mix-up. Nothing is asked of the second provider, which would get code and verifier."""
    journey.provider.sends_issuer = False
    with serving_provider() as other:
        other.sends_issuer = False
        service.add_provider(other.settings(id="other", domains=()), SECRET)
        service.change_provider("acme", _without_issuer, now=clock.now())
        journey.start()
        reply = journey.provider.authorize(journey.url)
        assert "iss" not in reply
        assert error_of(journey.callback(reply, at="other")) == "state_mismatch"
        assert other.asked == []
        assert journey.session() is None


def _without_issuer(provider: IdentityProvider) -> IdentityProvider:
    return replace(provider, endpoints=replace(provider.endpoints, sends_issuer=False))


@pytest.mark.parametrize(("issuer", "code"), [(None, "issuer_missing"), ("https://evil.example", "issuer_mismatch")])
def test_2_a_reply_without_the_issuer(journey: Journey, issuer: str | None, code: str) -> None:
    """Attack 2: `iss` left out, or of another provider."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    del reply["iss"]
    assert error_of(journey.callback({**reply, **({"iss": issuer} if issuer else {})})) == code
    assert tokens_asked(journey.provider) == 0


@pytest.mark.parametrize("name", ["code", "iss", "state", "error"])
def test_2_a_parameter_twice(journey: Journey, name: str) -> None:
    """Attack 2: two programs can read a parameter that comes twice differently."""
    journey.start()
    reply = {**journey.provider.authorize(journey.url), "error": "access_denied"}
    pairs = [*reply.items(), (name, reply[name])]
    text = "&".join(f"{key}={value}" for key, value in pairs)
    assert error_of(journey.callback(text)) == "invalid_callback_request"
    assert tokens_asked(journey.provider) == 0


def test_3_the_callback_of_an_attacker_in_the_browser_of_a_victim(journey: Journey) -> None:
    """Attack 3: login CSRF. The victim's browser has no cookie of the sign-in."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    victim = Journey(journey.provider, Browser())
    answer = victim.callback(reply)
    assert answer.headers["location"] == "/sign-in?error=state_mismatch"
    assert victim.session() is None
    assert tokens_asked(journey.provider) == 0


def test_3_the_state_of_an_attacker_with_the_name_of_the_victims_cookie(journey: Journey) -> None:
    """Attack 3: the public part of the state names the cookie. Only the rest proves the browser."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    named = f"{reply['state'].partition('.')[0]}.{'x' * 32}"
    assert error_of(journey.callback({**reply, "state": named})) == "state_mismatch"
    assert tokens_asked(journey.provider) == 0


def test_4_the_cookie_of_a_sibling_domain_does_not_count(journey: Journey) -> None:
    """Attack 4: a page of a sibling domain can set cookies, but none with the prefix `__Host-`."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    ((name, value),) = journey.browser.cookies.items()
    assert name.startswith(COOKIE)
    journey.browser.cookies = {name.removeprefix("__Host-"): value}
    assert error_of(journey.callback(reply)) == "state_mismatch"
    # Some browsers let such a page set a second cookie of the same name.
    journey.browser.cookies = {}
    query = "&".join(f"{key}={value}" for key, value in reply.items())
    both = {"cookie": f"{name}={value}; {name}={value}x"}
    twice = journey.browser.get(f"/callback/acme?{query}", headers=both)
    assert error_of(twice) == "state_mismatch"


def test_5_a_refused_code_ends_the_sign_in(journey: Journey) -> None:
    """Each further code needs a new start, so that one cookie does not test codes, also if it is kept."""
    journey.start()
    kept = dict(journey.browser.cookies)
    own = journey.provider.authorize(journey.url)
    assert error_of(journey.callback({**own, "code": "made-up"})) == "invalid_code"
    asked = len(journey.provider.asked)
    for browser in (journey.browser, Browser(cookies=kept)):
        assert error_of(Journey(journey.provider, browser).callback(own)) == "state_mismatch"
    assert len(journey.provider.asked) == asked
    assert error_of(journey.sign_in()) is None


@pytest.mark.slow
def test_5_refused_codes_of_an_address_do_not_use_up_the_token_requests(journey: Journey, option: SetOption) -> None:
    """Accepted codes do not count, however many people share the address."""
    option("http_rate_limit_enabled", "true")
    start = clock.now().replace(second=0, microsecond=0) + timedelta(hours=1)

    def send(number: int, **changed: str) -> Reply:
        with time_machine.travel(start + timedelta(seconds=10 * (number // 14)), tick=False):
            journey.start()
            return journey.callback({**journey.provider.authorize(journey.url), **changed})

    assert {error_of(send(number)) for number in range(35)} == {None}
    start += timedelta(minutes=1)
    replies = [send(number, code="made-up") for number in range(33)]
    assert [reply.status for reply in replies] == [302] * 30 + [429] * 3
    start += timedelta(minutes=1)
    assert error_of(send(0)) is None


@pytest.mark.parametrize("checks_pkce", [True, False])
def test_5_a_stolen_code(journey: Journey, checks_pkce: bool) -> None:
    """Attack 5: a code of the victim with the attacker's state. At a provider without PKCE, the nonce alone refuses."""
    journey.provider.checks_pkce = checks_pkce
    journey.start()
    stolen = journey.provider.authorize(journey.url)["code"]
    attacker = Journey(journey.provider, Browser())
    attacker.start()
    own = attacker.provider.authorize(attacker.url, sub="mallory")
    error = error_of(attacker.callback({**own, "code": stolen}))
    assert error == ("invalid_code" if checks_pkce else "invalid_id_token")
    assert attacker.session() is None
    assert find_user_by_email("ada@acme.example") is None


def test_6_a_callback_is_used_once(journey: Journey) -> None:
    """Attack 6: replay of the callback with its cookie."""
    journey.start()
    kept = dict(journey.browser.cookies)
    reply = journey.provider.authorize(journey.url)
    assert error_of(journey.callback(reply)) is None
    thief = Journey(journey.provider, Browser(cookies=kept))
    assert error_of(thief.callback(reply)) == "state_mismatch"
    assert thief.session() is None
    assert tokens_asked(journey.provider) == 1


def test_the_back_button_after_a_sign_in_ends_at_the_console(journey: Journey) -> None:
    journey.start()
    reply = journey.provider.authorize(journey.url)
    assert error_of(journey.callback(reply)) is None
    again = journey.callback(reply)
    assert (error_of(again), again.headers["location"]) == (None, "/console")
    assert tokens_asked(journey.provider) == 1


def test_6_a_state_ends_after_ten_minutes(journey: Journey) -> None:
    journey.start()
    reply = journey.provider.authorize(journey.url)
    with time_machine.travel(clock.now() + timedelta(minutes=10, seconds=1)):
        assert error_of(journey.callback(reply)) == "state_mismatch"


# ---------------------------------------------------------------------------- the id token


@pytest.mark.parametrize(
    "claims",
    [
        *({"nonce": "of-another-sign-in"}, {"nonce": None}, {"nonce": ["x"]}, {"nonce": ""}),
        *({"exp": NOW - 120}, {"exp": None}, {"exp": "soon"}, {"exp": True}),
        *({"iat": NOW - 3600}, {"iat": NOW + 3600}, {"iat": None}, {"iat": 10**400}),
        *({"nbf": NOW + 3600}, {"nbf": "x"}, {"auth_time": "x"}),
    ],
)
def test_7_old_and_future_tokens(journey: Journey, claims: dict[str, Any]) -> None:
    """Attack 7: the nonce of another sign-in, or none; an old or a future token."""
    assert error_of(journey.sign_in(**claims)) == "invalid_id_token"
    assert journey.session() is None


@pytest.mark.parametrize(
    "claims",
    [
        *({"aud": "another-client"}, {"aud": ["another-client"]}, {"aud": None}, {"aud": 1}),
        *({"aud": [CLIENT_ID, "other"]}, {"aud": [CLIENT_ID, "other"], "azp": "other"}),
        *({"azp": "other"}, {"aud": []}, {"iss": "https://evil.example"}, {"iss": None}),
        *({"sub": None}, {"sub": ""}, {"sub": 7}, {"sub": "x" * 256}, {"sub": ["ada-1"]}),
    ],
)
def test_8_tokens_for_others(journey: Journey, claims: dict[str, Any]) -> None:
    """Attack 8: a token of another client or issuer."""
    assert error_of(journey.sign_in(**claims)) == "invalid_id_token"


@pytest.mark.parametrize(
    "claims",
    [
        *({"aud": [CLIENT_ID]}, {"aud": CLIENT_ID, "azp": CLIENT_ID}),
        *({"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID}, {"sub": "x" * 255}),
        {"auth_time": None},
    ],
)
def test_8_forms_that_providers_use(journey: Journey, claims: dict[str, Any]) -> None:
    assert error_of(journey.sign_in(**claims)) is None


@pytest.mark.parametrize("claim", ["auth_time", "iat"])
def test_8_times_with_fractions(journey: Journey, claim: str) -> None:
    claims: dict[str, Any] = {claim: time.time()}
    assert error_of(journey.sign_in(**claims)) is None


def test_8_userinfo_of_another_person(journey: Journey) -> None:
    """Attack 8: userinfo has to be that of the person of the id token."""
    journey.provider.userinfo = {"sub": "bob-1", "email": "ada@acme.example", "email_verified": True}
    assert error_of(journey.sign_in(email=None, email_verified=None)) == "invalid_id_token"
    journey.provider.userinfo["sub"] = "ada-1"
    assert error_of(journey.sign_in(email=None, email_verified=None)) is None


def test_8_userinfo_does_not_verify_another_address(added: IdentityProvider, journey: Journey) -> None:
    """Attack 8: what userinfo says about one address does not count for that of the id token."""
    create_user("ceo@acme.example", "Ceo", email_verified=True, now=clock.now())
    service.change_provider("acme", lambda one: replace(one, groups_claim="groups"), now=clock.now())
    journey.provider.userinfo = {"sub": "ada-1", "email": "x@acme.example", "email_verified": True}
    reply = journey.sign_in(email="ceo@acme.example", email_verified=None)
    assert error_of(reply) == "account_not_linked"


def test_9_a_token_comes_only_from_the_token_endpoint(journey: Journey) -> None:
    """Attack 9: a CI job with our client id, and the token of a person at the endpoint for CI jobs."""
    started = journey.start(idToken={"token": journey.provider.id_token({"sub": "ada-1"})})
    assert started.refusal == (404, "ID_TOKEN_NOT_SUPPORTED")
    reply = exchange(journey.provider.id_token({"sub": "ada-1", "aud": ORIGIN}))
    assert (reply.status, reply.json["error"]) == (400, "invalid_request")


def _unsigned(token: str) -> str:
    _, claims, _ = token.split(".")
    header = base64url_encode(json.dumps({"alg": "none", "kid": "first"}).encode()).decode()
    return f"{header}.{claims}."


def _with_hmac(token: str) -> str:
    _, claims, _ = token.split(".")
    header = base64url_encode(json.dumps({"alg": "HS256", "kid": "first"}).encode()).decode()
    signed = f"{header}.{claims}"
    tag = hmac.digest(SECRET.encode(), signed.encode(), "sha256")
    return f"{signed}.{urlsafe_b64encode(tag).rstrip(b'=').decode()}"


def _changed(token: str) -> str:
    header, claims, signature = token.split(".")
    return f"{header}.{claims}.{signature[:-8]}AAAAAAAA"


@pytest.mark.parametrize(
    "change",
    [
        {"tampers": _unsigned},
        {"tampers": _with_hmac},
        {"tampers": _changed},
        {"tampers": lambda _: "a.b.c"},
        {"tampers": lambda _: "x" * 20_000},
        {"tampers": lambda token: f"{token}.more"},
        {"signs_with": rsa_key(1)},
        {"header": {"kid": "../../etc/passwd"}},
        {"header": {"crit": ["exp"]}},
        {"published": {"alg": "RS512"}},
        {"published": {"use": "enc"}},
        {"published": {"d": "private"}},
        {"published": {"kty": "oct", "k": "c2VjcmV0"}},
    ],
)
def test_10_forged_signatures(journey: Journey, change: dict[str, Any]) -> None:
    """Attack 10: `none`, HMAC with the secret, a wrong key, and headers that name keys."""
    for name, value in change.items():
        setattr(journey.provider, name, value)
    assert error_of(journey.sign_in()) == "invalid_id_token"


def test_10_a_key_that_the_token_brings_along(journey: Journey) -> None:
    """Attack 10: `jku` and `jwk` name a key of the attacker. Nothing is asked of that address."""
    mallory = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with serving_provider() as evil:
        journey.provider.signs_with = mallory
        journey.provider.header = {"jku": f"{evil.url}/keys?tenant=1"}
        assert error_of(journey.sign_in()) == "invalid_id_token"
        assert evil.asked == []


def test_10_an_algorithm_that_is_not_pinned(aws_in_memory: None, on_loopback: None, hostile: HostileProvider) -> None:
    add(hostile, algorithms=("ES256",))
    assert error_of(Journey(hostile, Browser()).sign_in()) == "invalid_id_token"


@pytest.mark.parametrize("value", ["other", None, ["right"]])
def test_12_13_a_claim_that_the_operator_requires(
    aws_in_memory: None, on_loopback: None, hostile: HostileProvider, value: Any
) -> None:
    """Attacks 12 and 13: another tenant of Entra ID, or a consumer account of Google with a company address."""
    add(hostile, required_claims={"hd": ("acme.example", "right")})
    journey = Journey(hostile, Browser())
    assert error_of(journey.sign_in(hd=value)) == "invalid_id_token"
    assert find_user_by_email("ada@acme.example") is None
    assert error_of(journey.sign_in(hd="right")) is None


# ---------------------------------------------------------------------------- the user


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ada@acme.example", "email_verified": False},
        {"email": "ada@acme.example", "email_verified": None},
        {"email": "ada@acme.example", "email_verified": "false"},
        {"email": "ada@acme.example", "email_verified": 1},
        {"email": "ada@other.example", "email_verified": True},
    ],
)
def test_11_an_address_that_does_not_count(journey: Journey, claims: dict[str, Any]) -> None:
    """Attack 11: nOAuth. A victim's address that the provider did not verify, or of a domain that is not listed."""
    victim = create_user(claims["email"], "Victim", email_verified=True, now=clock.now())
    assert error_of(journey.sign_in(**claims)) == "account_not_linked"
    assert journey.session() is None
    assert find_user_by_email(victim.email) == victim


@pytest.mark.parametrize("proof", [VerifiedBy.CLAIM, VerifiedBy.DOMAIN])
@pytest.mark.parametrize("verified", [False, None, True])
def test_11_what_providers_say_about_addresses(
    aws_in_memory: None, on_loopback: None, hostile: HostileProvider, proof: VerifiedBy, verified: bool | None
) -> None:
    """Authentik sends false for everyone, Entra ID nothing, and Keycloak false for users that an admin made."""
    add(hostile, verified_by=proof)
    create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    reply = Journey(hostile, Browser()).sign_in(email_verified=verified)
    counts = verified is True or proof is VerifiedBy.DOMAIN
    assert error_of(reply) == (None if counts else "account_not_linked")


def test_14_an_account_that_a_stranger_made_first(journey: Journey, option: SetOption) -> None:
    """Attack 14: pre-hijack. Password, session and key of the stranger end, at once."""
    option("scrypt_cost", 1024)
    option("session_for_api_keys", "true")
    now = clock.now()
    stranger = create_user("ada@acme.example", "X", password="correct horse battery", now=now)
    mallory = browser_of(stranger)
    _, key = create_key(NewKey(user_id=stranger.id), now=now)
    assert mallory.get("/get-session").json is not None
    assert Sender(key)("GET", "/v2/user").status == 200
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] == stranger.id
    assert mallory.get("/get-session").json is None
    assert Sender(key)("GET", "/v2/user").status == 401
    password = {"email": "ada@acme.example", "password": "correct horse battery"}
    assert Browser().post("/sign-in/email", password, headers=FROM_PAGE).status == 401
    (account,) = journey.browser.get("/list-accounts").json
    assert account["providerId"] == "acme"
    proven = find_user_by_email("ada@acme.example")
    assert proven is not None
    assert proven.proven


@pytest.mark.parametrize("first", ["password", "provider"])
def test_14_a_stranger_who_linked_an_account_at_the_same_provider(
    journey: Journey, option: SetOption, first: str
) -> None:
    """A colleague. Else nobody but the operator could let the person in."""
    option("sign_up_policy", "open")
    mallory: dict[str, Any] = {"sub": "mallory-1", "email": "mallory@acme.example"}
    stranger = Journey(journey.provider, Browser())
    if first == "password":
        user = create_user("ada@acme.example", "X", password="correct horse", now=clock.now())
        stranger.browser = browser_of(user)
        assert error_of(stranger.sign_in(start={"path": "/link-social"}, **mallory)) is None
    else:
        own: dict[str, Any] = {**mallory, "email": "ada@acme.example", "email_verified": False}
        assert error_of(stranger.sign_in(**own)) is None
    assert stranger.session() is not None
    assert error_of(journey.sign_in()) is None
    assert stranger.session() is None
    (account,) = journey.browser.get("/list-accounts").json
    assert account["accountId"] == "ada-1"
    # The colleague has an account of their own from now on.
    assert error_of(stranger.sign_in(**mallory)) is None
    assert stranger.session()["user"]["email"] == "mallory@acme.example"


def test_15_the_address_of_a_former_employee(journey: Journey) -> None:
    """Attack 15: a new employee gets an old address. The account of the former one stays theirs."""
    assert error_of(journey.sign_in()) is None
    new = Journey(journey.provider, Browser())
    assert error_of(new.sign_in(sub="ada-2")) == "account_not_linked"
    assert new.session() is None


@pytest.mark.parametrize(
    "email",
    [
        *("\uff4da@acme.example", "a\u0434a@acme.example", "ada@\u0430cme.example"),
        *("ada@evil.example@acme.example", "ada@acme.example\n", "ada@acme.example ", " ada@acme.example"),
        *("ada\u200b@acme.example", "ada@acme.example.", "ada@acme\uff0eexample", '"ada"@acme.example'),
    ],
)
def test_16_addresses_that_only_look_alike(journey: Journey, option: SetOption, email: str) -> None:
    """Attack 16: Unicode, two @, and line breaks. Only plain ASCII counts."""
    option("sign_up_policy", "closed")
    for victim in ("ma@acme.example", "ada@acme.example"):
        create_user(victim, "Victim", email_verified=True, now=clock.now())
    assert error_of(journey.sign_in(email=email)) in (*("account_not_linked", "email_not_found", "signup_disabled"),)
    assert journey.session() is None


def test_16_the_letter_case_does_not_matter(journey: Journey) -> None:
    user = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    assert error_of(journey.sign_in(email="Ada@ACME.example")) is None
    assert journey.session()["user"]["id"] == user.id


# ---------------------------------------------------------------------------- the pages


@pytest.mark.parametrize("field", ["callbackURL", "errorCallbackURL", "newUserCallbackURL"])
@pytest.mark.parametrize(
    "url",
    [
        *("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"),
        *("/%2f/evil.example", "https://127.0.0.1:3000@evil.example", "/\nevil"),
    ],
)
def test_18_open_redirects(journey: Journey, field: str, url: str) -> None:
    """Attack 18: the start refuses them, and what it accepts is sealed."""
    assert journey.start(**{field: url}).status == 403


def test_19_no_text_of_a_provider_reaches_the_page(journey: Journey) -> None:
    """Attack 19: `error` and `error_description` of a stranger."""
    for error, code in (
        ("<script>", "provider_error"),
        ("Call +1 555", "provider_error"),
        ("access_denied", "access_denied"),
        ("login_required", "login_required"),
    ):
        journey.start(errorCallbackURL="/sign-in?next=%2Fx")
        reply = journey.provider.authorize(journey.url)
        sent = {"state": reply["state"], "iss": reply["iss"], "error": error}
        answer = journey.callback({**sent, "error_description": "Call this number"})
        assert answer.headers["location"] == f"/sign-in?next=%2Fx&error={code}"


# ---------------------------------------------------------------------------- the provider


def test_20_a_provider_that_changes_in_the_middle(journey: Journey) -> None:
    """Attack 20: a change of what is trusted ends sign-ins in progress."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    service.change_provider("acme", lambda one: replace(one, client_id="x"), now=clock.now())
    assert error_of(journey.callback(reply)) == "state_mismatch"
    assert tokens_asked(journey.provider) == 0


def test_20_a_provider_that_is_removed_and_added_with_another_issuer(journey: Journey) -> None:
    """Attack 20: an account is that of an issuer. The same subject elsewhere is another person."""
    journey.sign_in(sub="1")
    ada = journey.session()["user"]["id"]
    journey.start()
    reply = journey.provider.authorize(journey.url)
    service.remove_provider("acme")
    assert error_of(journey.callback(reply)) == "oauth_provider_not_found"
    with serving_provider() as other:
        add(other)
        stranger = Journey(other, Browser())
        assert error_of(stranger.sign_in(sub="1", email="eve@acme.example")) is None
        assert stranger.session()["user"]["id"] != ada
        # Ada is known by her address, and her account is now that of the new issuer.
        again = Journey(other, Browser())
        assert error_of(again.sign_in(sub="2")) is None
        assert again.session()["user"]["id"] == ada
        (account,) = again.browser.get("/list-accounts").json
        assert (account["issuer"], account["accountId"]) == (other.url, "2")


def test_21_linking_needs_a_fresh_session(journey: Journey) -> None:
    """Attack 21: a thief of an old session cannot add a way to sign in."""
    with time_machine.travel(clock.now() - timedelta(days=2)):
        user = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
        _, token = start_session(user, now=clock.now())
    journey.browser = browser_of(user, token=token)
    assert journey.start("/link-social").refusal == (403, "SESSION_NOT_FRESH")
    anonymous = Journey(journey.provider, Browser())
    assert anonymous.start("/link-social").refusal == (401, "UNAUTHORIZED")


def test_21_a_link_is_finished_by_the_session_that_started_it(journey: Journey) -> None:
    """Attack 21: the callback of an attacker's link in the browser of a victim, and after a sign-out."""
    now = clock.now()
    mallory = create_user("mallory@acme.example", "M", email_verified=True, now=now)
    victim = create_user("victim@acme.example", "V", email_verified=True, now=now)
    journey.browser = browser_of(mallory)
    journey.start("/link-social")
    reply = journey.provider.authorize(journey.url)
    state = {name: value for name, value in journey.browser.cookies.items() if name.startswith(COOKIE)}
    for browser in (browser_of(victim), browser_of(mallory), Browser()):
        browser.cookies.update(state)
        assert error_of(Journey(journey.provider, browser).callback(reply)) == "state_mismatch"
    assert tokens_asked(journey.provider) == 0


@pytest.mark.parametrize("is_exception", [False, True])
def test_a_managed_user_signs_in_with_no_other_provider(
    journey: Journey, option: SetOption, is_exception: bool
) -> None:
    """Someone links a private account, and then leaves the company."""
    option("sign_up_policy", "open")
    required = {"mode": Mode.REQUIRED, "exceptions": ("ada@corp.example",) * is_exception}
    add_acme(id="corp", domains=("corp.example",), **required)
    user = create_user("ada@corp.example", "Ada", email_verified=True, now=clock.now())
    acme = service.find_provider("acme")
    assert acme is not None
    link(user, acme, "ada-1")
    reply = journey.sign_in(email="ada@home.example")
    assert error_of(reply) == (None if is_exception else "sso_required")
    assert (journey.session() is None) != is_exception
    # Nor does another provider make users of the domain.
    other = Journey(journey.provider, Browser())
    eve: dict[str, Any] = {"sub": "eve", "email": "eve@corp.example", "email_verified": True}
    assert error_of(other.sign_in(**eve)) == "sso_required"
    assert find_user_by_email("eve@corp.example") is None


def test_22_the_last_way_to_sign_in_stays(journey: Journey) -> None:
    """Attack 22: unlink the last way, or that of another user."""
    journey.sign_in()
    (own,) = journey.browser.get("/list-accounts").json
    unlink = journey.browser.post("/unlink-account", {"accountId": own["id"]}, headers=FROM_PAGE)
    assert unlink.refusal == (400, "FAILED_TO_UNLINK_LAST_ACCOUNT")
    bob = Journey(journey.provider, Browser())
    bob.sign_in(sub="bob-1", email="bob@acme.example")
    second = service.add_provider(journey.provider.settings(id="second", domains=()), SECRET)
    user = find_user_by_email("bob@acme.example")
    assert user is not None
    link(user, second, "bob-2")
    other = bob.browser.post("/unlink-account", {"accountId": own["id"]}, headers=FROM_PAGE)
    assert other.refusal == (400, "ACCOUNT_NOT_FOUND")
    assert len(journey.browser.get("/list-accounts").json) == 1


def redirecting(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(307)
    handler.send_header("Location", "http://127.0.0.1:9001/")
    handler.end_headers()


def failing(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(503)
    handler.end_headers()
    handler.wfile.write(b"<html>down</html>")


def listing(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"[1]")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (redirecting, "invalid_code"),
        (endless, "provider_unavailable"),
        (slow, "provider_unavailable"),
        (failing, "provider_unavailable"),
        (listing, "invalid_code"),
    ],
)
def test_23_a_token_endpoint_that_misbehaves(journey: Journey, answer: Any, code: str) -> None:
    """Attack 23: redirects, huge and slow replies. A user has an answer within some seconds."""
    journey.provider.answers["/token"] = answer
    began = time.monotonic()
    assert error_of(journey.sign_in()) == code
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("host", ["localhost", "169.254.169.254", "10.0.0.1", "127.0.0.1:9001"])
def test_23_addresses_that_are_not_public(journey: Journey, host: str) -> None:
    """Attack 23: nothing is asked of inner addresses over https, whatever the operator has pinned."""
    endpoints = replace(journey.provider.settings().endpoints, token=f"https://{host}/token")
    service.change_provider("acme", lambda one: replace(one, endpoints=endpoints), now=clock.now())
    assert error_of(journey.sign_in()) == "provider_unavailable"


def test_27_an_old_login_does_not_pass_for_a_new_one(journey: Journey) -> None:
    """Attack 27: a provider that ignores the question for a new login."""
    prompt = {"additionalParams": {"prompt": "login"}}
    journey.start(additionalParams={"prompt": "login"})
    assert (journey.asked["prompt"], journey.asked["max_age"]) == ("login", "0")
    stale = {"auth_time": NOW - 3600}
    assert error_of(journey.sign_in(start=prompt, **stale)) == "reauthentication_missing"
    assert error_of(journey.sign_in(start=prompt, auth_time=None)) == "reauthentication_missing"
    assert error_of(journey.sign_in(start=prompt)) is None
    # Without the question, the session is as old as the login.
    assert error_of(journey.sign_in(auth_time=NOW - 2 * 86_400)) is None
    assert journey.start("/link-social").refusal == (403, "SESSION_NOT_FRESH")


def test_28_a_copy_of_the_table_has_no_secret_and_no_token(journey: Journey) -> None:
    """Attack 28: secrets and states are sealed, and tokens are not stored."""
    seen: list[str] = []

    def noted(token: str) -> str:
        seen.append(token)
        return token

    journey.provider.tampers = noted
    journey.sign_in()
    stored = json.dumps(list(IDENTITY.scan(exists("pk"))), default=str)
    assert SECRET not in stored
    assert "ada-1" in stored
    for secret in (*seen, journey.asked["nonce"], journey.asked["state"], "access"):
        assert f'"{secret}"' not in stored


def test_28_a_tampered_state_cookie(journey: Journey) -> None:
    """Attack 28: a changed cookie, and one that is not even base64."""
    journey.start()
    reply = journey.provider.authorize(journey.url)
    ((name, value),) = journey.browser.cookies.items()
    for text in (value[:-4] + "AAAA", value[1:], "", "*", "A" * 40, value + "=x"):
        journey.browser.cookies = {name: text}
        assert error_of(journey.callback(reply)) == "state_mismatch"


def test_29_a_start_writes_nothing_and_leaves_three_cookies(journey: Journey, option: SetOption) -> None:
    """Attack 29: a flood of starts and of cookies."""
    option("http_rate_limit_enabled", "false")
    with counted() as calls:
        journey.start()
    assert {call.operation for call in calls.made} == {"GetItem"}
    for _ in range(5):
        journey.start()
    kept = [name for name in journey.browser.cookies if name.startswith(COOKIE)]
    assert len(kept) == 3
    # The newest sign-in works.
    assert error_of(journey.callback(journey.provider.authorize(journey.url))) is None


def test_29_the_longest_pages_fit_into_the_headers_of_a_request(journey: Journey) -> None:
    """Attack 29: cookies are cleared before the gateway refuses the request for its size."""
    longest = "/" + "x" * 2_046
    for _ in range(3):
        assert journey.start(callbackURL=longest, errorCallbackURL="/").status == 200
    cookies = [f"{k}={v}; " for k, v in journey.browser.cookies.items()]
    assert sum(map(len, cookies)) < 7_000
    assert max(map(len, cookies)) < 4_096
    assert error_of(journey.callback(journey.provider.authorize(journey.url))) is None
    assert journey.start(callbackURL=longest, errorCallbackURL="/sign-in").status == 400


def test_32_discovery_depends_on_the_domain_alone(journey: Journey) -> None:
    """Attack 32: whether an address has an account cannot be seen."""
    create_user("ada@acme.example", "Ada", now=clock.now())
    for email in ("ada@acme.example", "nobody@acme.example"):
        assert journey.start("/sign-in/sso", provider=None, email=email).status == 200
        assert journey.asked["login_hint"] == email
    for body in ({"email": "ada@home.example"}, {"domain": "home.example"}, {"providerId": "x"}):
        reply = journey.start("/sign-in/sso", **body)
        assert reply.status == 404
