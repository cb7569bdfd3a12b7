"""Replies to clients."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import unquote_plus, urlencode

from larder.errors import DeleteUserDisabled, LarderError
from larder.web.powertools.resolver import Cookie, Response
from larder.web.replies.errors import (
    better_auth_error,
    headers_of,
    oauth_error,
    status_of,
    vercel_error,
)

_JSON = "application/json"

SCOPE_HEADER = "x-artifact-scope"
OWN = "own"
"""The value of the header in place of the id of an own scope."""

Shape = TypeVar("Shape")
Content = TypeVar("Content")


class MayHave(str):
    """A header that a reply can have beyond those of its class: `Annotated[JsonResponse[...], MayHave("Location")]`."""

    __slots__ = ()


MAY_SET_COOKIES = MayHave("Set-Cookie")
MAY_HAVE_NEXT_PAGE = MayHave("Link")


class DeclaredResponse(Response[Content], Generic[Content]):
    """A response whose class declares its status and headers.

    A handler's return type names such a class, and the OpenAPI document is made of it (tools/openapi/replies.py).
    """

    status: ClassVar[int] = 200
    media_type: ClassVar[str | None] = None
    always: ClassVar[frozenset[str]] = frozenset()
    """The headers that each reply has, in addition to Content-Type."""
    optional: ClassVar[frozenset[str]] = frozenset()
    """The headers that some replies have."""

    def __init__(
        self,
        body: Content | None = None,
        headers: Mapping[str, str] | None = None,
        cookies: Sequence[Cookie] = (),
    ) -> None:
        super().__init__(self.status, self.media_type, body, headers, list(cookies))


class JsonResponse(DeclaredResponse[str], Generic[Shape]):
    """JSON of a shape that a TypedDict declares."""

    media_type = _JSON


class AcceptedResponse(DeclaredResponse[str], Generic[Shape]):
    """What was asked for is done later."""

    status = 202
    media_type = _JSON


class EmptyResponse(DeclaredResponse[None]):
    """Nothing but the status."""


class PageRedirect(DeclaredResponse[None]):
    """Where a browser goes on to."""

    status = 302
    always = frozenset({"Location", "Referrer-Policy"})


def json_response(
    body: Shape, *, headers: Mapping[str, str] | None = None, cookies: Sequence[Cookie] = ()
) -> JsonResponse[Shape]:
    return JsonResponse(json.dumps(body), headers, cookies)


def next_page(path: str, *, offset: int | None, **query: str | int) -> dict[str, str]:
    """The header with the URL of the next page (RFC 8288). Empty on the last page, where `offset` is None."""
    if offset is None:
        return {}
    return {"Link": f'<{path}?{urlencode({**query, "offset": offset})}>; rel="next"'}


def accepted_response(body: Shape) -> AcceptedResponse[Shape]:
    return AcceptedResponse(json.dumps(body))


def empty_response() -> EmptyResponse:
    return EmptyResponse()


def empty(status: int, headers: Mapping[str, str] | None = None) -> Response[None]:
    return Response(status_code=status, headers=headers)


def error_response(error: LarderError, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(
        status_code=status_of(error),
        content_type=_JSON,
        headers={**headers_of(error), **(headers or {})},
        body=json.dumps(vercel_error(error)),
    )


def oauth_error_response(error: LarderError) -> Response[str]:
    return Response(
        status_code=status_of(error),
        content_type=_JSON,
        headers=headers_of(error),
        body=json.dumps(oauth_error(error)),
    )


def auth_error_response(error: LarderError) -> Response[str] | Response[None]:
    """An error in the format of the Better Auth client (docs/clients/better-auth.md#requirements-of-the-client)."""
    if isinstance(error, DeleteUserDisabled):
        return empty(status_of(error))
    return Response(
        status_code=status_of(error),
        content_type=_JSON,
        headers=headers_of(error),
        body=json.dumps(better_auth_error(error)),
    )


def is_from_own_scope(reply: Mapping[str, Any]) -> bool:
    """Whether the reply, as Lambda returns it, has an artifact of the credential's own scope."""
    return bool(reply.get("headers", {}).get(SCOPE_HEADER) == OWN)


def sent_on(url: str, *, cookies: Sequence[Cookie] = (), **query: str) -> PageRedirect:
    """302 to a page, with `query` before any `#`, in place of parameters of these names.

    The query may be secret, so the page gets no referrer.
    """
    page, hash_sign, fragment = url.partition("#")
    if query:
        path, _, given = page.partition("?")
        others = [
            part
            for part in given.split("&")
            if part and unquote_plus(part.partition("=")[0]) not in query
        ]
        page = f"{path}?{'&'.join([*others, urlencode(query)])}"
    headers = {"Location": page + hash_sign + fragment, "Referrer-Policy": "no-referrer"}
    return PageRedirect(headers=headers, cookies=cookies)
