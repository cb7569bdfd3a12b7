"""The session's cookies, as the Better Auth client expects them (docs/clients/better-auth.md#session-cookies)."""

from urllib.parse import quote, unquote

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.shared.cookies import Cookie, SameSite

from larder.settings import settings
from larder.signing import is_signed, is_signed_anew, sign

_SESSION_TOKEN = "better-auth.session_token"  # noqa: S105  # a name
_SESSION_DATA = "better-auth.session_data"
_DONT_REMEMBER = "better-auth.dont_remember"
_SECURE = "__Secure-"


def session_token(request: Request) -> str | None:
    """The token in the cookie, if one of the accepted secrets signed it. On https only the secure cookie counts."""
    token, signature = _token_and_signature(request)
    return token if token and is_signed(token, signature) else None


def is_signed_by_the_old_secret(request: Request) -> bool:
    """Whether the session's cookie is valid now, but will not be after the next rotation of the secret."""
    token, signature = _token_and_signature(request)
    return not is_signed_anew(token, signature) and session_token(request) is not None


def session_cookies(request: Request, token: str, *, remembered: bool) -> list[Cookie]:
    """The cookies to set at a sign-in. A session that is not remembered ends when the browser closes."""
    lifetime = settings().session_expires_in_seconds if remembered else None
    cookies = [_cookie(request, _SESSION_TOKEN, _signed(token), max_age=lifetime)]
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
    return [
        _cookie(request, name, "", max_age=0)
        for name in (_SESSION_TOKEN, _SESSION_DATA, _DONT_REMEMBER)
    ]


def is_https(request: Request) -> bool:
    """Whether the request came by https, as the gateway reports. Only the local cloud has plain http."""
    return request.headers.get("x-forwarded-proto") != "http"


def _cookie_value(request: Request, name: str) -> str:
    """The value of a cookie, or an empty string. The gateway passes cookies as a separate list."""
    start = f"{_name(request, name)}="
    sent: list[str] = request.resolved_event.get("cookies") or []
    return next((cookie.removeprefix(start) for cookie in sent if cookie.startswith(start)), "")


def _token_and_signature(request: Request) -> tuple[str, str]:
    token, _, signature = unquote(_cookie_value(request, _SESSION_TOKEN)).rpartition(".")
    return token, signature


def _cookie(request: Request, name: str, value: str, *, max_age: int | None) -> Cookie:
    return Cookie(
        name=_name(request, name),
        value=value,
        path="/",
        secure=is_https(request),
        http_only=True,
        max_age=max_age,
        same_site=SameSite.LAX_MODE,
    )


def _name(request: Request, name: str) -> str:
    return _SECURE + name if is_https(request) else name


def _signed(value: str) -> str:
    return quote(f"{value}.{sign(value)}", safe="")
