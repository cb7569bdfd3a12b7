"""The replies of a handler, by its return type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from larder.web.console import KeptPage, NotModified
from larder.web.documentation import File, Missing
from larder.web.pages import Page
from larder.web.responses import DeclaredResponse, MayHave
from tools.openapi import Undocumented
from tools.openapi.shapes import Components, Schema, union

_DESCRIPTIONS = {
    200: "OK",
    202: "Accepted. The work is done later.",
    204: "No content.",
    302: "Redirect to `Location`.",
    304: "Not modified: the copy with the `ETag` in `If-None-Match` is current.",
    404: "There is no such page.",
}

_HEADERS = {
    "Access-Control-Allow-Headers": "Lets build clients send their token with the request that follows.",
    "Content-Length": "The size of the artifact in bytes.",
    "ETag": "The version of the page, for `If-None-Match`.",
    "Link": 'The URL of the next page, with `rel="next"`. The last page has none.',
    "Location": "The URL to follow.",
    "Referrer-Policy": "`no-referrer`, because the URL can contain a token.",
    "Retry-After": "Seconds to wait before a retry.",
    "Set-Cookie": "The session's cookies.",
    "WWW-Authenticate": "`Bearer`",
    "X-Retry-After": "The same as `Retry-After`, for the Better Auth client.",
    "x-artifact-dirty-hash": "The hash of uncommitted changes, as sent at upload.",
    "x-artifact-scope": "In a protected team, the scope that the artifact is in: `shared` or `own`.",
    "x-artifact-duration": "Milliseconds that the task took, as sent at upload.",
    "x-artifact-sha": "The commit, as sent at upload.",
    "x-artifact-tag": "The signature, as sent at upload.",
}


@dataclass(frozen=True)
class _Reply:
    """A reply always has `headers`, and can have `optional` ones."""

    status: int
    headers: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    media_type: str | None = None
    schema: Schema | None = None


_SCHEMAS: dict[str | None, Schema] = {
    "application/octet-stream": {"type": "string", "format": "binary"}
}

# The replies of functions of larder.web.pages, .console and .documentation. tests/documented.py compares every reply in
# the tests with them and with the subclasses of DeclaredResponse.
_OF_PAGES: dict[Any, _Reply] = {
    Page: _Reply(
        200,
        frozenset({"Referrer-Policy"}),
        media_type="text/html; charset=utf-8",
        schema={"type": "string"},
    ),
    KeptPage: _Reply(
        200,
        frozenset({"ETag", "Referrer-Policy"}),
        media_type="text/html; charset=utf-8",
        schema={"type": "string"},
    ),
    NotModified: _Reply(304, frozenset({"ETag"})),
    File: _Reply(
        200,
        media_type="application/octet-stream",
        schema=_SCHEMAS["application/octet-stream"],
    ),
    Missing: _Reply(
        404,
        frozenset({"Referrer-Policy"}),
        media_type="text/html; charset=utf-8",
        schema={"type": "string"},
    ),
    str: _Reply(
        200,
        media_type="application/json",
        schema={"type": "object"},
    ),
}


def replies_of(handler: Callable[..., Any], components: Components) -> dict[str, Schema]:
    """The Response Objects, by status. Raises Undocumented if the return type names no reply."""
    hint = get_type_hints(inspect.unwrap(handler), include_extras=True).get("return")
    found: dict[int, list[_Reply]] = {}
    for reply in _replies(hint, components):
        found.setdefault(reply.status, []).append(reply)
    return {str(status): _described(status, ways) for status, ways in sorted(found.items())}


def _replies(hint: Any, components: Components) -> Iterator[_Reply]:
    if get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from _replies(one, components)
        return
    optional = frozenset[str]()
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        optional = frozenset(str(one) for one in more if isinstance(one, MayHave))
    reply = _reply(get_origin(hint) or hint)
    if reply is None:
        raise Undocumented(f"{hint} is not a reply: a DeclaredResponse or a page")
    shapes = get_args(hint)
    yield replace(
        reply,
        optional=reply.optional | optional,
        schema=components.schema_of(shapes[0]) if shapes else reply.schema,
    )


def _reply(named: Any) -> _Reply | None:
    if isinstance(named, type) and issubclass(named, DeclaredResponse):
        schema = _SCHEMAS.get(named.media_type)
        return _Reply(named.status, named.always, named.optional, named.media_type, schema)
    return _OF_PAGES.get(named)


def headers(names: Iterable[str], always: Container[str]) -> dict[str, Schema]:
    """The Header Objects of a reply that can have these headers."""
    return {
        name: {
            "description": _HEADERS[name],
            "required": name in always,
            "schema": {"type": "string"},
        }
        for name in sorted(names)
    }


def _described(status: int, ways: list[_Reply]) -> Schema:
    """One Response Object for all replies of a handler with the same status."""
    response: Schema = {"description": _DESCRIPTIONS[status]}
    always = frozenset.intersection(*(way.headers for way in ways))
    names = frozenset[str]().union(*(way.headers | way.optional for way in ways))
    if names:
        response["headers"] = headers(names, always)
    for way in ways:
        if way.media_type:
            content = response.setdefault("content", {}).setdefault(way.media_type, {})
            schemas = [content["schema"]] if content else []
            content["schema"] = union([*schemas, way.schema or {}])
    return response
