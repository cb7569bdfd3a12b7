"""Tables of endpoints with their fields and replies, and of parameters, from docs/openapi.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tools.generate.text import sentence, table_row

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "openapi.json"

MAX_LISTED_PROPERTIES = 5
"""A reply with more properties is shown by its name."""

TEAM = ("teamId", "slug")
"""The parameters that name a team."""

Schema = dict[str, Any]


def table(tag: str, under: str = "/") -> None:
    """The operations of a folder of functions/, for paths that begin with `under`."""
    print(table_row("Request", "What it does", "Fields", "Reply"))
    print("|---|---|---|---|")
    for path, method, operation in _operations():
        if operation["tags"] == [tag] and path.startswith(under):
            print(
                table_row(
                    f"`{method.upper()} {path}`",
                    sentence(operation["summary"]),
                    "; ".join(filter(None, [_query(operation), _body(operation)])),
                    "; ".join(_answers(operation)),
                )
            )


def parameters(method: str, path: str) -> None:
    """The parameters of the query of one operation. The two that name a team are one row."""
    print(table_row("Parameter", "Meaning"))
    print("|---|---|")
    for one in _document()["paths"][path][method.lower()]["parameters"]:
        if one["in"] == "query" and one["name"] not in TEAM:
            print(table_row(f"`{one['name']}`", sentence(one["description"])))
    print(table_row(" or ".join(f"`{name}`" for name in TEAM), "The team."))


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return document


def _operations() -> Iterator[tuple[str, str, Schema]]:
    for path, methods in _document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _query(operation: Schema) -> str:
    names = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    return f"`?{'&'.join(f'{name}=' for name in names)}`" if names else ""


def _body(operation: Schema) -> str:
    """The required fields of the body, then the optional ones."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    schema = content["schema"]
    listed = ""
    if "anyOf" in schema:
        schema, *_ = schema["anyOf"]
        listed = "; or a list of them"
    required = schema.get("required", [])
    optional = [name for name in schema["properties"] if name not in required]
    fields = [", ".join(f"`{name}`" for name in names) for names in (required, optional)]
    if fields[1]:
        fields[1] = f"optional {fields[1]}"
    return "; ".join(filter(None, fields)) + listed


def _answers(operation: Schema) -> Iterator[str]:
    for status, response in operation["responses"].items():
        if status < "400":
            content = response.get("content", {}).get("application/json")
            shape = _shape(content["schema"]) if content else ""
            yield f"{status} {shape}".rstrip()


def _shape(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_shape(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"a list of {_shape(schema['items'])}"
    if schema.get("type") == "null":
        return "`null`"
    if "$ref" not in schema:
        return ""
    name = schema["$ref"].rpartition("/")[2]
    properties = _document()["components"]["schemas"][name]["properties"]
    return (
        f"`{{{', '.join(properties)}}}`"
        if len(properties) <= MAX_LISTED_PROPERTIES
        else f"`{name}`"
    )
