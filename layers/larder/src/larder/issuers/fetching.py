"""Ask an issuer for its keys, and an OpenID provider for tokens, on the internet and nowhere else.

This is the only client for addresses beyond AWS's. It never connects to an address of the account's network, of the
function itself (Lambda's runtime listens on 127.0.0.1), or of the metadata service: the host is resolved once, every
address of it must be public, and the connection goes to the first of these that accepts one. It follows no redirect,
and stops after three seconds or 256 KB.
"""

import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from threading import Timer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

from larder.issuers.models import Issuer, Jwk
from larder.issuers.urls import host_of, is_loopback

SECONDS = 3.0
MOST_BYTES = 256 * 1024
"""Of tokens, enough for the ids of 3,000 groups. The text of a token is a third larger than its claims."""
_CHUNK = 16 * 1024
_MOST_KEYS = 100
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}
_JSON: Mapping[str, str] = MappingProxyType({"Accept": "application/json", "User-Agent": "larder"})


class Unreachable(Exception):
    """The document could not be fetched. The message says why, without anything that the server has sent."""


class Request(NamedTuple):
    """A request to the internet. With a `form`, it is a POST."""

    url: str
    headers: Mapping[str, str] = _JSON
    form: bytes | None = None


def fetch_keys(issuer: Issuer, origin: str) -> list[Jwk]:
    """The keys that the issuer has now. `origin` is the deployment's. Raises Unreachable."""
    loopback = is_loopback(origin)
    address = issuer.jwks_uri
    if address is None:
        configuration = fetch_json(
            f"{issuer.url}/.well-known/openid-configuration", loopback=loopback
        )
        if configuration.get("issuer") != issuer.url:
            raise Unreachable("the issuer's configuration names another issuer")
        address = configuration.get("jwks_uri")
        if not isinstance(address, str) or host_of(address) != host_of(issuer.url):
            raise Unreachable("the issuer's configuration names keys on another host")
    return _usable(fetch_json(address, loopback=loopback).get("keys"))


def _usable(keys: object) -> list[Jwk]:
    """The public keys for signatures that CI jobs use."""
    return [
        key
        for key in public_keys(keys)
        if isinstance(key.get("kid"), str)
        and key.get("kty") in _ALGORITHMS
        and key.get("alg", _ALGORITHMS[key["kty"]]) == _ALGORITHMS[key["kty"]]
    ]


def public_keys(keys: object) -> list[Jwk]:
    """The keys for signatures. A shared secret, or a key with its private part, is left out. Raises Unreachable."""
    if not isinstance(keys, list):
        raise Unreachable("the issuer's keys are not a list")
    return [
        key
        for key in keys[:_MOST_KEYS]
        if isinstance(key, dict)
        and isinstance(key.get("kty"), str)
        and key.get("use", "sig") == "sig"
        and _PRIVATE.isdisjoint(key)
    ]


def fetch_json(url: str, *, loopback: bool) -> dict[str, Any]:
    """The JSON object at an https URL of the default port. Raises Unreachable.

    `loopback` also allows http on a loopback address: for a deployment that is on one itself.
    """
    return _document(Request(url), loopback=loopback)


def fetch_userinfo(url: str, access_token: str, *, loopback: bool) -> dict[str, Any] | str:
    """What a provider says about the person of an access token: an object, or the text of a JSON web token.

    Raises Unreachable.
    """
    accepted = "application/json, application/jwt"
    headers = {**_JSON, "Accept": accepted, "Authorization": f"Bearer {access_token}"}
    body = _body(Request(url, headers), loopback=loopback)
    if body[:1] != b"{" and body.isascii():
        return body.decode().strip()
    return _json_object(body)


def post_form(
    url: str, form: Mapping[str, str], *, headers: Mapping[str, str], loopback: bool
) -> tuple[int, dict[str, Any]]:
    """Send a form to a token endpoint. Returns the status and the JSON object, empty for anything else.

    Raises Unreachable without a reply.
    """
    sent = {**_JSON, "Content-Type": "application/x-www-form-urlencoded", **headers}
    request = Request(url, sent, urlencode(form).encode())
    status, body = _reply(request, loopback=loopback)
    try:
        return status, _json_object(body)
    except Unreachable:
        return status, {}


def _document(request: Request, *, loopback: bool) -> dict[str, Any]:
    return _json_object(_body(request, loopback=loopback))


def _body(request: Request, *, loopback: bool) -> bytes:
    status, body = _reply(request, loopback=loopback)
    if status != 200:
        raise Unreachable(f"{urlsplit(request.url).hostname} replied with {status}")
    return body


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreachable("the document is not JSON") from None
    if not isinstance(document, dict):
        raise Unreachable("the document is not a JSON object")
    return document


def _reply(request: Request, *, loopback: bool) -> tuple[int, bytes]:
    """The status and the body of the reply. Raises Unreachable."""
    deadline = time.monotonic() + SECONDS
    try:
        return _fetched(request, deadline, loopback=loopback and is_loopback(request.url))
    except (OSError, http.client.HTTPException, ValueError) as error:
        host = urlsplit(request.url).hostname
        raise Unreachable(f"{type(error).__name__} at {host}") from None


def _fetched(request: Request, deadline: float, *, loopback: bool) -> tuple[int, bytes]:
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    if not loopback and (parts.scheme != "https" or parts.port not in (None, 443)):
        raise Unreachable("the address is not https on its default port")
    port = parts.port or 443
    addresses = _addresses(host, port, loopback=loopback)
    with _connected(addresses, host, port, deadline, encrypted=not loopback) as connected:
        # A server that sends a byte now and then would keep each read below its time-out.
        timer = Timer(_left(deadline), _cut, [connected])
        timer.daemon = True
        timer.start()
        try:
            if isinstance(connected, ssl.SSLSocket):
                connected.do_handshake()
            return _exchanged(connected, request, parts, deadline)
        finally:
            timer.cancel()


def _connected(
    addresses: list[str], host: str, port: int, deadline: float, *, encrypted: bool
) -> socket.socket:
    plain = _connected_to_one(addresses, port, deadline)
    plain.settimeout(_left(deadline))
    if not encrypted:
        return plain
    return _tls().wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)


def _connected_to_one(addresses: list[str], port: int, deadline: float) -> socket.socket:
    """Try the addresses in turn. Each gets its share of the time that is left."""
    *others, last = addresses
    for tried, address in enumerate(others):
        share = _left(deadline) / (len(addresses) - tried)
        with suppress(OSError):
            return socket.create_connection((address, port), timeout=share)
    return socket.create_connection((last, port), timeout=_left(deadline))


def _cut(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _exchanged(
    connected: socket.socket, request: Request, parts: SplitResult, deadline: float
) -> tuple[int, bytes]:
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, parts.port or 443)
    connection.sock = connected
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path
    method = "GET" if request.form is None else "POST"
    connection.request(method, target, body=request.form, headers=dict(request.headers))
    response = connection.getresponse()
    body = b""
    while chunk := response.read(_CHUNK):
        body += chunk
        if len(body) > MOST_BYTES:
            raise Unreachable(f"the document of {host} is larger than {MOST_BYTES} bytes")
        _left(deadline)
    return response.status, body


def _addresses(host: str, port: int, *, loopback: bool) -> list[str]:
    """The addresses of the host. Every one must be public, or a loopback address if that is allowed."""
    found = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for text in found:
        address = ipaddress.ip_address(str(text).partition("%")[0])
        allowed = address.is_loopback if loopback else _is_public(address)
        if not allowed:
            raise Unreachable(f"{host} is not on the internet")
    return [str(text) for text in found]


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        # An IPv4 address can be written inside an IPv6 address in several ways.
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is not None or address in _NAT64:
            return False
    return address.is_global and not address.is_multicast


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
