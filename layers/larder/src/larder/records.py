"""Data classes in their other forms: as items of a table, and in replies.

A field is stored as the attribute of its name, and shown in JSON under the same name in camel case, unless `Annotated`
with a `Name` says otherwise. The fields of a data class inside another one are stored and shown with those of the outer
one (docs/decisions/records.md).

Times are stored in milliseconds, enumerations by their value, tuples as lists. None is not stored.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, cast, get_args, get_origin

from larder.clock import IsoTime, from_ms, to_iso, to_ms

T = TypeVar("T")
Convert = Callable[[Any], Any]

_PLAIN = frozenset({str, int, bool, type(None)})


class Name:
    """The attribute and the JSON name of a field, where they differ from its own name.

    `absent` is a value that is not stored: a field without its attribute has this value.
    """

    __slots__ = ("absent", "attribute", "json")

    def __init__(
        self, attribute: str | None = None, json: str | None = None, *, absent: Any = None
    ) -> None:
        self.attribute, self.json, self.absent = attribute, json, absent


class _Field(NamedTuple):
    """`hint` is the type without None, which `optional` stands for."""

    name: str
    attribute: str
    json: str
    absent: Any
    optional: bool
    hint: Any


class Form(Generic[T]):
    """How the objects of a data class are stored. `apart` are the fields that a repository stores in its own way."""

    def __init__(self, record: type[T], *, apart: Collection[str] = ()) -> None:
        self._record = record
        self._plain: list[tuple[_Field, Convert]] = []
        self._inner: list[tuple[str, Form[Any]]] = []
        self.names: dict[str, str] = {}
        """The attributes by their JSON names."""
        for field in _fields_of(record):
            if field.name in apart:
                continue
            if is_dataclass(field.hint):
                inner: Form[Any] = Form(cast(type, field.hint))
                self._inner.append((field.name, inner))
                self.names |= inner.names
            else:
                self._plain.append((field, _parser(field.hint)))
                self.names[field.json] = field.attribute

    def item(self, record: T) -> dict[str, Any]:
        """The attributes of the record. Those that are not stored are None."""
        item: dict[str, Any] = {}
        for field, _ in self._plain:
            value = getattr(record, field.name)
            is_absent = value is None or value == field.absent
            item[field.attribute] = None if is_absent else _plain(value, to_ms)
        for name, inner in self._inner:
            value = getattr(record, name)
            item |= dict.fromkeys(inner.names.values()) if value is None else inner.item(value)
        return item

    def record(self, item: Mapping[str, Any], **apart: Any) -> T:
        """The record of an item. Raises KeyError if a field that cannot be None has no attribute."""
        for field, parse in self._plain:
            if field.optional and field.attribute not in item:
                apart[field.name] = field.absent
            else:
                apart[field.name] = parse(item[field.attribute])
        for name, inner in self._inner:
            is_stored = any(attribute in item for attribute in inner.names.values())
            apart[name] = inner.record(item) if is_stored else None
        return self._record(**apart)


def shaped(shape: type[T], record: object, **own: object) -> T:
    """A record in the shape of a reply, which is a TypedDict. `own` has what is not a field or property of the record.

    Times get the format that the shape says. Tests compare every reply with its shape.
    """
    types: Any = (shape, type(record))
    readers = _readers(*types)
    if unknown := own.keys() - readers.keys():
        raise TypeError(f"{shape.__name__} has no {', '.join(unknown)}")
    shown = {
        name: _plain(own[name] if name in own else _value_at(path, record), write_time)
        for name, (path, write_time) in readers.items()
    }
    return cast(T, shown)


def _value_at(path: tuple[str, ...], record: Any) -> Any:
    for name in path:
        record = None if record is None else getattr(record, name)
    return record


@cache
def _readers(shape: Any, record: Any) -> dict[str, tuple[tuple[str, ...], Convert]]:
    """The path in the record of each field of the shape, and the format of its times."""
    known = _paths(record) if is_dataclass(record) else {}
    return {
        name: (
            known.get(name, (re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name),)),
            to_iso if IsoTime in (hint, *get_args(hint)) else to_ms,
        )
        for name, hint in shape.__annotations__.items()
    }


def _paths(record: Any, *outer: str) -> dict[str, tuple[str, ...]]:
    """The paths of a record's fields by their JSON names."""
    found: dict[str, tuple[str, ...]] = {}
    for field in _fields_of(record):
        path = (*outer, field.name)
        found |= _paths(field.hint, *path) if is_dataclass(field.hint) else {field.json: path}
    return found


def _plain(value: Any, write_time: Convert) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, datetime):
        return write_time(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item, write_time) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item, write_time) for name, item in value.items()}
    return value


def _fields_of(record: Any) -> list[_Field]:
    return [_field(field.name, field.type) for field in fields(record)]


def _field(name: str, hint: Any) -> _Field:
    named = Name()
    if get_origin(hint) is Annotated:
        hint, named, *_ = get_args(hint)
    options = [option for option in get_args(hint) if option is not type(None)]
    is_optional = len(options) < len(get_args(hint))
    attribute = named.attribute or name
    first, *others = attribute.split("_")
    return _Field(
        name=name,
        attribute=attribute,
        json=named.json or first + "".join(map(str.capitalize, others)),
        absent=named.absent,
        optional=is_optional or named.absent is not None,
        hint=options[0] if is_optional and len(options) == 1 else hint,
    )


def _parser(hint: Any) -> Convert:
    """Turns a plain value into one of this type."""
    if hint is datetime:
        return from_ms
    if _is_enum(hint):
        return cast(Convert, hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        parse = _parser(arguments[0])
        return lambda values: tuple(map(parse, values))
    if origin is Mapping:
        parse = _parser(arguments[1])
        return lambda values: {name: parse(value) for name, value in values.items()}
    return _same


def _same(value: Any) -> Any:
    return value


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
