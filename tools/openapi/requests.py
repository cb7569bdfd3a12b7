"""The parameters and bodies that the handlers' dependencies name."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from larder.artifacts.models import HASH_PATTERN
from larder.web.declared import Body, Parameter
from tools.openapi import Undocumented
from tools.openapi.shapes import Schema, union


def matching(pattern: str | re.Pattern[str], *, empty: bool = False) -> Schema:
    """A string that matches the pattern completely."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    # JSON Schema has no named groups. No pattern refers back to one, so the names can go.
    text = re.sub(r"\(\?P<\w+>", "(?:", text)
    return {"type": "string", "pattern": f"^(?:{text}){'?' if empty else ''}$"}


HASH: Schema = matching(HASH_PATTERN)

_ANY_TEXT: Schema = {"type": "string"}

PATHS: dict[str, tuple[Schema, str]] = {
    "hash": (HASH, "The hash of the artifact."),
    "idOrSlug": (_ANY_TEXT, "The id or slug of the team."),
    "keyId": (_ANY_TEXT, "The id of a key that is bound to the team."),
    "uid": (_ANY_TEXT, "The id of a member or of an open invitation."),
    "ruleId": (_ANY_TEXT, "The id of a rule of the team."),
    "runId": (_ANY_TEXT, "turbo's id of the run."),
    "token": (_ANY_TEXT, "The token of the link."),
    "id": (_ANY_TEXT, "The id of the identity provider."),
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
    """A declared schema with its patterns as JSON Schema writes them."""
    plain = {
        name: _completed_inside(value)
        for name, value in schema.items()
        if name not in ("pattern", "empty")
    }
    if "pattern" not in schema:
        return plain
    return {**matching(schema["pattern"], empty=schema.get("empty", False)), **plain}


def _completed_inside(value: Any) -> Any:
    return _complete(value) if isinstance(value, Mapping) else value


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


def body_of(dependency: Callable[..., Any]) -> tuple[str, Schema] | None:
    """The media type and the schema of the body that the dependency parses: what it declares, or a pydantic model.

    With several models, each is an alternative.
    """
    named = list(named_in(dependency))
    for one in named:
        if isinstance(one, Body):
            return one.media_type, _complete(one.schema())
    models = [
        _schema_of_model(one)
        for one in named
        if isinstance(one, TypeAdapter) or _is_model_of(dependency.__module__, one)
    ]
    return ("application/json", union(models)) if models else None


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
