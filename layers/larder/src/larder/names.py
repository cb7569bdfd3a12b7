"""Names that people give to themselves, their teams and their keys."""

import re

from larder.errors import InvalidRequest

MAX_NAME_LENGTH = 100

CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
"""What a name shown in a terminal or a page must not hold, and what is no character at all."""


def parse_name(name: str) -> str:
    """Raises InvalidRequest."""
    if not 1 <= len(name.strip()) <= MAX_NAME_LENGTH or CONTROL.search(name):
        raise InvalidRequest(
            "name", f"must hold 1 to {MAX_NAME_LENGTH} characters and no control character"
        )
    return name.strip()
