"""Query parameters of the endpoints that list and delete artifacts."""

import base64
import re
from binascii import Error
from dataclasses import dataclass
from typing import Annotated

from larder.artifacts.models import HASH_PATTERN, parse_writer_id
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Depends, Request

MAX_ARTIFACTS = 100
DEFAULT_ARTIFACTS = 20

_NUMBER = re.compile(r"[0-9]{1,3}")
_PLACE = re.compile(rf"{HASH_PATTERN}(?:#[a-z]+)?")


@dataclass(frozen=True, slots=True)
class ArtifactsQuery:
    """At most `limit` artifacts, in the order of hashes, after the hash `after`. It is empty for the first page."""

    limit: int
    after: str


def artifacts_query(_token: BearerToken, request: Request) -> ArtifactsQuery:
    """Raises InvalidRequest."""
    check_parameters(request, "limit", "cursor")
    query = request.query_parameters or {}
    limit = query.get("limit", str(DEFAULT_ARTIFACTS))
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_ARTIFACTS:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_ARTIFACTS}")
    cursor = query.get("cursor")
    return ArtifactsQuery(limit=int(limit), after="" if cursor is None else _place(cursor))


def cursor_of(place: str | None) -> str | None:
    """The cursor of the next page, None on the last page. It is opaque to clients."""
    return None if place is None else base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _place(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (Error, ValueError):
        place = ""
    if not _PLACE.fullmatch(place):
        raise InvalidRequest("cursor", "must be the `next` of the previous page")
    return place


def writer_query(_token: BearerToken, request: Request) -> str:
    """The id of a key, a session or a user. Required, so that a forgotten parameter does not delete everything."""
    check_parameters(request, "writer")
    return parse_writer_id((request.query_parameters or {}).get("writer", ""))


ArtifactsAsked = Annotated[ArtifactsQuery, Depends(artifacts_query)]
WriterAsked = Annotated[str, Depends(writer_query)]
