"""The replies of a handler, by its return type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from larder.web import responses
from larder.web.pages import Page
from larder.web.responses import MayHave
from tools.openapi import Undocumented
from tools.openapi.shapes import Components, Schema, union

_DESCRIPTIONS = {
    200: "OK",
    202: "Accepted. It is done later.",
    204: "No content.",
    302: "Go on to `Location`.",
}

_HEADERS = {
    "Access-Control-Allow-Headers": "Makes build clients send their token with the request itself.",
    "Cache-Control": "How long the reply may be kept. `no-store`: it is for the caller only.",
    "Content-Length": "The size of the artifact in bytes.",
    "Location": "Where to go on to.",
    "Referrer-Policy": "`no-referrer`: the address may hold a token.",
    "Retry-After": "Seconds after which to try again.",
    "Set-Cookie": "The session's cookies.",
    "WWW-Authenticate": "`Bearer`",
    "X-Retry-After": "The same as `Retry-After`, for the Better Auth client.",
    "x-artifact-dirty-hash": "The hash of uncommitted changes, as sent at upload.",
    "x-artifact-duration": "Milliseconds that the task took, as sent at upload.",
    "x-artifact-sha": "The commit, as sent at upload.",
    "x-artifact-tag": "The signature, as sent at upload.",
}


@dataclass(frozen=True)
class _Reply:
    """`headers` are always there, `optional` ones are not."""

    status: int
    headers: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    media_type: str | None = None
    schema: Schema | None = None


_ARTIFACT = frozenset(
    {"x-artifact-duration", "x-artifact-tag", "x-artifact-sha", "x-artifact-dirty-hash"}
)

_BYTES: Schema = {"type": "string", "format": "binary"}

# What each class of larder.web.responses sends, and what functions of larder.web.pages return.
# Every reply in the tests is held to it: tests/documented.py.
_REPLIES: dict[Any, _Reply] = {
    responses.JsonResponse: _Reply(200, media_type="application/json"),
    responses.AcceptedResponse: _Reply(202, media_type="application/json"),
    responses.PrivateResponse: _Reply(
        200, frozenset({"Cache-Control"}), media_type="application/json"
    ),
    responses.EmptyResponse: _Reply(200),
    responses.PreflightResponse: _Reply(204, frozenset({"Access-Control-Allow-Headers"})),
    responses.UploadOffer: _Reply(204, frozenset({"Location"})),
    responses.ArtifactResponse: _Reply(
        200, optional=_ARTIFACT, media_type="application/octet-stream", schema=_BYTES
    ),
    responses.ArtifactHead: _Reply(200, frozenset({"Content-Length"}), _ARTIFACT),
    responses.ArtifactRedirect: _Reply(302, frozenset({"Location", "Cache-Control"}), _ARTIFACT),
    responses.PageRedirect: _Reply(
        302, frozenset({"Location", "Cache-Control", "Referrer-Policy"})
    ),
    Page: _Reply(
        200,
        frozenset({"Cache-Control", "Referrer-Policy"}),
        media_type="text/html; charset=utf-8",
        schema={"type": "string"},
    ),
    str: _Reply(
        200,
        frozenset({"Cache-Control"}),
        media_type="application/json",
        schema={"type": "object"},
    ),
}


def replies_of(handler: Callable[..., Any], components: Components) -> dict[str, Schema]:
    """The Response Objects, by status. Raises Undocumented for a return type that names no reply."""
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
    reply = _REPLIES.get(get_origin(hint) or hint)
    if reply is None:
        raise Undocumented(f"{hint} is no reply of larder.web.responses")
    shapes = get_args(hint)
    yield replace(
        reply,
        optional=reply.optional | optional,
        schema=components.schema_of(shapes[0]) if shapes else reply.schema,
    )


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
    """What several ways to answer with the same status have in common."""
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
