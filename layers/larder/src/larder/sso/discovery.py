"""What the configuration of an OpenID provider says (OpenID Connect Discovery 1.0, RFC 8414).

The operator's command reads it when the provider is added or refreshed, and the addresses are pinned then. Functions
never read it, so nothing that a provider or a name server changes later leads them elsewhere.
"""

from collections.abc import Mapping
from typing import Any

from larder.errors import InvalidValue
from larder.issuers.models import SIGN_IN_ALGORITHMS
from larder.issuers.urls import parse_endpoint
from larder.sso.models import Endpoints

AUTHENTICATION = ("client_secret_basic", "client_secret_post")
"""How Larder proves itself at a token endpoint, in the order of preference."""

GOOGLE = "https://accounts.google.com"


def configuration_url(issuer: str) -> str:
    return f"{issuer.removesuffix('/')}/.well-known/openid-configuration"


def parse_configuration(configuration: Mapping[str, Any], issuer: str, *, origin: str) -> Endpoints:
    """The addresses of a provider and what it announces. `origin` is the deployment's.

    Raises InvalidValue, also if the configuration is of another issuer, as those of Entra ID for several tenants are.
    """
    named = configuration.get("issuer")
    if named != issuer:
        hint = ""
        if isinstance(named, str) and named.rstrip("/") == issuer.rstrip("/"):
            hint = ". The slash at the end counts"
        elif isinstance(named, str) and "{" in named:
            hint = ". Use the issuer of your own tenant, with its id in place of `common` or `organizations`"
        raise InvalidValue("issuer", f"its configuration names another issuer, {named!r}{hint}")
    endpoints = {
        name: _endpoint(configuration, name, origin)
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
    }
    if "code" not in _texts(configuration, "response_types_supported", ("code",)):
        raise InvalidValue(
            "response_types_supported", "must have code: the provider cannot send one"
        )
    userinfo = None
    if "userinfo_endpoint" in configuration:
        userinfo = _endpoint(configuration, "userinfo_endpoint", origin)
    return Endpoints(
        authorization=endpoints["authorization_endpoint"],
        token=endpoints["token_endpoint"],
        jwks=endpoints["jwks_uri"],
        userinfo=userinfo,
        sends_issuer=configuration.get("authorization_response_iss_parameter_supported") is True,
        authentication=_authentication(configuration),
        algorithms=_algorithms(configuration),
    )


def _endpoint(configuration: Mapping[str, Any], name: str, origin: str) -> str:
    url = configuration.get(name)
    if not isinstance(url, str):
        raise InvalidValue(name, "is missing in the configuration of the issuer")
    return parse_endpoint(url, origin=origin, field=name)


def _algorithms(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    announced = _texts(configuration, "id_token_signing_alg_values_supported", ("RS256",))
    usable = tuple(algorithm for algorithm in SIGN_IN_ALGORITHMS if algorithm in announced)
    if not usable:
        raise InvalidValue(
            "id_token_signing_alg_values_supported",
            f"has only {', '.join(announced) or 'nothing'}: let the provider sign id tokens with a private key, such as"
            " RS256",
        )
    return usable


def _authentication(configuration: Mapping[str, Any]) -> str:
    announced = _texts(
        configuration, "token_endpoint_auth_methods_supported", ("client_secret_basic",)
    )
    for method in AUTHENTICATION:
        if method in announced:
            return method
    raise InvalidValue(
        "token_endpoint_auth_methods_supported",
        f"has only {', '.join(announced) or 'nothing'}: Larder needs {' or '.join(AUTHENTICATION)}",
    )


def _texts(configuration: Mapping[str, Any], name: str, default: tuple[str, ...]) -> list[str]:
    """A list of texts, or what its absence means."""
    found = configuration.get(name)
    if found is None:
        return list(default)
    if not isinstance(found, list):
        raise InvalidValue(name, "is not a list in the configuration of the issuer")
    return [method for method in found if isinstance(method, str)]
