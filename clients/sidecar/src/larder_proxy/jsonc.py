"""JSON with comments and trailing commas, as turbo reads turbo.json."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STRING = r'"(?:[^"\\\n]|\\.)*"'
# Not compiled before they are used, because builds wait for the imports.
_COMMENT = rf"(?s){_STRING}|//[^\n]*|/\*.*?\*/"
_TRAILING_COMMA = rf"{_STRING}|,(?=\s*[}}\]])"


def parse(text: str) -> Any:
    """The value. Raises ValueError, whose message names the line."""
    return json.loads(re.sub(_TRAILING_COMMA, _blank, without_comments(text)))


def line_of(text: str, *path: str) -> int | None:
    """The line of a property, such as `remoteCache`, `preflight`. None if it is missing."""
    plain, position = without_comments(text), 0
    for name in path:
        match = re.compile(rf'"{re.escape(name)}"\s*:').search(plain, position)
        if match is None:
            return None
        position = match.end()
    return plain.count("\n", 0, position) + 1


def without_comments(text: str) -> str:
    """The text with spaces in place of comments: every other character keeps its place."""
    return re.sub(_COMMENT, _blank, text)


def _blank(match: re.Match[str]) -> str:
    """Spaces in place of a comment or comma, so that lines stay where they are. Strings are kept."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])
