"""The session's cookies, as the Better Auth client expects them (docs/clients/better-auth.md#session-cookies).

A page of a sibling domain, such as `other.example.com`, can set a cookie of the same name for `example.com`. Browsers
then send two, and nothing shows which one Larder set. Two therefore count as none. Otherwise the page could sign its
visitors in to an account of the attacker.
"""

from itertools import accumulate
from urllib.parse import quote, unquote, urlsplit

from larder.settings import settings
from larder.signing import is_signed, is_signed_anew, sign
from larder.web.powertools.resolver import Cookie, Request, SameSite
from larder.web.request_context import base_url

_SESSION_TOKEN = "better-auth.session_token"  # noqa: S105  # a name
_SESSION_DATA = "better-auth.session_data"
_DONT_REMEMBER = "better-auth.dont_remember"
_SECURE = "__Secure-"
_MOST_PARENT_DOMAINS = 4
"""Deeper names could need more Set-Cookie headers than a reply can have."""


def session_token(request: Request) -> str | None:
    """The token in the cookie, if one of the accepted secrets signed it, and if there is only one such cookie.

    On https only the secure cookie counts.
    """
    token, signature = _token_and_signature(request)
    return token if token and is_signed(token, signature) else None


def is_signed_by_the_old_secret(request: Request) -> bool:
    """Whether the session's cookie is valid now, but will not be after the next rotation of the secret."""
    token, signature = _token_and_signature(request)
    return not is_signed_anew(token, signature) and session_token(request) is not None


def session_cookies(request: Request, token: str, *, remembered: bool) -> list[Cookie]:
    """The cookies to set at a sign-in. A session that is not remembered ends when the browser closes."""
    lifetime = settings().session_expires_in_seconds if remembered else None
    cookies = ambiguous_cookies_cleared(request)
    cookies.append(_cookie(request, _SESSION_TOKEN, _signed(token), max_age=lifetime))
    if not remembered:
        cookies.append(_cookie(request, _DONT_REMEMBER, _signed("true"), max_age=None))
    return cookies


def renewed_cookies(request: Request, token: str, *, remembered: bool) -> list[Cookie]:
    """The session's cookies again, if the request has them. Empty for a bearer token."""
    if session_token(request) != token:
        return []
    return session_cookies(request, token, remembered=remembered)


def clearing_cookies(request: Request) -> list[Cookie]:
    """Cookies that delete the session's cookies in the browser."""
    names = (_SESSION_TOKEN, _SESSION_DATA, _DONT_REMEMBER)
    cleared = [_cookie(request, name, "", max_age=0) for name in names]
    return [*cleared, *ambiguous_cookies_cleared(request)]


def ended_cookies_cleared(request: Request) -> list[Cookie]:
    """Cookies that delete those of a session that has ended. A session token without our signature is not ours."""
    if session_token(request) is not None:
        return clearing_cookies(request)
    return ambiguous_cookies_cleared(request)


def ambiguous_cookies_cleared(request: Request) -> list[Cookie]:
    """Cookies that delete every session cookie of a request with more than one. Otherwise empty.

    A browser deletes a cookie only by its domain and path, which the request does not show. So this names all of which
    the browser sends cookies with this request. Deleting Larder's own alone would leave the other one as the only one.
    """
    if len(_cookie_values(request, _SESSION_TOKEN)) < 2:
        return []
    return [
        _cookie(request, _SESSION_TOKEN, "", max_age=0, path=path, domain=domain)
        for domain in ("", *_domains(urlsplit(base_url(request)).hostname or ""))
        for path in _paths(request.resolved_event.path)
    ]


def is_https(request: Request) -> bool:
    """Whether the request came by https, as the gateway reports. Only the local cloud has plain http."""
    return request.headers.get("x-forwarded-proto") != "http"


def _cookie_values(request: Request, name: str) -> list[str]:
    """The values of the cookies with a name. The gateway passes cookies as a separate list."""
    start = f"{_name(request, name)}="
    sent: list[str] = request.resolved_event.get("cookies") or []
    return [cookie.removeprefix(start) for cookie in sent if cookie.startswith(start)]


def _token_and_signature(request: Request) -> tuple[str, str]:
    values = _cookie_values(request, _SESSION_TOKEN)
    value = values[0] if len(values) == 1 else ""
    token, _, signature = unquote(value).rpartition(".")
    return token, signature


def _domains(host: str) -> list[str]:
    """The host and its parent domains, without the top-level domain, for which browsers accept no cookies."""
    labels = host.split(".")
    domains = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    return domains[: _MOST_PARENT_DOMAINS + 1]


def _paths(path: str) -> list[str]:
    """The paths of cookies that browsers send with a request to `path` (RFC 6265, 5.1.4)."""
    folders = list(accumulate(f"{part}/" for part in path.split("/")[:-1]))
    return [*folders, *(folder.rstrip("/") for folder in folders[1:]), path]


def _cookie(
    request: Request,
    name: str,
    value: str,
    *,
    max_age: int | None,
    path: str = "/",
    domain: str = "",
) -> Cookie:
    return Cookie(
        name=_name(request, name),
        value=value,
        path=path,
        domain=domain,
        secure=is_https(request),
        http_only=True,
        max_age=max_age,
        same_site=SameSite.LAX_MODE,
    )


def _name(request: Request, name: str) -> str:
    return _SECURE + name if is_https(request) else name


def _signed(value: str) -> str:
    return quote(f"{value}.{sign(value)}", safe="")
