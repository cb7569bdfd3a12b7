"""Names that people give to themselves, their teams and their keys, and other texts of JSON."""

import json
import re

from larder.errors import InvalidValue

MAX_NAME_LENGTH = 100

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, which could change a terminal or a page, or the order of the text around a name in a mail, and
halves of surrogate pairs.
"""


def parse_name(name: str) -> str:
    """Raises InvalidValue."""
    if not 1 <= len(name.strip()) <= MAX_NAME_LENGTH or CONTROL.search(name):
        raise InvalidValue(
            "name", f"must have 1 to {MAX_NAME_LENGTH} characters and no control characters"
        )
    return name.strip()


def check_unicode(value: object) -> None:
    """Check that every text of a JSON value can be encoded: JSON can escape half of a surrogate pair.

    Raises UnicodeEncodeError, which is a ValueError.
    """
    json.dumps(value, ensure_ascii=False).encode()
