"""Query parameters, headers and bodies, declared once. A parser calls them, and the OpenAPI document lists them.

Bodies that are checked with pydantic need no declaration: their models are one.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from larder.clock import from_ms
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request

T = TypeVar("T")
Refusal = Callable[[str, str], Exception]
"""Makes the error for a field and its rule."""

_MILLISECONDS = re.compile(r"[0-9]{1,14}")
NEXT = "must be the `next` of the previous page"


class Parameter(Generic[T]):
    """A query parameter or a header. Calling it with a request returns the parsed value.

    `parse` gets the text, None if the request has none. `schema` is of JSON Schema; its `pattern` matches the whole
    text, and with `empty` in it also an empty one.
    """

    __slots__ = ("help", "name", "parse", "place", "required", "schema")

    def __init__(
        self,
        name: str,
        help: str,
        schema: Mapping[str, Any],
        parse: Callable[[str | None], T],
        *,
        place: Literal["query", "header"] = "query",
        required: bool = False,
    ) -> None:
        self.name, self.help, self.schema, self.parse = name, help, schema, parse
        self.place, self.required = place, required

    def __call__(self, request: Request) -> T:
        return self.parse(self.sent(request))

    def sent(self, request: Request) -> str | None:
        if self.place == "header":
            text: str | None = request.headers.get(self.name)
            return text
        return (request.query_parameters or {}).get(self.name)


class Body(Generic[T]):
    """The body of a request. Calling it with a request returns the parsed value.

    `schema` returns a JSON Schema. It is a function, because some limits are options.
    """

    __slots__ = ("media_type", "parse", "schema")

    def __init__(
        self,
        media_type: str,
        schema: Callable[[], Mapping[str, Any]],
        parse: Callable[[Request], T],
    ) -> None:
        self.media_type, self.schema, self.parse = media_type, schema, parse

    def __call__(self, request: Request) -> T:
        return self.parse(request)


def text(
    name: str,
    help: str,
    schema: Mapping[str, Any] | None = None,
    *,
    place: Literal["query", "header"] = "query",
    required: bool = False,
) -> Parameter[str | None]:
    """A text that its parser checks, or that has no rule."""
    shape = {"type": "string"} if schema is None else schema
    return Parameter(name, help, shape, lambda sent: sent, place=place, required=required)


def matching(name: str, form: re.Pattern[str], rule: str, help: str) -> Parameter[str | None]:
    """A text that matches `form` completely."""

    def parse(sent: str | None) -> str | None:
        if sent is not None and not form.fullmatch(sent):
            raise InvalidRequest(name, rule)
        return sent

    return Parameter(name, help, {"type": "string", "pattern": form}, parse)


def whole(
    name: str,
    least: int,
    most: int,
    default: int,
    help: str,
    *,
    refuse: Refusal = InvalidRequest,
) -> Parameter[int]:
    """A whole number."""

    def parse(sent: str | None) -> int:
        if sent is None:
            return default
        is_number = len(sent) <= 5 and sent.isascii() and sent.isdecimal()
        if not is_number or not least <= int(sent) <= most:
            raise refuse(name, f"must be a whole number from {least} to {most}")
        return int(sent)

    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return Parameter(name, help, schema, parse)


def moment(name: str, help: str) -> Parameter[datetime | None]:
    """A time in milliseconds since 1970."""

    def parse(sent: str | None) -> datetime | None:
        if sent is None:
            return None
        if not _MILLISECONDS.fullmatch(sent):
            raise InvalidRequest(name, "must be milliseconds since 1970")
        return from_ms(int(sent))

    return Parameter(name, help, {"type": "integer", "minimum": 0, "maximum": 10**14 - 1}, parse)


def limit(most: int, default: int, things: str) -> Parameter[int]:
    """The usual parameter of a list."""
    return whole("limit", 1, most, default, f"The maximum number of {things} to return.")
