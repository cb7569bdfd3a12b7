"""A statement of an interface description as data: what to send, and what the description says comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Who = Literal["key", "user", "other", "operator", "nobody", "browser"]
"""The caller: a key of the team's owner, the owner's session, a stranger's session, an operator's session, no
credential, or a browser, which keeps its cookies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. `{0[key]}` in a text stands for the member `key` of the first reply of the statement, `{mail}` for
    the path of the link in the last mail, and `{name}` for what the scene has under this name.
    """

    by: Who
    method: str
    path: str
    json: Any = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None
    """None asks for the team of the scene."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What the description says of the last reply.

    `json` is a pattern: an object may have more members than its pattern, a type stands for every value of it, `...`
    for any value, and a compiled expression for a text that it finds.
    """

    status: int
    json: Any = ...
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    mails: int | None = None
    """How many mails the last request caused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`id` begins with document and section, `text` is the statement in our words.

    `row` is the beginning of the cell *Description* of the row in docs/conformance.md, if Larder does something else.
    """

    id: str
    text: str
    asks: tuple[Ask, ...]
    says: Says
    options: Mapping[str, object] = field(default_factory=dict)
    row: str | None = None


def case(
    id: str,
    text: str,
    *asks: Ask,
    status: int = 200,
    row: str | None = None,
    options: Mapping[str, object] = MappingProxyType({}),
    **says: Any,
) -> Statement:
    """A statement, with the members of `Says` as arguments."""
    said = Says(status=status, **says)
    return Statement(id=id, text=text, asks=asks, says=said, row=row, options=options)


def matches(pattern: Any, value: Any) -> bool:
    if pattern is ...:
        return True
    if isinstance(pattern, type):
        is_number = pattern is int and isinstance(value, bool)
        return isinstance(value, pattern) and not is_number
    if isinstance(pattern, re.Pattern):
        return isinstance(value, str) and pattern.search(value) is not None
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and matches(one, value[name]) for name, one in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and len(pattern) == len(value) and all(map(matches, pattern, value))
    return type(pattern) is type(value) and bool(pattern == value)


def filled(template: Any, replies: list[Any], names: Mapping[str, str]) -> Any:
    """`template` with its references replaced, in texts at every depth."""
    if isinstance(template, str):
        return template.format(*replies, **names) if "{" in template else template
    if isinstance(template, Mapping):
        return {name: filled(one, replies, names) for name, one in template.items()}
    if isinstance(template, list):
        return [filled(one, replies, names) for one in template]
    return template


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
