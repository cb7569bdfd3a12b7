"""The configuration of a provider: what is pinned, and which are refused."""

from typing import Any

import pytest

from larder.errors import InvalidValue
from larder.issuers.urls import parse_provider_issuer
from larder.sso.discovery import configuration_url, parse_configuration
from larder.sso.models import Endpoints

ORIGIN = "https://cache.example.com"
ISSUER = "https://login.acme.example"
CONFIGURATION = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.acme.example/authorize?p=policy",
    "token_endpoint": "https://tokens.acme.example/token",
    "jwks_uri": "https://keys.acme.example/keys",
    "userinfo_endpoint": "https://login.acme.example/me",
    "response_types_supported": ["code", "id_token"],
    "id_token_signing_alg_values_supported": ["HS256", "none", "RS512", "RS256"],
    "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
    "authorization_response_iss_parameter_supported": True,
}


def parsed(of: str = ISSUER, origin: str = ORIGIN, /, **changes: Any) -> Endpoints:
    configuration = {**CONFIGURATION, **changes}
    configuration = {name: value for name, value in configuration.items() if value is not ...}
    return parse_configuration(configuration, of, origin=origin)


def test_the_addresses_are_pinned() -> None:
    """Google has its issuer, tokens and keys on three hosts."""
    assert parsed() == Endpoints(
        authorization="https://login.acme.example/authorize?p=policy",
        token="https://tokens.acme.example/token",
        jwks="https://keys.acme.example/keys",
        userinfo="https://login.acme.example/me",
        sends_issuer=True,
        authentication="client_secret_basic",
        algorithms=("RS256", "RS512"),
    )


def test_what_is_missing_means_what_the_standard_says() -> None:
    found = parsed(
        userinfo_endpoint=...,
        response_types_supported=...,
        id_token_signing_alg_values_supported=...,
        token_endpoint_auth_methods_supported=...,
        authorization_response_iss_parameter_supported=...,
    )
    assert (found.userinfo, found.sends_issuer) == (None, False)
    assert (found.authentication, found.algorithms) == ("client_secret_basic", ("RS256",))


def test_a_secret_goes_into_the_body_if_the_provider_wants_it_there() -> None:
    methods = ["private_key_jwt", "client_secret_post"]
    assert parsed(token_endpoint_auth_methods_supported=methods).authentication == methods[1]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {"issuer": "https://login.microsoftonline.com/{tenantid}/v2.0"},
            "issuer: its configuration names another issuer, .* Use the issuer of your own tenant",
        ),
        ({"issuer": f"{ISSUER}/"}, "The slash at the end counts"),
        ({"issuer": ...}, "names another issuer, None"),
        ({"token_endpoint": ...}, "token_endpoint: is missing"),
        ({"token_endpoint": "http://login.acme.example/token"}, "token_endpoint: must be an https"),
        ({"token_endpoint": "https://login.acme.example:8443/"}, "token_endpoint: must be an https"),
        ({"jwks_uri": "https://127.0.0.1/keys"}, "jwks_uri: must be an https"),
        ({"jwks_uri": "http://127.0.0.1:5000/keys"}, "jwks_uri: must be an https"),
        ({"jwks_uri": "https://u:p@login.acme.example/keys"}, "jwks_uri: must be an https"),
        ({"jwks_uri": "https://login.acme.example/keys#1"}, "jwks_uri: must be an https"),
        ({"jwks_uri": "https://login.acme.example/" + "k" * 1000}, "jwks_uri: must be an https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint: must be an"),
        ({"authorization_endpoint": 'https://a.example/"><b'}, "authorization_endpoint: must be an"),
        ({"userinfo_endpoint": None}, "userinfo_endpoint: is missing"),
        ({"response_types_supported": ["id_token"]}, "response_types_supported: must have code"),
        ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "has only HS256, none: let the provider sign"),
        ({"id_token_signing_alg_values_supported": "RS256"}, "is not a list"),
        (
            {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
            "has only private_key_jwt: Larder needs client_secret_basic or",
        ),
    ],
)
def test_other_configurations_are_refused(changes: dict[str, Any], error: str) -> None:
    """Attacks 10 and 12: algorithms with a shared secret, and an issuer of many tenants."""
    with pytest.raises(InvalidValue, match=error):
        parsed(**changes)


@pytest.mark.parametrize(
    "issuer",
    [
        "https://accounts.google.com",
        "https://acme.eu.auth0.com/",
        "https://id.acme.example/application/o/larder/",
        "https://id.acme.example/realms/acme",
        "https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0",
    ],
)
def test_the_slash_at_the_end_of_an_issuer_is_kept(issuer: str) -> None:
    """Tokens of Auth0 and Authentik name the issuer with it."""
    assert parse_provider_issuer(issuer, origin=ORIGIN) == issuer
    assert parsed(issuer, issuer=issuer).jwks == CONFIGURATION["jwks_uri"]
    assert "//." not in configuration_url(issuer)


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.acme.example", "https://login.acme.example//", "https://login.acme.example:8443",
        "https://10.0.0.1", "https://login.acme.example/?a=b", "http://127.0.0.1:5000",
    ],
)  # fmt: skip
def test_other_issuers_are_refused(issuer: str) -> None:
    with pytest.raises(InvalidValue, match="issuer: must be an https URL"):
        parse_provider_issuer(issuer, origin=ORIGIN)


def test_only_a_deployment_on_a_loopback_address_has_a_provider_on_one() -> None:
    local, origin = "http://127.0.0.1:3000/_local/provider", "http://127.0.0.1:3000"
    assert parse_provider_issuer(local, origin=origin) == local
    found = parsed(local, origin, issuer=local, jwks_uri=f"{local}/keys")
    assert found.jwks == f"{local}/keys"
