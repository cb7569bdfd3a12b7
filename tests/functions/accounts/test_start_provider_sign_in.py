"""POST /api/auth/sign-in/social and /api/auth/sign-in/sso"""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.requests import Browser, Sender
from tests.sso.providers import acme, add_acme

SOCIAL, SSO = "/sign-in/social", "/sign-in/sso"


@pytest.fixture(autouse=True)
def provider(aws_in_memory: None) -> None:
    add_acme(hidden=True)


def test_the_client_goes_on_to_the_provider() -> None:
    reply = Browser().post(SOCIAL, {"provider": "acme"})
    assert reply.status == 200
    assert reply.json["redirect"] is True
    assert reply.headers["location"] == reply.json["url"]
    address = urlsplit(reply.json["url"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == acme().endpoints.authorization
    query = dict(parse_qsl(address.query))
    assert {name: query[name] for name in ("response_type", "client_id", "scope")} == {
        "response_type": "code",
        "client_id": "larder",
        "scope": "openid email profile",
    }
    assert query["redirect_uri"] == "https://cache.example.com/api/auth/callback/acme"
    assert query["code_challenge_method"] == "S256"
    assert not {"prompt", "max_age", "login_hint"} & query.keys()
    (cookie,) = reply.cookies
    name, _, attributes = cookie.partition("=")
    assert name == f"__Host-larder.sso.{query['state'].partition('.')[0]}"
    assert attributes.endswith("; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax")


def test_over_http_the_cookie_has_no_prefix_and_no_secure_attribute() -> None:
    (cookie,) = Browser(https=False).post(SOCIAL, {"provider": "acme"}).cookies
    assert cookie.startswith("larder.sso.")
    assert "Secure" not in cookie


def test_what_a_client_may_ask_of_the_provider() -> None:
    body = {
        "provider": "acme",
        "disableRedirect": True,
        "loginHint": "ada@acme.example",
        "additionalParams": {"prompt": "select_account", "ui_locales": "de"},
        "scopes": ["admin"],
        "requestSignUp": True,
    }
    reply = Browser().post(SOCIAL, body)
    assert reply.json["redirect"] is False
    query = dict(parse_qsl(urlsplit(reply.json["url"]).query))
    assert (query["prompt"], query["login_hint"]) == ("select_account", "ada@acme.example")
    assert query["scope"] == "openid email profile"
    assert "ui_locales" not in query


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"provider": "other"}, (404, "PROVIDER_NOT_FOUND")),
        # DynamoDB refuses such keys.
        ({"provider": ""}, (404, "PROVIDER_NOT_FOUND")),
        ({"provider": "x" * 3000}, (404, "PROVIDER_NOT_FOUND")),
        ({"provider": "acme", "idToken": {"token": "x"}}, (404, "ID_TOKEN_NOT_SUPPORTED")),
        ({}, (400, "VALIDATION_ERROR")),
        ({"provider": 7}, (400, "VALIDATION_ERROR")),
        ({"provider": "acme", "loginHint": "x" * 300}, (400, "VALIDATION_ERROR")),
        ({"provider": "acme", "additionalParams": {"prompt": "none"}}, (400, "VALIDATION_ERROR")),
        ({"provider": "acme", "additionalParams": {"state": "x"}}, (400, "VALIDATION_ERROR")),
        ({"provider": "acme", "additionalParams": {"redirect_uri": "x"}}, (400, "VALIDATION_ERROR")),
        ({"provider": "acme", "callbackURL": "//evil.example"}, (403, "INVALID_CALLBACK_URL")),
    ],
)
def test_refusals(body: dict[str, Any], refusal: tuple[int, str]) -> None:
    assert Browser().post(SOCIAL, body).refusal == refusal


def test_a_page_of_another_site_starts_nothing() -> None:
    reply = Browser().post(SOCIAL, {"provider": "acme"}, headers={"origin": "https://evil.example"})
    assert reply.refusal == (403, "INVALID_ORIGIN")


@pytest.mark.parametrize("body", [{"email": "Ada@Acme.example"}, {"domain": "ACME.example"}, {"providerId": "acme"}])
def test_the_provider_is_found_by_address_domain_or_id(body: dict[str, str]) -> None:
    reply = Browser().post(SSO, body)
    assert reply.status == 200
    hint = dict(parse_qsl(urlsplit(reply.json["url"]).query)).get("login_hint")
    assert hint == body.get("email")


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, (400, "VALIDATION_ERROR")),
        ({"email": ""}, (400, "VALIDATION_ERROR")),
        ({"email": "nonsense"}, (400, "INVALID_EMAIL")),
        ({"email": "ada@other.example"}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
        ({"domain": "other.example"}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
        ({"domain": "x" * 3000}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
        ({"organizationSlug": "x" * 3000}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
        ({"providerId": "x" * 3000}, (404, "PROVIDER_NOT_FOUND")),
        ({"domain": "x@acme.example"}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
        ({"providerId": "other"}, (404, "PROVIDER_NOT_FOUND")),
        ({"organizationSlug": "nowhere"}, (404, "NO_PROVIDER_FOUND_FOR_THE_ISSUER")),
    ],
)
def test_without_a_provider(body: dict[str, str], refusal: tuple[int, str]) -> None:
    assert Browser().post(SSO, body).refusal == refusal


def test_a_program_can_start_one_too() -> None:
    reply = Sender(None)("POST", f"/api/auth{SOCIAL}", json_body={"provider": "acme"})
    assert reply.status == 200
