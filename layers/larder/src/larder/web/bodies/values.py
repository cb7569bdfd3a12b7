"""The values in JSON bodies and forms, declared once, without pydantic.

For functions that a build waits for: pydantic would take a quarter of their cold start
(docs/decisions/cold-starts.md).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from larder.errors import LarderError
from larder.web.bodies.raw import printable, sent_bytes, sent_json
from larder.web.declared import Body
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request

T = TypeVar("T")

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 32 * 1024
_MOST_FIELDS = 30
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Value(Generic[T]):
    """A value in a body. `parse` gets what was sent and its place in the body, which is empty for the body itself.

    `parse` raises InvalidRequest. `schema` returns a JSON Schema.
    """

    __slots__ = ("parse", "schema")

    def __init__(
        self, parse: Callable[[object, str], T], schema: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.parse, self.schema = parse, schema


class Field:
    """A named value of an object or a form. If it is not required, `default` is the value of a missing one."""

    __slots__ = ("default", "help", "name", "required", "value")

    def __init__(
        self,
        name: str,
        value: Value[Any],
        *,
        help: str = "",
        required: bool = True,
        default: object = None,
    ) -> None:
        self.name, self.value, self.help = name, value, help
        self.required, self.default = required, default


def string(most: int | None = None) -> Value[str]:
    """A string, of at most `most` characters."""

    def parse(sent: object, place: str) -> str:
        if not isinstance(sent, str):
            raise InvalidRequest(place, "must be a string")
        try:
            sent.encode()
        except UnicodeEncodeError:
            # JSON can escape half of a surrogate pair. Many clients could not parse a reply that repeats it.
            raise InvalidRequest(place, "must be valid Unicode") from None
        if most is not None and len(sent) > most:
            raise InvalidRequest(place, f"must have at most {most} characters")
        return sent

    return Value(parse, lambda: {"type": "string"} | ({} if most is None else {"maxLength": most}))


def one_of(choices: Sequence[str]) -> Value[str]:
    def parse(sent: object, place: str) -> str:
        if not isinstance(sent, str) or sent not in choices:
            raise InvalidRequest(place, f"must be one of {', '.join(choices)}")
        return sent

    return Value(parse, lambda: {"type": "string", "enum": [str(choice) for choice in choices]})


def constant(only: str, refuse: Callable[[], LarderError] | None = None) -> Value[str]:
    """One text. Raises what `refuse` returns for another, by default InvalidRequest."""

    def parse(sent: object, place: str) -> str:
        if sent != only:
            raise refuse() if refuse else InvalidRequest(place, f"must be {only}")
        return only

    return Value(parse, lambda: {"type": "string", "const": only})


def uuid() -> Value[str]:
    """A UUID, in lower case."""

    def parse(sent: object, place: str) -> str:
        if not isinstance(sent, str) or not _UUID.fullmatch(sent):
            raise InvalidRequest(place, "must be a UUID")
        return sent.lower()

    either_case = _UUID.pattern.replace("a-f", "a-fA-F")
    return Value(
        parse, lambda: {"type": "string", "pattern": f"(?:{either_case})", "format": "uuid"}
    )


def number() -> Value[float]:
    def parse(sent: object, place: str) -> float:
        # In Python, True is an int too.
        if not isinstance(sent, int | float) or isinstance(sent, bool):
            raise InvalidRequest(place, "must be a number")
        return sent

    return Value(parse, lambda: {"type": "number"})


def array(things: str, item: Value[T], *, most: Callable[[], int]) -> Value[list[T]]:
    """An array of at most as many items as an option allows."""

    def parse(sent: object, place: str) -> list[T]:
        if not isinstance(sent, list):
            raise InvalidRequest(place or "body", "must be an array")
        if len(sent) > (limit := most()):
            rule = f"must hold at most {limit} {things}, not {len(sent)}"
            raise InvalidRequest(place or "body", rule)
        within = f"{place}." if place else ""
        return [item.parse(value, f"{within}{index}") for index, value in enumerate(sent)]

    return Value(parse, lambda: {"type": "array", "items": item.schema(), "maxItems": most()})


def record(*fields: Field, of: str | None = None) -> Value[dict[str, Any]]:
    """An object with these fields. Others are ignored, or refused if `of` says what the object is."""
    known = frozenset(field.name for field in fields)

    def parse(sent: object, place: str) -> dict[str, Any]:
        if not isinstance(sent, dict):
            raise InvalidRequest(place or "body", "must be an object")
        within = f"{place}." if place else ""
        if of is not None and (unknown := [name for name in sent if name not in known]):
            raise InvalidRequest(printable(f"{within}{unknown[0]}"), f"is not a property of {of}")
        return {
            field.name: field.value.parse(
                sent.get(field.name, field.default), f"{within}{field.name}"
            )
            for field in fields
        }

    def schema() -> dict[str, Any]:
        closed = {} if of is None else {"additionalProperties": False}
        return {**_object_schema(fields), **closed}

    return Value(parse, schema)


def json_body(value: Value[T]) -> Body[T]:
    def parse(request: Request) -> T:
        return value.parse(sent_json(request), "")

    return Body("application/json", value.schema, parse)


def form_body(*fields: Field) -> Body[Mapping[str, str]]:
    """A form. Its value has the fields that are not empty, also those that are not declared.

    The parser that calls it checks the required ones, because each has an error of its own.
    """

    def parse(request: Request) -> Mapping[str, str]:
        form = _sent_form(request)
        for field in fields:
            if field.name in form:
                field.value.parse(form[field.name], field.name)
        return form

    return Body(FORM, lambda: _object_schema(fields), parse)


def _object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            field.name: {
                **field.value.schema(),
                **({"description": field.help} if field.help else {}),
            }
            for field in fields
        },
        "required": [field.name for field in fields if field.required],
    }


def _sent_form(request: Request) -> Mapping[str, str]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM:
        raise InvalidRequest("content-type", f"must be {FORM}")
    body = sent_bytes(request)
    if len(body) > MAX_FORM_BYTES:
        raise InvalidRequest("body", f"must have at most {MAX_FORM_BYTES} bytes")
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise InvalidRequest("body", "must be a form in UTF-8") from None
    form = dict(fields)
    for name, value in fields:
        if sum(other == name for other, _ in fields) > 1:
            raise InvalidRequest(printable(name), "must not be sent twice")
        if "\0" in value:
            raise InvalidRequest(printable(name), "must not hold a zero byte")
    return {name: value for name, value in form.items() if value}
