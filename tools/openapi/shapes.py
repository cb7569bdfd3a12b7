"""JSON Schemas of the types of replies: TypedDicts, and the types of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import StrEnum
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints, is_typeddict

from larder.clock import IsoDate, IsoTime, Milliseconds
from tools.openapi import Undocumented

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}

_TYPES: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    type(None): NULL,
    Any: {},
    Milliseconds: {
        "type": "integer",
        "format": "int64",
        "description": "Milliseconds since 1970.",
    },
    IsoTime: {
        "type": "string",
        "format": "date-time",
        "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",
    },
    IsoDate: {"type": "string", "format": "date"},
}


class Components:
    """The named schemas of the document: one for each TypedDict."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._shapes: dict[str, Any] = {}

    def schema_of(self, hint: Any) -> Schema:
        """Raises Undocumented for an unsupported type."""
        if hint in _TYPES:
            return dict(_TYPES[hint])
        if isinstance(hint, NewType):
            return self.schema_of(hint.__supertype__)
        if is_typeddict(hint):
            return self._reference(hint)
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            return {"type": "string", "enum": [str(member) for member in hint]}
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return union(self.schema_of(argument) for argument in arguments)
        if origin is Literal:
            return union({**_TYPES[type(argument)], "const": argument} for argument in arguments)
        if origin is list:
            return {"type": "array", "items": self.schema_of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema_of(arguments[1])}
        raise Undocumented(f"there is no schema for the type {hint}")

    def _reference(self, shape: Any) -> Schema:
        name = shape.__name__.removesuffix("Json")
        if name not in self._shapes:
            self._shapes[name] = shape
            self.schemas[name] = self._object(shape)
        elif self._shapes[name] is not shape:
            raise Undocumented(f"two shapes are named {name}: {shape} and {self._shapes[name]}")
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, shape: Any) -> Schema:
        hints = get_type_hints(shape)
        schema: Schema = {
            "type": "object",
            "properties": {name: self.schema_of(hint) for name, hint in hints.items()},
            "required": [name for name in hints if name in shape.__required_keys__],
        }
        if description := shape.__dict__.get("__doc__"):
            schema["description"] = " ".join(inspect.cleandoc(description).split())
        return schema


def union(schemas: Iterable[Schema]) -> Schema:
    """A schema that accepts any of these. Null comes last, and `string or null` becomes a list of two types."""
    distinct: list[Schema] = []
    for schema in schemas:
        for one in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            if one == {}:
                return {}
            if one not in distinct:
                distinct.append(one)
    if NULL in distinct:
        distinct.remove(NULL)
        distinct.append(NULL)
    if len(distinct) == 1:
        return distinct[0]
    is_plain = isinstance(distinct[0].get("type"), str) and not {"enum", "const"} & set(distinct[0])
    if len(distinct) == 2 and NULL in distinct and is_plain:
        return {**distinct[0], "type": [distinct[0]["type"], "null"]}
    return {"anyOf": distinct}
