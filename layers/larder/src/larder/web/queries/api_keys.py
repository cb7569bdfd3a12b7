"""Query parameters of the endpoints that show a user's keys, by the names of the Better Auth client."""

import re
from dataclasses import dataclass
from typing import Annotated

from larder.web.errors import InvalidQuery
from larder.web.powertools.resolver import Depends, Request

MAX_KEYS = 100
"""The most keys in one reply. Even if each has 10,000 characters of metadata, it is far below Lambda's 6 MB."""

MAX_OFFSET = 99_999

_NUMBER = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class KeysQuery:
    """At most `limit` keys, after the first `offset` ones."""

    limit: int
    offset: int


def keys_query(request: Request) -> KeysQuery:
    """Raises InvalidQuery naming the parameter."""
    return KeysQuery(
        limit=_whole_number(request, "limit", 1, MAX_KEYS, MAX_KEYS),
        offset=_whole_number(request, "offset", 0, MAX_OFFSET, 0),
    )


def queried_key(request: Request) -> str:
    """`?id=`, or `?keyId=` as the other endpoints call it. Raises InvalidQuery."""
    query = request.query_parameters or {}
    key_id = query.get("id") or query.get("keyId")
    if not key_id:
        raise InvalidQuery("id", "is required")
    return key_id


def _whole_number(request: Request, name: str, least: int, most: int, default: int) -> int:
    text = (request.query_parameters or {}).get(name, str(default))
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise InvalidQuery(name, f"must be a whole number from {least} to {most}")
    return int(text)


KeysAsked = Annotated[KeysQuery, Depends(keys_query)]
QueriedKey = Annotated[str, Depends(queried_key)]
