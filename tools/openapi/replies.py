"""The replies that a handler makes when nothing goes wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from larder.web import responses
from tools.openapi import Undocumented
from tools.openapi.shapes import Components, Interpreter, Schema, is_nullable, schema_of, union

_TOLD = {
    "Access-Control-Allow-Headers": "Tells build clients to send their token with the request itself.",
    "Cache-Control": "`no-store`: what it says is for the caller alone.",
    "Content-Length": "The size of the artifact in bytes.",
    "Location": "Where to go on to.",
    "Referrer-Policy": "`no-referrer`: the address may hold a token.",
    "Set-Cookie": "The session's cookies.",
    "x-artifact-dirty-hash": "What the client that stored it told of uncommitted changes.",
    "x-artifact-duration": "Milliseconds that the task took; 0 when that was not told.",
    "x-artifact-sha": "The commit that the client told of.",
    "x-artifact-tag": "The signature that the client sent along.",
}


@dataclass(frozen=True)
class Reply:
    """One way to answer. `headers` are by their names; those that are not always there are no part of `always`."""

    status: int
    media_type: str | None = None
    schema: Schema | None = None
    headers: frozenset[str] = field(default_factory=frozenset)
    always: frozenset[str] = field(default_factory=frozenset)


def replies_of(handler: Callable[..., Any], components: Components) -> list[Reply]:
    """What each `return` of the handler makes."""
    interpreter = Interpreter(handler, components)
    found: list[Reply] = []

    def on_return(node: ast.expr) -> None:
        found.append(_reply(node, interpreter))

    interpreter.follow(on_return)
    return found


def _reply(node: ast.expr, interpreter: Interpreter) -> Reply:
    made_by = interpreter.callee(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or made_by not in _MAKERS:
        raise Undocumented(f"{interpreter.function.__name__} answers by {ast.unparse(node)}")
    return _MAKERS[made_by](node, interpreter)


def _keywords(node: ast.Call) -> dict[str, ast.expr]:
    return {one.arg: one.value for one in node.keywords if one.arg}


def _json(node: ast.Call, interpreter: Interpreter) -> Reply:
    given = _keywords(node)
    status = given.get("status")
    headers = list(_headers(given.get("headers"), interpreter))
    if "cookies" in given:
        headers.append(("Set-Cookie", False))
    return _replied(
        ast.literal_eval(status) if status else 200,
        headers,
        "application/json",
        schema_of(interpreter.value(node.args[0])),
    )


def _empty(node: ast.Call, interpreter: Interpreter) -> Reply:
    headers = node.args[1] if len(node.args) > 1 else None
    return _replied(ast.literal_eval(node.args[0]), _headers(headers, interpreter))


def _bytes(node: ast.Call, interpreter: Interpreter) -> Reply:
    content: Schema = {"type": "string", "format": "binary"}
    return _replied(200, _of_an_artifact(interpreter), "application/octet-stream", content)


def _head(node: ast.Call, interpreter: Interpreter) -> Reply:
    return _replied(200, [*_of_an_artifact(interpreter), ("Content-Length", True)])


def _redirect(node: ast.Call, interpreter: Interpreter) -> Reply:
    headers = [*_of_an_artifact(interpreter), ("Location", True), ("Cache-Control", True)]
    return _replied(302, headers)


def _sent_on(node: ast.Call, interpreter: Interpreter) -> Reply:
    return _replied(
        302, [(name, True) for name in ("Location", "Cache-Control", "Referrer-Policy")]
    )


_MAKERS: dict[Any, Callable[[ast.Call, Interpreter], Reply]] = {
    responses.json_response: _json,
    responses.empty: _empty,
    responses.artifact_response: _bytes,
    responses.artifact_head: _head,
    responses.redirect: _redirect,
    responses.sent_on: _sent_on,
}


def _replied(
    status: int,
    headers: Iterator[tuple[str, bool]] | list[tuple[str, bool]],
    media_type: str | None = None,
    schema: Schema | None = None,
) -> Reply:
    named = list(headers)
    return Reply(
        status=status,
        media_type=media_type,
        schema=schema,
        headers=frozenset(name for name, _ in named),
        always=frozenset(name for name, is_always in named if is_always),
    )


def _headers(node: ast.expr | None, interpreter: Interpreter) -> Iterator[tuple[str, bool]]:
    """The names of headers, and whether they are always there."""
    match node:
        case None:
            return
        case ast.Name(id=name):
            constant = interpreter.function.__globals__[name]
            yield from ((header, True) for header in constant)
        case ast.Dict(keys=keys):
            yield from ((ast.literal_eval(key), True) for key in keys if key is not None)
        case ast.IfExp(body=one, orelse=other):
            for each in (one, other):
                yield from ((header, False) for header, _ in _headers(each, interpreter))
        case _:
            raise Undocumented(f"{interpreter.function.__name__}: headers {ast.unparse(node)}")


def _of_an_artifact(interpreter: Interpreter) -> list[tuple[str, bool]]:
    """What `artifact_headers` makes: of its dict, the values that can be None are left out when they are."""
    inner = Interpreter(responses.artifact_headers, interpreter.components)
    found: list[tuple[str, bool]] = []

    class Literals(ast.NodeVisitor):
        def visit_Dict(self, node: ast.Dict) -> None:  # the visitor's name
            for key, value in zip(node.keys, node.values, strict=True):
                assert key is not None
                found.append((ast.literal_eval(key), not is_nullable(inner.value(value))))

    inner.follow(lambda _: None)
    Literals().visit(inner.tree)
    return found


def described(replies: list[Reply]) -> dict[str, Schema]:
    """The Response Objects, by status. Ways to answer with the same status are one, with what they have in common."""
    found: dict[str, Schema] = {}
    for status in sorted({reply.status for reply in replies}):
        ways = [reply for reply in replies if reply.status == status]
        always = frozenset.intersection(*(way.always for way in ways))
        names = frozenset.union(*(way.headers for way in ways))
        response: Schema = {"description": _WORDS[status]}
        if names:
            response["headers"] = {
                name: {
                    "description": _TOLD[name],
                    "required": name in always,
                    "schema": {"type": "string"},
                }
                for name in sorted(names)
            }
        types = {way.media_type for way in ways if way.media_type}
        for media_type in sorted(types):
            schemas = [way.schema or {} for way in ways if way.media_type == media_type]
            response.setdefault("content", {})[media_type] = {"schema": union(schemas)}
        found[str(status)] = response
    return found


_WORDS = {
    200: "Done, or answered.",
    202: "Taken.",
    204: "Done; there is nothing to say.",
    302: "Elsewhere.",
}
