"""Requests that the gateway has no route for: a known path with another method, or a path that does not exist.

Nobody is asked who they are and nothing is read, so that an answer says no more than the OpenAPI document does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from larder.errors import LarderError, MethodNotAllowed, PathNotFound
from larder.web.pages import Handler, Reply, logged_reply, page, page_reply
from larder.web.replies.errors import auth_error, cache_error

Routes = Mapping[str, Sequence[str]]
"""The methods of each path; a path may hold `{parameters}`."""


@dataclass(frozen=True, slots=True)
class Unrouted:
    """A request without a route. `accept` is what the client can read."""

    method: str
    path: str
    accept: str

    @property
    def is_auth(self) -> bool:
        return f"{self.path}/".startswith("/api/auth/")


def answer(request: Unrouted, routes: Routes) -> Reply:
    """405 with the methods that the path takes, else 404: a page for browsers, an error for other clients."""
    if methods := _methods(request.path, routes):
        return _error(request, MethodNotAllowed(methods))
    if request.method in ("GET", "HEAD") and "text/html" in request.accept.lower():
        return page_reply(page("not-found", "Page not found"), status=404)
    if request.is_auth:
        # What the Better Auth server answers.
        return {"statusCode": 404}
    return _error(request, PathNotFound())


def unrouted_handler(answers: Callable[[Unrouted], Reply]) -> Handler:
    """What Lambda calls for the route `$default`."""

    def reply(event: dict[str, Any]) -> Reply:
        method = event["requestContext"]["http"]["method"]
        accept = event["headers"].get("accept", "")
        return answers(Unrouted(method, event["rawPath"], accept))

    return logged_reply(reply)


def _methods(path: str, routes: Routes) -> Sequence[str]:
    """Those of the path itself, else of the one whose parameters it fills; none for a path that does not exist."""
    if path in routes:
        return routes[path]
    return next((methods for pattern, methods in routes.items() if _fills(path, pattern)), ())


def _fills(path: str, pattern: str) -> bool:
    parts, names = path.split("/"), pattern.split("/")
    return len(parts) == len(names) and all(
        bool(part) if name.startswith("{") else part == name
        for part, name in zip(parts, names, strict=True)
    )


def _error(request: Unrouted, error: LarderError) -> Reply:
    shape = auth_error if request.is_auth else cache_error
    return {
        "statusCode": error.status,
        "headers": {"Content-Type": "application/json", **error.headers},
        "body": json.dumps(shape(error)),
    }
