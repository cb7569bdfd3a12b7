"""The parameters that the handlers' dependencies name, and the bodies that they parse by hand."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from larder.artifacts import models
from larder.artifacts.models import HASH_PATTERN
from larder.settings import settings
from larder.usage.events import UsageEvent
from larder.web import parameters
from larder.web.bodies import cache as cache_bodies
from larder.web.bodies import oauth as oauth_bodies
from larder.web.bodies import teams as team_bodies
from larder.web.declared import Parameter
from tools.openapi import Undocumented
from tools.openapi.shapes import Schema

Place = Literal["query", "header", "path"]


@dataclass(frozen=True)
class Body:
    media_type: str
    schema: Schema
    required: bool = True


def matching(pattern: str | re.Pattern[str], *, empty: bool = False) -> Schema:
    """A string that matches the pattern completely."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    # JSON Schema has no named groups. No pattern refers back to one, so the names can go.
    text = re.sub(r"\(\?P<\w+>", "(?:", text)
    return {"type": "string", "pattern": f"^(?:{text}){'?' if empty else ''}$"}


def _text(most: int | None = None) -> Schema:
    return {"type": "string"} | ({} if most is None else {"maxLength": most})


HASH: Schema = matching(HASH_PATTERN)

_ANY_TEXT: Schema = {"type": "string"}

PATHS: dict[str, tuple[Schema, str]] = {
    "hash": (HASH, "The hash of the artifact."),
    "idOrSlug": (_ANY_TEXT, "The id or slug of the team."),
    "keyId": (_ANY_TEXT, "The id of a key that is bound to the team."),
    "uid": (_ANY_TEXT, "The id of a member or of an open invitation."),
    "ruleId": (_ANY_TEXT, "The id of a rule of the team."),
    "token": (_ANY_TEXT, "The token of the link."),
}


def _events() -> Schema:
    settable = inspect.signature(UsageEvent).parameters
    assert {"session_id", "source", "event", "hash", "duration_ms"} == set(settable)
    event: Schema = {
        "type": "object",
        "properties": {
            "sessionId": {**matching(f"(?:{_any_case(cache_bodies.UUID)})"), "format": "uuid"},
            "source": {"type": "string", "enum": ["LOCAL", "REMOTE"]},
            "event": {"type": "string", "enum": ["HIT", "MISS"]},
            "hash": _ANY_TEXT,
            "duration": {"type": "number", "minimum": 0, "maximum": models.MAX_DURATION_MS},
        },
        "required": ["sessionId", "source", "event", "hash"],
        "additionalProperties": False,
    }
    assert set(event["properties"]) == cache_bodies.EVENT_PROPERTIES
    return {"type": "array", "items": event, "maxItems": settings().max_events}


def _any_case(pattern: re.Pattern[str]) -> str:
    return pattern.pattern.replace("[0-9a-f]", "[0-9a-fA-F]")


def _hashes() -> Schema:
    hashes = {
        "type": "array",
        "items": _text(cache_bodies.MAX_QUERIED_LENGTH),
        "maxItems": settings().max_query_hashes,
    }
    return {"type": "object", "properties": {"hashes": hashes}, "required": ["hashes"]}


def _caching() -> Schema:
    status = {"type": "string", "enum": [one.value for one in cache_bodies.SETTABLE]}
    return {"type": "object", "properties": {"status": status}, "required": ["status"]}


def _exchange_form() -> Schema:
    texts = ("team_id", "teamId", "slug", "policy_id", "scope", "audience", "resource", "client_id")
    properties: dict[str, Schema] = {
        "grant_type": {"type": "string", "const": oauth_bodies.GRANT},
        "subject_token": {
            **_ANY_TEXT,
            "description": "The id token of the CI. Its audience is the address of this service.",
        },
        "subject_token_type": {"type": "string", "enum": list(oauth_bodies.ID_TOKEN_TYPES)},
        "requested_token_type": {"type": "string", "const": oauth_bodies.ACCESS_TOKEN_TYPE},
        "team_id_or_slug": {**_ANY_TEXT, "description": "The team, by its id or slug."},
        **dict.fromkeys(texts, _ANY_TEXT),
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["grant_type", "subject_token", "team_id_or_slug"],
    }


def _revoked_form() -> Schema:
    return {
        "type": "object",
        "properties": {"token": _ANY_TEXT, "token_type_hint": _ANY_TEXT},
        "required": ["token"],
    }


BODIES: dict[Callable[..., Any], Callable[[], Body]] = {
    parameters.artifact_body: lambda: Body(
        "application/octet-stream", {"type": "string", "format": "binary", "minLength": 1}
    ),
    cache_bodies.usage_events: lambda: Body("application/json", _events()),
    cache_bodies.query_hashes: lambda: Body("application/json", _hashes()),
    cache_bodies.caching_to_set: lambda: Body("application/json", _caching()),
    oauth_bodies.exchange_form: lambda: Body(oauth_bodies.FORM, _exchange_form()),
    oauth_bodies.revoked_token: lambda: Body(oauth_bodies.FORM, _revoked_form()),
    team_bodies.sent_invitations: lambda: Body(
        "application/json",
        {
            "anyOf": [
                _schema_of_model(team_bodies.INVITATION),
                {
                    **_schema_of_model(team_bodies.INVITATIONS),
                    "minItems": 1,
                    "maxItems": team_bodies.MAX_INVITATIONS,
                },
            ]
        },
    ),
}


_DOCUMENTED_ELSEWHERE = frozenset({"authorization", "content-length", "origin", "sec-fetch-site"})
"""Headers that the security schemes describe, and the length of a body, which HTTP defines."""

_READ_DIRECTLY = re.compile(
    r"(?:request\.headers|query|query_parameters or \{\}\))(?:\.get\(|\[)\"([\w-]+)\""
)


def parameters_of(dependency: Callable[..., Any]) -> Iterator[Schema]:
    """The query parameters and headers that the code of the dependency names, not that of its helpers.

    Raises Undocumented if the dependency reads one that is not declared.
    """
    read = set(_READ_DIRECTLY.findall(inspect.getsource(dependency))) - _DOCUMENTED_ELSEWHERE
    if read:
        raise Undocumented(
            f"{dependency.__module__}.{dependency.__name__} reads {sorted(read)}: declare it with larder.web.declared"
        )
    for one in named_in(dependency):
        if isinstance(one, Parameter):
            yield {
                "name": one.name,
                "in": one.place,
                "description": one.help,
                "required": one.required,
                "schema": _complete(one.schema),
            }


def declares(function: Callable[..., Any]) -> bool:
    """Whether the function itself names a parameter."""
    return any(isinstance(one, Parameter) for one in named_in(function))


def _complete(schema: Mapping[str, Any]) -> Schema:
    """The schema of a parameter with its pattern as JSON Schema writes it."""
    plain = {name: value for name, value in schema.items() if name not in ("pattern", "empty")}
    if "pattern" not in schema:
        return plain
    return {**matching(schema["pattern"], empty=schema.get("empty", False)), **plain}


def named_in(function: Callable[..., Any]) -> Iterator[Any]:
    """The globals of its module that a function names, in the order of the code."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    names = [
        node
        for statement in definition.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id in function.__globals__
    ]
    for name in sorted(names, key=lambda node: (node.lineno, node.col_offset)):
        yield function.__globals__[name.id]


def body_of(dependency: Callable[..., Any]) -> Body | None:
    """The body that the dependency parses, by hand or with a pydantic model."""
    if dependency in BODIES:
        return BODIES[dependency]()
    models = list(named_in(dependency))
    parsers = [
        one
        for one in models
        if isinstance(one, TypeAdapter) or _is_model_of(dependency.__module__, one)
    ]
    if len(parsers) > 1:
        raise Undocumented(f"{dependency.__name__} parses the body with several models: {parsers}")
    if not parsers:
        return None
    schema = _schema_of_model(parsers[0])
    # Under `/api/auth`, a missing body counts as an empty object.
    return Body("application/json", schema, required=bool(schema.get("required")))


def _is_model_of(module: str, one: object) -> bool:
    return isinstance(one, type) and issubclass(one, BaseModel) and one.__module__ == module


def _schema_of_model(model: Any) -> Schema:
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    schema = adapter.json_schema(by_alias=True, ref_template="#/$defs/{model}")
    inlined: Schema = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(schema: Any, definitions: dict[str, Schema]) -> Any:
    """The schema without references, and without the titles that pydantic derives from names."""
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    inlined: Schema = {
        name: {one: _inlined(inner, definitions) for one, inner in value.items()}
        if name == "properties"
        else _inlined(value, definitions)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str))
    }
    return inlined
