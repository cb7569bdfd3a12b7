"""The URLs of issuers: their form, and which ones the deployment trusts."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from larder.errors import InvalidValue
from larder.settings import listed, settings

MAX_URL_LENGTH = 300
MAX_ENDPOINT_LENGTH = 1000
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(?:/[A-Za-z0-9._~-]+)*")
_ENDPOINT = re.compile(
    r"https?://[A-Za-z0-9.\[\]:-]+(?:/[A-Za-z0-9._~%:@!$&'()*+,;=/-]*)?(?:\?[!-\"$-~]*)?"
)
_LABEL = r"[A-Za-z0-9_-]+"


def parse_issuer(text: str, *, origin: str, field: str = "issuer") -> str:
    """The URL of an issuer, exactly as its tokens name it. Raises InvalidValue.

    `origin` is the deployment's. Only a deployment on a loopback address accepts an issuer on one.
    """
    rule = "must be an https URL on port 443, without user, query, fragment or a slash at its end"
    if len(text) > MAX_URL_LENGTH or not _URL.fullmatch(text):
        raise InvalidValue(field, rule)
    parts = _split(text)
    if parts is None or not parts.hostname or "/.." in text or "/./" in text:
        raise InvalidValue(field, rule)
    if not _is_reachable(text, parts, origin):
        raise InvalidValue(field, rule)
    return text


def parse_provider_issuer(text: str, *, origin: str) -> str:
    """The URL of an issuer of sign-ins. Raises InvalidValue.

    That of some providers, such as Auth0, ends with a slash.
    """
    parse_issuer(text.removesuffix("/"), origin=origin)
    return text


def parse_endpoint(text: str, *, origin: str, field: str) -> str:
    """The URL of an endpoint of a provider, which may have a query. Raises InvalidValue."""
    rule = "must be an https URL on port 443, without user and fragment"
    parts = _split(text)
    if (
        len(text) > MAX_ENDPOINT_LENGTH
        or not _ENDPOINT.fullmatch(text)
        or parts is None
        or not parts.hostname
        or not _is_reachable(text, parts, origin)
    ):
        raise InvalidValue(field, rule)
    return text


def is_trusted(url: str) -> bool:
    """Whether the option `trusted_issuers` has the URL. `*` stands for one label of a host or one part of a path."""
    return any(
        re.fullmatch(_LABEL.join(map(re.escape, pattern.split("*"))), url)
        for pattern in listed(settings().trusted_issuers)
    )


def host_of(url: str) -> str | None:
    parts = _split(url)
    return None if parts is None else parts.netloc


def is_loopback(url: str) -> bool:
    """Whether it is an http URL on a loopback address, as in the local cloud."""
    parts = _split(url)
    if parts is None or parts.scheme != "http":
        return False
    return parts.hostname in ("127.0.0.1", "localhost", "::1")


def _is_reachable(url: str, parts: SplitResult, origin: str) -> bool:
    """Whether it is https on a host with a name or, for a deployment on a loopback address, http on one."""
    if is_loopback(url) and is_loopback(origin):
        return True
    has_name = parts.hostname is not None and not _is_address(parts.hostname)
    return parts.scheme == "https" and parts.port in (None, 443) and has_name


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
