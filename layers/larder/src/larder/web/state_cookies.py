"""The cookies of sign-ins with a provider in progress. Each sign-in has its own, so that two tabs both work."""

from larder.sso.state import LIFETIME, PendingSignIn, sealed, unsealed
from larder.web.cookies import is_https
from larder.web.powertools.resolver import Cookie, Request, SameSite

MOST_COOKIES = 3
MOST_CHARACTERS = 6_000
"""Of all these cookies. The gateway accepts 10,240 bytes of headers."""

_NAME = "larder.sso."
_HOST = "__Host-"
"""A page of a sibling domain cannot set a cookie with this prefix."""


def sent_states(request: Request) -> dict[str, list[str]]:
    """The values of these cookies, by the flow in their name."""
    start, found = _prefix(request), dict[str, list[str]]()
    sent: list[str] = request.resolved_event.get("cookies") or []
    for cookie in sent:
        name, _, value = cookie.partition("=")
        if name.startswith(start):
            found.setdefault(name.removeprefix(start), []).append(value)
    return found


def started_cookies(request: Request, pending: PendingSignIn) -> list[Cookie]:
    """The cookie of a new sign-in, and those that clear older ones if there are too many."""
    value, sent = sealed(pending), sent_states(request)
    room, kept, cleared = MOST_CHARACTERS - len(value), 1, []
    for flow in sorted(sent, key=lambda flow: _started(sent[flow]), reverse=True):
        room -= sum(map(len, sent[flow]))
        if kept == MOST_COOKIES or room < 0 or not _started(sent[flow]):
            cleared.append(cleared_cookie(request, flow))
        else:
            kept += 1
    return [_cookie(request, pending.flow, value, int(LIFETIME.total_seconds())), *cleared]


def _started(values: list[str]) -> float:
    """When the sign-in began, 0 for a cookie that Larder did not make."""
    pending = unsealed(values[0])
    return pending.started_at.timestamp() if pending else 0


def cleared_cookie(request: Request, flow: str) -> Cookie:
    return _cookie(request, flow, "", 0)


def _cookie(request: Request, flow: str, value: str, max_age: int) -> Cookie:
    # Lax is sent when the provider redirects the browser back; Strict would not be.
    return Cookie(
        name=_prefix(request) + flow,
        value=value,
        path="/",
        secure=is_https(request),
        http_only=True,
        max_age=max_age,
        same_site=SameSite.LAX_MODE,
    )


def _prefix(request: Request) -> str:
    return _HOST + _NAME if is_https(request) else _NAME
