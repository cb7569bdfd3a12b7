"""Requests without a route in the gateway: a known path with another method, or a path that does not exist.

There is no authentication and nothing is read, so a reply reveals no more than the OpenAPI document.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from larder.web.errors import MethodNotAllowed, PathNotFound
from larder.web.pages import Handler, Reply, logged_reply, page, page_reply
from larder.web.replies.errors import is_auth_path, plain_reply

Routes = Mapping[str, Sequence[str]]
"""The methods of each path. A path can have `{parameters}`."""


LINKS = frozenset({"/api/auth/verify-email", "/api/auth/reset-password/{token}"})
"""The paths of links in emails."""


@dataclass(frozen=True, slots=True)
class Unrouted:
    """A request without a route. `accept` is the client's Accept header."""

    method: str
    path: str
    accept: str


def answer(request: Unrouted, routes: Routes) -> Reply:
    """405 with the path's methods, or 404: a page for browsers, an error for other clients.

    HEAD of a link in an email gets 200 and has no effect: mail scanners begin with it.
    """
    if request.method == "HEAD" and _pattern(request.path, routes) in LINKS:
        return {"statusCode": 200}
    if methods := _methods(request.path, routes):
        return plain_reply(MethodNotAllowed(methods), path=request.path)
    if request.method in ("GET", "HEAD") and "text/html" in request.accept.lower():
        return page_reply(page("not-found", "Page not found"), status=404)
    if is_auth_path(request.path):
        # The reply of the Better Auth server.
        return {"statusCode": 404}
    return plain_reply(PathNotFound(), path=request.path)


def unrouted_handler(answers: Callable[[Unrouted], Reply]) -> Handler:
    """The function that Lambda calls for the route `$default`."""

    def reply(event: dict[str, Any]) -> Reply:
        method = event["requestContext"]["http"]["method"]
        accept = event["headers"].get("accept", "")
        return answers(Unrouted(method, event["rawPath"], accept))

    return logged_reply(reply)


def _methods(path: str, routes: Routes) -> Sequence[str]:
    """The methods of the path, or of the pattern that it matches. Empty for a path that does not exist."""
    return routes.get(_pattern(path, routes) or "", ())


def _pattern(path: str, routes: Routes) -> str | None:
    if path in routes:
        return path
    return next((pattern for pattern in routes if _fills(path, pattern)), None)


def _fills(path: str, pattern: str) -> bool:
    parts, names = path.split("/"), pattern.split("/")
    return len(parts) == len(names) and all(
        bool(part) if name.startswith("{") else part == name
        for part, name in zip(parts, names, strict=True)
    )
