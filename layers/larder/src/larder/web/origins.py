"""Which pages can send requests, and where a reply can redirect to.

docs/clients/better-auth.md#origins and docs/clients/better-auth.md#callback-urls have the rules.

A URL is trusted only in an unambiguous spelling. What browsers correct (tabs, backslashes, user names, Unicode dots,
`0x7f.1`, a missing slash) is refused, because our correction could differ from theirs.
"""

import re
from collections.abc import Mapping
from functools import cache

from larder.settings import SettingsError, listed, settings
from larder.web.errors import (
    CrossSiteNavigation,
    InvalidCallbackUrl,
    InvalidErrorCallbackUrl,
    InvalidNewUserCallbackUrl,
    InvalidOrigin,
    InvalidRedirectUrl,
    MissingOrNullOrigin,
)
from larder.web.powertools.resolver import CORSConfig, Request
from larder.web.request_context import base_url

MAX_URL_LENGTH = 2048
"""The longest callback URL. It is sent in a header, and headers have a limit."""

_PREFLIGHT_SECONDS = 7200
"""How long a browser can cache a preflight. This is Chromium's maximum."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_FETCH_METADATA = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65_535

CALLBACKS: Mapping[str, type[InvalidCallbackUrl]] = {
    "callbackURL": InvalidCallbackUrl,
    "redirectTo": InvalidRedirectUrl,
    "errorCallbackURL": InvalidErrorCallbackUrl,
    "newUserCallbackURL": InvalidNewUserCallbackUrl,
}
"""The fields of bodies and queries that have a callback URL, and the error for each."""

# Printable ASCII, without characters that URLs must percent-encode, and without the backslash, which browsers read as a
# slash.
_CHARACTER = r"[!#-;=?-\[\]^_a-z{|}~]"
_ABSOLUTE = re.compile(
    rf"(?P<scheme>https?)://(?P<host>[A-Z0-9._-]+|\[[0-9A-F:.]+\])(?::(?P<port>[0-9]{{1,5}}))?"
    rf"(?:[/?#]{_CHARACTER}*)?",
    re.IGNORECASE | re.ASCII,
)
# No empty segment, because it could be read as `//host`. No encoded slash, backslash or control character.
_RELATIVE = re.compile(
    rf"/(?!/)(?P<path>(?:(?!//)(?![?#]){_CHARACTER})*)(?:[?#]{_CHARACTER}*)?",
    re.IGNORECASE | re.ASCII,
)
_ENCODED_IN_PATH = re.compile(r"%(?:[01][0-9a-f]|2f|5c|7f)", re.IGNORECASE)
_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Z0-9._*-]+)(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE | re.ASCII,
)
_WILDCARD = "[a-z0-9_-]+"


def origin_of(url: str) -> str | None:
    """`https://host:port` of an absolute URL, in lower case and without a default port. None if it has no origin."""
    match = _ABSOLUTE.fullmatch(url)
    return None if match is None else _origin(match)


def is_trusted_origin(origin: str | None, request: Request) -> bool:
    """Whether an origin, as returned by `origin_of`, is this deployment's own or one of its `trusted_origins`."""
    return origin is not None and (origin == _own_origin(request) or is_listed_origin(origin))


def is_listed_origin(origin: str | None) -> bool:
    """Whether an origin, as returned by `origin_of`, is one of `trusted_origins`."""
    return origin is not None and any(
        pattern.fullmatch(origin) for pattern in _patterns(settings().trusted_origins)
    )


def check_options() -> None:
    """Check the options for URLs before the first request does. Raises SettingsError."""
    configured = settings().base_url
    _, _, host = configured.rstrip("/").partition("://")
    # An origin has no path, so a base URL with one could not be compared with origins.
    if configured and (origin_of(configured) is None or re.search(r"[/?#]", host)):
        raise _no_base_url(configured)
    _patterns(settings().trusted_origins)


def is_trusted_url(url: str, request: Request) -> bool:
    """Whether a reply can redirect to `url`: a path of this deployment, or a URL of a trusted origin."""
    if len(url) > MAX_URL_LENGTH:
        return False
    if relative := _RELATIVE.fullmatch(url):
        return _ENCODED_IN_PATH.search(relative["path"]) is None
    return is_trusted_origin(origin_of(url), request)


def absolute(url: str, request: Request) -> str:
    """The URL to redirect to. A path gets this deployment's origin in front."""
    return base_url(request) + url if url.startswith("/") else url


def check_origin(request: Request, *, signs_in: bool, signs_out: bool) -> None:
    """Refuse requests that a page of another site sends with its visitor's cookies, or to sign its visitor in or out.

    Raises MissingOrNullOrigin, InvalidOrigin, CrossSiteNavigation. Requests without a cookie that do not come from a
    browser pass, because there is no session to misuse.
    """
    if request.method in _SAFE_METHODS:
        return
    headers = request.headers
    origin = headers.get("origin") or headers.get("referer") or ""
    if not _has_cookies(request):
        # The browser sends no cookies with a form of another site, but it stores or deletes those that the reply sets.
        if (signs_in or signs_out) and _crosses_sites(request):
            raise CrossSiteNavigation
        from_browser = any(headers.get(name) for name in _FETCH_METADATA)
        if not signs_in or not (origin or from_browser):
            return
    if origin in ("", "null"):
        raise MissingOrNullOrigin
    if not is_trusted_origin(origin_of(origin), request):
        raise InvalidOrigin


def check_own_page(request: Request) -> None:
    """Accept only scripts in pages of this deployment. For endpoints that return a credential.

    Raises MissingOrNullOrigin, InvalidOrigin, the latter for trusted origins too.
    """
    origin = request.headers.get("origin", "")
    if origin in ("", "null"):
        raise MissingOrNullOrigin
    site = request.headers.get("sec-fetch-site", "same-origin")
    if origin_of(origin) != _own_origin(request) or site != "same-origin":
        raise InvalidOrigin


def check_listed_page(request: Request) -> None:
    """Accept only pages of an origin in `trusted_origins`. Raises MissingOrNullOrigin, InvalidOrigin."""
    origin = request.headers.get("origin", "")
    if origin in ("", "null"):
        raise MissingOrNullOrigin
    if not is_listed_origin(origin_of(origin)):
        raise InvalidOrigin


def check_callbacks(request: Request, body: object) -> None:
    """Refuse an untrusted callback URL in body or query. Raises the errors in CALLBACKS.

    Values that are not strings are left to the validation of the body.
    """
    for given in (body, request.query_parameters):
        if not isinstance(given, Mapping):
            continue
        for field, error in CALLBACKS.items():
            url = given.get(field)
            if isinstance(url, str) and url and not is_trusted_url(url, request):
                raise error


def _has_cookies(request: Request) -> bool:
    # The gateway moves the Cookie header into a separate list.
    return bool(request.resolved_event.get("cookies")) or "cookie" in request.headers


def _crosses_sites(request: Request) -> bool:
    """Whether a page of another site navigates the browser here, for example with a form."""
    headers = request.headers
    return (headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")) == (
        "cross-site",
        "navigate",
    )


def _own_origin(request: Request) -> str | None:
    url = base_url(request)
    origin = origin_of(url)
    if origin is None and settings().base_url:
        raise _no_base_url(url)
    return origin


def _no_base_url(url: str) -> SettingsError:
    return SettingsError(f"LARDER_BASE_URL must be an origin, https://host, not {url!r}")


@cache
def _patterns(option: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(_pattern, listed(option)))


def _pattern(entry: str) -> re.Pattern[str]:
    match = _PATTERN.fullmatch(entry)
    origin = None if match is None else _origin(match)
    if origin is None:
        raise SettingsError(
            f"LARDER_TRUSTED_ORIGINS must hold origins such as https://*.example.com, not {entry!r}"
        )
    return re.compile(re.escape(origin).replace(r"\*", _WILDCARD))


def _origin(match: re.Match[str]) -> str | None:
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if port > _HIGHEST_PORT:
        return None
    return f"{scheme}://{host}" + ("" if port == _DEFAULT_PORTS[scheme] else f":{port}")


class TrustedOrigins(CORSConfig):
    """The CORS headers of every reply of `/api/auth`, so that pages of these origins can read it (Fetch standard, 3.2).

    They name the origin, because browsers send no cookies if it is `*`.
    """

    def allowed_origin(self, extracted_origin: str | None) -> str | None:
        origin = origin_of(extracted_origin or "")
        return origin if is_listed_origin(origin) else None

    def to_dict(self, origin: str | None) -> dict[str, str]:
        if origin is None:
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Expose-Headers": "Link, Retry-After, X-Retry-After",
            "Vary": "Origin",
        }


def announced_request_headers(request: Request) -> dict[str, str]:
    """The methods and headers that a preflight's reply allows. Raises MissingOrNullOrigin, InvalidOrigin."""
    check_listed_page(request)
    headers = ["Content-Type", "Authorization", *listed(settings().api_key_headers)]
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": ", ".join(headers),
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
    }
