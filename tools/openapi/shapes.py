"""JSON Schemas of what our functions make: of types, and of the dicts that they build.

The functions that put a record on the wire build plain dicts out of typed records. Which properties a dict has is read
from its literal, which types the values have from the records' annotations.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from datetime import date
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from tools.openapi import Undocumented

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "binary"},
    type(None): NULL,
    Any: {},
    object: {},
}
_MS: Schema = {"type": "integer", "format": "int64", "description": "Milliseconds since 1970."}
_ISO: Schema = {"type": "string", "format": "date-time"}


@dataclass(frozen=True)
class Typed:
    """A value of a type."""

    hint: Any


@dataclass(frozen=True)
class Shaped:
    """A JSON value."""

    schema: Schema


Value = Typed | Shaped
Names = dict[str, Value]


def schema_of_type(hint: Any) -> Schema:
    """Raises Undocumented for a type that JSON does not have."""
    hint = _plain(hint)
    try:
        if hint in _PLAIN:
            return dict(_PLAIN[hint])
    except TypeError:
        pass
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return union(schema_of_type(one) for one in arguments)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple, Sequence, Iterable, frozenset, set):
        return {"type": "array", "items": schema_of_type(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of_type(arguments[1])}
    raise Undocumented(f"no schema for the type {hint}")


def union(schemas: Iterable[Schema]) -> Schema:
    """One of these; null stands last, and `string or null` is a type of two names."""
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


def _plain(hint: Any) -> Any:
    while True:
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, str):
            raise Undocumented(f"the annotation {hint!r} is not resolved")
        else:
            return hint


def _parts(hint: Any) -> list[Any]:
    """The types of a union, without None."""
    hint = _plain(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return [_plain(one) for one in get_args(hint) if one is not type(None)]
    return [hint]


def is_nullable(value: Value) -> bool:
    if isinstance(value, Shaped):
        return NULL in (value.schema, *value.schema.get("anyOf", ())) or "null" in (
            value.schema.get("type") or ()
        )
    return type(None) in get_args(_plain(value.hint)) or value.hint in (None, type(None))


def schema_of(value: Value) -> Schema:
    return value.schema if isinstance(value, Shaped) else schema_of_type(value.hint)


def element(value: Value) -> Value:
    """What a sequence holds."""
    if isinstance(value, Shaped):
        return Shaped(value.schema.get("items", {}))
    (hint,) = _parts(value.hint)
    if not get_args(hint):
        raise Undocumented(f"no schema for what {hint} holds")
    return Typed(get_args(hint)[0])


def hints_of(function: Any) -> dict[str, Any]:
    """Also of annotations whose types the module itself only imports for the type checker."""
    from larder.accounts.models import Session, User
    from larder.api_keys.models import ApiKey

    named = {"Session": Session, "User": User, "ApiKey": ApiKey}
    return get_type_hints(function, localns=named)


class Components:
    """The schemas that the document names: one for each function that puts a record on the wire."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[Callable[..., Any], str] = {}

    def reference(self, function: Callable[..., Any]) -> Schema:
        """A reference to what the function returns."""
        if function not in self._names:
            schema = Interpreter(function, self).returned()
            if schema.get("type") != "object":
                return schema
            self._names[function] = name = self._name(function)
            told = (inspect.getdoc(function) or "").replace("\n", " ")
            self.schemas[name] = {**schema, **({"description": told} if told else {})}
        return {"$ref": f"#/components/schemas/{self._names[function]}"}

    def _name(self, function: Callable[..., Any]) -> str:
        words = function.__name__.strip("_").removesuffix("_json")
        name = "".join(word.capitalize() for word in words.split("_"))
        if name in self.schemas:
            module = function.__module__.rpartition(".")[2].split("_")[0]
            name = module.capitalize() + name
        assert name not in self.schemas, name
        return name


class Interpreter:
    """Follows the statements of one function, with the values that its names have, as far as JSON goes."""

    def __init__(self, function: Callable[..., Any], components: Components) -> None:
        self.function = inspect.unwrap(function)
        self.components = components
        hints = hints_of(self.function)
        parameters = inspect.signature(self.function).parameters
        self.names: Names = {name: Typed(hints.get(name, Any)) for name in parameters}
        self.returns: list[ast.expr] = []
        self._schemas: list[Schema] = []
        self._present = frozenset[str]()

    def returned(self) -> Schema:
        """The schema of what the function returns."""
        self.follow(lambda node: self._schemas.append(schema_of(self.value(node))))
        return union(self._schemas)

    def follow(self, on_return: Callable[[ast.expr], None]) -> None:
        """Go through the statements, and hand over what is returned, at the point at which it is."""
        self._statements(self.tree.body, on_return, optional=False)

    @cached_property
    def tree(self) -> ast.FunctionDef:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body
        assert isinstance(tree, ast.FunctionDef)
        return tree

    def _statements(
        self, body: list[ast.stmt], on_return: Callable[[ast.expr], None], *, optional: bool
    ) -> None:
        for one in body:
            match one:
                case ast.Return(value=ast.expr() as value):
                    on_return(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    for each, given in zip(targets, values, strict=True):
                        self._assign(each, self._quietly(given), optional=optional)
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._quietly(value), optional=optional)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, self._quietly(value), optional=optional)
                case ast.If(test=test, body=body, orelse=orelse):
                    with self._known_by(test):
                        self._statements(body, on_return, optional=True)
                    self._statements(orelse, on_return, optional=True)
                case ast.For(target=target, iter=iterated, body=body):
                    self._assign(target, element(self.value(iterated)), optional=False)
                    self._statements(body, on_return, optional=True)
                case ast.Try(body=body, handlers=handlers):
                    self._statements(body, on_return, optional=optional)
                    for handler in handlers:
                        self._statements(handler.body, on_return, optional=True)
                case ast.With(body=body):
                    self._statements(body, on_return, optional=optional)

    @contextmanager
    def _known_by(self, test: ast.expr) -> Iterator[None]:
        """What `if x is not None` tells of x inside."""
        before = self._present
        match test:
            case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                self._present = before | {ast.unparse(left)}
        yield
        self._present = before

    def _quietly(self, node: ast.expr) -> Value:
        """What stays out of the reply need not be understood."""
        try:
            return self.value(node)
        except Undocumented:
            return Typed(Any)

    def _assign(self, target: ast.expr, value: Value, *, optional: bool) -> None:
        match target:
            case ast.Name(id=name):
                before = self.names.get(name)
                if optional and before is not None:
                    value = _either(before, value)
                self.names[name] = value
            case ast.Tuple(elts=targets):
                for number, one in enumerate(targets):
                    self._assign(one, _item(value, number), optional=optional)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                self._set(self.names[name], key, schema_of(value))

    def _set(self, record: Value, key: ast.expr, schema: Schema) -> None:
        """`record[key] = ...`: a property that is not always there, or one of many."""
        if not isinstance(record, Shaped):
            raise Undocumented(
                f"{self.function.__name__} sets {ast.unparse(key)} of what is no dict"
            )
        for one in record.schema.get("anyOf", [record.schema]):
            if isinstance(key, ast.Constant):
                one["properties"][key.value] = schema
            else:
                before = one.get("additionalProperties")
                one["additionalProperties"] = union([before, schema] if before else [schema])

    def value(self, node: ast.expr) -> Value:
        """Raises Undocumented for an expression that cannot be told."""
        found = self._value(node)
        if found is None:
            told = f"{self.function.__module__}.{self.function.__name__}: {ast.unparse(node)}"
            raise Undocumented(f"cannot tell what this is: {told}")
        return _present(found) if ast.unparse(node) in self._present else found

    def _value(self, node: ast.expr) -> Value | None:
        match node:
            case ast.Constant(value=None):
                return Shaped(dict(NULL))
            case ast.Constant(value=constant):
                return Shaped({**_PLAIN[type(constant)], "const": constant})
            case ast.Dict():
                return Shaped(self._object(node))
            case ast.DictComp(key=_, value=value, generators=generators):
                self._bind(generators)
                each = schema_of(self.value(value))
                return Shaped({"type": "object", "additionalProperties": each})
            case ast.ListComp(elt=value, generators=generators):
                self._bind(generators)
                return Shaped({"type": "array", "items": schema_of(self.value(value))})
            case ast.GeneratorExp(elt=value, generators=generators):
                self._bind(generators)
                return Shaped({"type": "array", "items": schema_of(self.value(value))})
            case ast.List(elts=elements):
                return Shaped(self._array(elements))
            case ast.Name(id=name):
                return self.names.get(name) or self._global(name)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(base, name)
            case ast.Subscript(value=ast.Name(id=name)) if isinstance(
                self._globals.get(name), dict
            ):
                return Shaped(
                    union(schema_of_type(type(one)) for one in self._globals[name].values())
                )
            case ast.Subscript(value=base):
                return element(self.value(base))
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Typed(bool)
            case ast.IfExp(body=one, orelse=other):
                return _either(self.value(one), self.value(other))
            case ast.BoolOp(op=ast.And(), values=[first, second]):
                nothing = [NULL] if is_nullable(self.value(first)) else []
                return Shaped(union([schema_of(self.value(second)), *nothing]))
            case ast.BoolOp(op=ast.Or(), values=[one, other]) if schema_kind(self.value(other)):
                return _either(_present(self.value(one)), self.value(other))
            case ast.BoolOp(op=ast.Or(), values=values):
                *some, last = (self.value(value) for value in values)
                present = [_without_null(schema_of(value)) for value in some]
                return Shaped(union([*present, _widened(schema_of(last), present)]))
            case ast.Call():
                return self._call(node)
        return None

    def _object(self, node: ast.Dict) -> Schema:
        schema: Schema = {"type": "object", "properties": {}, "required": []}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                schema["properties"][key.value] = schema_of(self.value(value))
                schema["required"].append(key.value)
            elif key is None:
                inner = self.resolved(schema_of(self.value(value)))
                several = inner.get("anyOf", [inner])
                for one in several:
                    schema["properties"] |= one.get("properties", {})
                always = [set(one.get("required", ())) for one in several]
                known = [n for n in schema["properties"] if n in set.intersection(*always)]
                schema["required"] += [name for name in known if name not in schema["required"]]
            else:
                raise Undocumented(f"{self.function.__name__}: {ast.unparse(node)}")
        return schema

    def resolved(self, schema: Schema) -> Schema:
        name = schema.get("$ref", "").removeprefix("#/components/schemas/")
        return self.components.schemas[name] if name else schema

    def _array(self, elements: list[ast.expr]) -> Schema:
        items = [
            schema_of(element(self.value(one.value)))
            if isinstance(one, ast.Starred)
            else schema_of(self.value(one))
            for one in elements
        ]
        return {"type": "array", "items": union(items) if items else {}}

    def _bind(self, generators: list[ast.comprehension]) -> None:
        for generator in generators:
            self._assign(generator.target, element(self.value(generator.iter)), optional=False)

    @cached_property
    def _globals(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.function.__globals__
        return found

    def _global(self, name: str) -> Value | None:
        known = self._globals.get(name)
        if isinstance(known, str | int | bool):
            return Shaped({**_PLAIN[type(known)], "const": known})
        return None

    def _attribute(self, base: ast.expr, name: str) -> Value | None:
        if isinstance(base, ast.Name) and isinstance(self._globals.get(base.id), type(Enum)):
            return Typed(self._globals[base.id])
        owner = self.value(base)
        if not isinstance(owner, Typed):
            return None
        found = [_member(one, name) for one in _parts(owner.hint)]
        known = [one for one in found if one is not None]
        if len(known) != len(found) or not known:
            return None
        if len(known) == 1:
            return Typed(known[0])
        return Typed(Union[tuple(known)])  # noqa: UP007  # of types that are only known here

    def callee(self, node: ast.expr) -> Any:
        """The function that a name leads to."""
        if isinstance(node, ast.Name):
            return self._globals.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self._globals.get(node.value.id)
            if isinstance(module, types.ModuleType):
                return getattr(module, node.attr)
        return None

    def _call(self, node: ast.Call) -> Value | None:
        match node.func, node.args:
            case ast.Name(id="to_ms"), _:
                return Shaped(dict(_MS))
            case ast.Name(id="to_iso"), [moment]:
                nothing = [NULL] if is_nullable(self.value(moment)) else []
                return Shaped(union([dict(_ISO), *nothing]))
            case ast.Name(id="str"), _:
                return Typed(str)
            case ast.Name(id="len" | "int"), _:
                return Typed(int)
            case ast.Name(id="bool"), _:
                return Typed(bool)
            case ast.Name(id="list"), [one]:
                return Shaped({"type": "array", "items": schema_of(element(self.value(one)))})
            case ast.Name(id="zip"), several:
                each = tuple(element(self.value(one)).hint for one in several)  # type: ignore[union-attr]
                return Typed(list[tuple[each]])  # type: ignore[valid-type]
            case ast.Attribute(value=base, attr="items"), []:
                mapping = self.value(base)
                if isinstance(mapping, Typed):
                    (hint,) = _parts(mapping.hint)
                    return Typed(list[tuple[get_args(hint)]])  # type: ignore[misc]
            case ast.Attribute(value=base, attr="isoformat"), []:
                if schema_kind(self.value(base)) is date:
                    return Shaped({"type": "string", "format": "date"})
        function = self.callee(node.func) or self._method(node.func)
        return None if function is None else self._made_by(function)

    def _method(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, Typed) and len(_parts(owner.hint)) == 1:
                return getattr(_parts(owner.hint)[0], node.attr, None)
        return None

    def _made_by(self, function: Any) -> Value | None:
        if isinstance(function, type):
            return Typed(function)
        if not callable(function):
            return None
        hints = hints_of(inspect.unwrap(function))
        if "return" not in hints:
            return None
        hint = hints["return"]
        if hint in (dict[str, Any], dict[str, int]):
            return Shaped(self.components.reference(function))
        if hint == list[dict[str, Any]]:
            return Shaped(Interpreter(function, self.components).returned())
        return Typed(hint)


def _present(value: Value) -> Value:
    """The value where it is known not to be None."""
    if isinstance(value, Shaped):
        return Shaped(_without_null(value.schema))
    parts = _parts(value.hint)
    return Typed(parts[0] if len(parts) == 1 else Union[tuple(parts)])  # noqa: UP007  # known here alone


def schema_kind(value: Value) -> Any:
    """The type of a value that has one type alone."""
    if isinstance(value, Typed) and len(_parts(value.hint)) == 1:
        return _parts(value.hint)[0]
    return None


def _member(owner: Any, name: str) -> Any:
    """The type of an attribute; None when it cannot be told."""
    if isinstance(owner, type) and issubclass(owner, Enum) and name == "value":
        return owner
    described = inspect.getattr_static(owner, name, None) if isinstance(owner, type) else None
    if isinstance(described, property):
        return hints_of(described.fget).get("return")
    if isinstance(owner, type) and (is_dataclass(owner) or hasattr(owner, "__annotations__")):
        return hints_of(owner).get(name)
    return None


def _either(one: Value, other: Value) -> Value:
    if isinstance(one, Typed) and isinstance(other, Typed):
        if one.hint is Any or other.hint is Any or one.hint == other.hint:
            return other if one.hint is Any else one
        return Typed(Union[one.hint, other.hint])  # noqa: UP007  # of types that are only known here
    for some, none in ((one, other), (other, one)):
        if isinstance(some, Typed) and isinstance(none, Shaped) and none.schema == NULL:
            return Typed(some.hint | None)
    return Shaped(union([schema_of(one), schema_of(other)]))


def _item(value: Value, number: int) -> Value:
    """One of the parts of a tuple."""
    if isinstance(value, Typed) and get_origin(value.hint) is tuple:
        arguments = get_args(value.hint)
        return Typed(arguments[0] if arguments[-1] is Ellipsis else arguments[number])
    return Typed(Any)


def _without_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), list):
        (kind,) = (one for one in schema["type"] if one != "null")
        return {**schema, "type": kind}
    if "anyOf" in schema:
        return union(one for one in schema["anyOf"] if one != NULL)
    return schema


def _widened(schema: Schema, others: list[Schema]) -> Schema:
    """`x or 0`: a default of the same type adds nothing."""
    kind = {"type": schema["type"]} if "const" in schema and "type" in schema else schema
    return kind if kind in others else schema
