"""Ask a provider, from the operator's computer: its configuration, its keys, and whether it knows the client."""

import ipaddress
import secrets
import socket
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import click

from larder_cli import http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from larder.sso.models import Endpoints, IdentityProvider

_SECONDS = 10.0
_MOST_BYTES = 256 * 1024
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A JSON object of a provider, and the time by its clock if it sent one."""

    json: "Mapping[str, Any]"
    at: datetime | None


def read_document(url: str) -> Document:
    """Raises ClickException, which says what to do."""
    host = urlsplit(url).hostname
    try:
        reply = http.exchange("GET", url, headers=_HEADERS, timeout_s=_SECONDS)
    except http.Unreachable as error:
        raise click.ClickException(
            f"{host} did not answer ({error}): {http.about_silence(error)}"
        ) from None
    if reply.status != 200:
        raise click.ClickException(f"{url} replied with {reply.status}, not 200: check the issuer")
    if len(reply.body) > _MOST_BYTES or not isinstance(reply.json, dict):
        raise click.ClickException(
            f"{url} is not a JSON object of at most {_MOST_BYTES} bytes: check the issuer"
        )
    return Document(json=reply.json, at=_time_of(reply))


def read_endpoints(issuer: str, *, origin: str) -> "tuple[Endpoints, Document]":
    """What the configuration of an issuer says now. Raises InvalidValue, ClickException."""
    from larder.sso.discovery import configuration_url, parse_configuration

    document = read_document(configuration_url(issuer))
    return parse_configuration(document.json, issuer, origin=origin), document


def usable_keys(keys: object, algorithms: "tuple[str, ...]") -> int:
    """How many of the keys can have signed an id token."""
    kinds = {_KINDS[algorithm[:2]] for algorithm in algorithms}
    found = keys if isinstance(keys, list) else []
    return sum(
        isinstance(key, dict)
        and key.get("kty") in kinds
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithms[0]) in algorithms
        for key in found
    )


def error_of_token_endpoint(
    provider: "IdentityProvider", secret: str | None, redirect_uri: str
) -> str:
    """What the token endpoint says to a code that cannot exist, such as `invalid_grant`. Raises ClickException."""
    from larder.sso.tokens import client_proof

    form = {
        "grant_type": "authorization_code",
        "code": secrets.token_urlsafe(24),
        "redirect_uri": redirect_uri,
        "code_verifier": secrets.token_urlsafe(48),
    }
    proof, own = client_proof(provider, secret)
    headers, body = {**_HEADERS, "Content-Type": _FORM, **proof}, urlencode({**form, **own})
    url = provider.endpoints.token
    try:
        reply = http.exchange("POST", url, headers=headers, body=body.encode(), timeout_s=_SECONDS)
    except http.Unreachable as error:
        raise click.ClickException(
            f"{urlsplit(url).hostname} did not answer ({error}): {http.about_silence(error)}"
        ) from None
    error_code = reply.json.get("error") if isinstance(reply.json, dict) else None
    return error_code if isinstance(error_code, str) else f"status {reply.status}"


def private_hosts(endpoints: "Endpoints") -> list[str]:
    """The hosts that functions ask and that have an address here that is not on the internet."""
    urls = (endpoints.token, endpoints.jwks, endpoints.userinfo)
    hosts = {host for url in urls if url and (host := urlsplit(url).hostname)}
    return sorted(host for host in hosts if not all(map(_is_public, _addresses(host))))


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(one[4][0]).partition("%")[0] for one in found]


def _is_public(address: str) -> bool:
    return ipaddress.ip_address(address).is_global


def _time_of(reply: http.Answer) -> datetime | None:
    try:
        return parsedate_to_datetime(reply.headers.get("date", ""))
    except ValueError:
        return None


_HEADERS = {"Accept": "application/json", "User-Agent": "larder"}
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
