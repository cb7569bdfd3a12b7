"""Query parameters of the endpoints that list and delete artifacts."""

import base64
import re
from binascii import Error
from datetime import datetime
from typing import Annotated, NamedTuple

from larder.artifacts.lists import ALL_SCOPES, Order, Wanted
from larder.artifacts.models import (
    HASH_PATTERN,
    MAX_CI_LENGTH,
    SCOPE_PATTERN,
    is_ci,
    parse_scope,
    parse_writer_id,
)
from larder.artifacts.removal_targets import EVERYTHING, TARGET_PATTERN, Range
from larder.clock import from_ms
from larder.teams.models import SHARED_SCOPE
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters, named_hash
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import CacheManager

MAX_ARTIFACTS = 100
DEFAULT_ARTIFACTS = 20

_NEXT = "must be the `next` of the previous page"
_NUMBER = re.compile(r"[0-9]{1,3}")
_PREFIX = re.compile(HASH_PATTERN)
_MILLISECONDS = re.compile(r"[0-9]{1,14}")
_PLACE = rf"{HASH_PATTERN}(?:\.{SCOPE_PATTERN})?(?:#[a-z]+)?"
_TARGET = re.compile(TARGET_PATTERN)
_PLACES = {
    Order.HASH: re.compile(_PLACE),
    Order.UPLOADED: re.compile(rf"[0-9]{{1,14}}@{_PLACE}"),
}


class ArtifactsQuery(NamedTuple):
    """At most `limit` of the wanted artifacts, after the place `after`. It is empty for the first page."""

    limit: int
    after: str
    wanted: Wanted
    names_scope: bool


class RemovalQuery(NamedTuple):
    """The target to delete. `name` is what the request repeats to delete everything, None otherwise."""

    target: str
    name: str | None = None


class RemovalsQuery(NamedTuple):
    """At most `limit` removals, after the target `after`. It is empty for the first page."""

    limit: int
    after: str


def artifacts_query(_token: BearerToken, request: Request) -> ArtifactsQuery:
    """Raises InvalidRequest."""
    check_parameters(
        request,
        *("limit", "cursor", "scope", "prefix", "writer", "ci", "from", "until", "order", "hidden"),
    )
    query = request.query_parameters or {}
    limit = _limit(request)
    scope = query.get("scope")
    if scope is not None and scope != ALL_SCOPES:
        parse_scope(scope)
    order = query.get("order", Order.HASH)
    if order not in list(Order):
        raise InvalidRequest("order", f"must be {' or '.join(Order)}")
    prefix = query.get("prefix", "")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise InvalidRequest("prefix", "must be the beginning of a hash")
    ci = query.get("ci")
    if ci is not None and not is_ci(ci):
        raise InvalidRequest("ci", f"must hold 1 to {MAX_CI_LENGTH} printable ASCII characters")
    if query.get("hidden", "true") != "true":
        raise InvalidRequest("hidden", "must be true, or not be there")
    wanted = Wanted(
        hidden="hidden" in query,
        order=Order(order),
        scope=scope or SHARED_SCOPE,
        prefix=prefix,
        writer=parse_writer_id(query["writer"]) if "writer" in query else None,
        ci=ci,
        since=_moment("from", query["from"]) if "from" in query else None,
        until=_moment("until", query["until"]) if "until" in query else None,
    )
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        raise InvalidRequest("from", "must be before `until`")
    return ArtifactsQuery(
        limit=limit,
        after=_place(query["cursor"], _PLACES[wanted.order]) if "cursor" in query else "",
        wanted=wanted,
        names_scope=scope is not None,
    )


def artifact_query(token: BearerToken, request: Request) -> ArtifactsQuery:
    """The scope of one artifact. Only with ALL_SCOPES, there are pages. Raises InvalidRequest."""
    check_parameters(request, "limit", "cursor", "scope")
    asked = artifacts_query(token, request)
    for name in ("limit", "cursor"):
        if asked.wanted.scope != ALL_SCOPES and name in (request.query_parameters or {}):
            raise InvalidRequest(name, f"must come with scope={ALL_SCOPES}")
    if asked.after and not asked.after.startswith(f"{named_hash(request)}."):
        raise InvalidRequest("cursor", _NEXT)
    return asked


def scope_query(_token: BearerToken, request: Request) -> str | None:
    """The scope of one artifact, None if the query names none. Raises InvalidValue."""
    check_parameters(request, "scope")
    scope = (request.query_parameters or {}).get("scope")
    if scope is not None:
        parse_scope(scope)
    return scope


def cursor_of(place: str | None) -> str | None:
    """The cursor of the next page, None on the last page. It is opaque to clients."""
    return None if place is None else base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _moment(name: str, text: str) -> datetime:
    if not _MILLISECONDS.fullmatch(text):
        raise InvalidRequest(name, "must be milliseconds since 1970")
    return from_ms(int(text))


def _place(cursor: str, form: re.Pattern[str]) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (Error, ValueError):
        place = ""
    if not form.fullmatch(place):
        raise InvalidRequest("cursor", _NEXT)
    return place


def removals_query(_token: BearerToken, request: Request) -> RemovalsQuery:
    """Raises InvalidRequest."""
    check_parameters(request, "limit", "cursor")
    query = request.query_parameters or {}
    return RemovalsQuery(
        limit=_limit(request),
        after=_place(query["cursor"], _TARGET) if "cursor" in query else "",
    )


def removal_query(_token: BearerToken, request: Request) -> RemovalQuery:
    """Requires exactly one target, so that a forgotten parameter does not delete everything.

    Raises InvalidValue, InvalidRequest.
    """
    check_parameters(request, "writer", "scope", "from", "until", "all")
    query = request.query_parameters or {}
    others = [name for name in ("scope", "from", "until", "all") if name in query]
    if "writer" in query or not others:
        if others:
            raise InvalidRequest(others[0], "must not come with writer")
        return RemovalQuery(parse_writer_id(query.get("writer", "")))
    if others == ["from", "until"]:
        return RemovalQuery(_range(request).target)
    if len(others) > 1 or others[0] in ("from", "until"):
        raise InvalidRequest(
            others[0],
            "cannot be used like this: name a writer, a scope, both from and until, or all",
        )
    if "all" in query:
        return RemovalQuery(EVERYTHING, name=query["all"])
    scope = parse_scope(query["scope"])
    if scope is None:
        raise InvalidRequest("scope", "must be the id of an own scope")
    return RemovalQuery(scope)


RemovalAsked = Annotated[RemovalQuery, Depends(removal_query)]


def removal_target(asked: RemovalAsked, principal: CacheManager) -> str:
    """The target of the removal. To delete everything, the request has to repeat its owner. Raises InvalidRequest."""
    team = principal.membership.team
    if asked.name not in (None, principal.owner if team is None else team.slug):
        raise InvalidRequest("all", "must be the slug of the team, or your user id without a team")
    return asked.target


def _limit(request: Request) -> int:
    limit = (request.query_parameters or {}).get("limit", str(DEFAULT_ARTIFACTS))
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_ARTIFACTS:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_ARTIFACTS}")
    return int(limit)


def _range(request: Request) -> Range:
    """The time between `from` and `until`, which the request has."""
    query = request.query_parameters or {}
    since, until = _moment("from", query["from"]), _moment("until", query["until"])
    if since >= until:
        raise InvalidRequest("from", "must be before `until`")
    return Range(since, until)


ArtifactsAsked = Annotated[ArtifactsQuery, Depends(artifacts_query)]
ArtifactAsked = Annotated[ArtifactsQuery, Depends(artifact_query)]
ScopeAsked = Annotated[str | None, Depends(scope_query)]
RemovalsAsked = Annotated[RemovalsQuery, Depends(removals_query)]
RemovalTarget = Annotated[str, Depends(removal_target)]
