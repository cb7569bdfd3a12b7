"""Tables of endpoints with their fields, from docs/openapi.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tools.generate.text import sentence, table_row

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "openapi.json"

Schema = dict[str, Any]


def table(tag: str, under: str = "/") -> None:
    """The operations of a folder of functions/, for paths that begin with `under`."""
    print(table_row("Request", "What it does", "Fields"))
    print("|---|---|---|")
    for path, method, operation in _operations():
        if operation["tags"] == [tag] and path.startswith(under):
            print(
                table_row(
                    f"`{method.upper()} {path}`",
                    sentence(operation["summary"]),
                    "; ".join(filter(None, [_query(operation), _body(operation)])),
                )
            )


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return document


def _operations() -> Iterator[tuple[str, str, Schema]]:
    for path, methods in _document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _query(operation: Schema) -> str:
    names = [
        parameter["name"]
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    ]
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
