"""Query parameters of the endpoints that list and delete artifacts."""

import base64
import re
from binascii import Error
from typing import Annotated, NamedTuple

from larder.artifacts.models import (
    HASH_PATTERN,
    MAX_CI_LENGTH,
    SCOPE_PATTERN,
    is_ci,
    is_hash,
    parse_scope,
    parse_writer_id,
)
from larder.artifacts.selection import (
    ALL_SCOPES,
    EVERYTHING,
    TARGET_PATTERN,
    Order,
    Range,
    Selection,
)
from larder.hashing import RANDOM_ID
from larder.teams.models import RULE_ID, SHARED_SCOPE
from larder.web.declared import NEXT, limit, moment, text
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters, named_hash
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import CacheManager

MAX_ARTIFACTS = 100
DEFAULT_ARTIFACTS = 20

_PREFIX = re.compile(HASH_PATTERN)
_PLACE = rf"{HASH_PATTERN}(?:\.{SCOPE_PATTERN})?(?:#[a-z]+)?"
_TARGET = re.compile(TARGET_PATTERN)
_WRITER = {"type": "string", "pattern": f"{RANDOM_ID.pattern}|{RULE_ID.pattern}"}

LIMIT = limit(MAX_ARTIFACTS, DEFAULT_ARTIFACTS, "artifacts")
CURSOR = text("cursor", "`next` of the previous page.")
SCOPES = text(
    "scope",
    "Only artifacts in this scope. By default, those in the shared one.",
    {"type": "string", "pattern": rf"{SHARED_SCOPE}|{ALL_SCOPES}|{SCOPE_PATTERN}"},
)
PREFIX = text(
    "prefix",
    "Only artifacts whose hash begins with this.",
    {"type": "string", "pattern": HASH_PATTERN},
)
WRITER = text("writer", "Only artifacts of this key, session, user or rule.", _WRITER)
CI = text("ci", "Only artifacts of this CI vendor.", {"type": "string", "maxLength": MAX_CI_LENGTH})
FROM = moment("from", "Only artifacts stored at this time or later, in milliseconds since 1970.")
UNTIL = moment("until", "Only artifacts stored before this time.")
ORDER = text(
    "order",
    "By hash, or the newest first.",
    {"type": "string", "enum": [order.value for order in Order], "default": Order.HASH.value},
)
HASHES = text(
    "hashes",
    f"Only artifacts with these hashes, up to {MAX_ARTIFACTS}, separated by commas. They are on one page, by size.",
    {"type": "string", "pattern": rf"{HASH_PATTERN}(?:,{HASH_PATTERN})*"},
)
HIDDEN = text(
    "hidden",
    "Also those that readers do not see, because the team hides them.",
    {"type": "string", "enum": ["true"]},
)
SCOPE = text(
    "scope",
    "The scope of the artifact. By default, the shared one.",
    {"type": "string", "pattern": rf"{SHARED_SCOPE}|{SCOPE_PATTERN}"},
)
REMOVALS_LIMIT = limit(MAX_ARTIFACTS, DEFAULT_ARTIFACTS, "removals")
TARGET_WRITER = text("writer", "The id of a key, a session, a user or a rule.", _WRITER)
TARGET_SCOPE = text(
    "scope",
    "The id of an own scope. The request names one of `writer`, `scope`, both `from` and `until`, or `all`.",
    {"type": "string", "pattern": SCOPE_PATTERN},
)
TARGET_FROM = moment(
    "from", "Delete what was stored at this time or later, in milliseconds since 1970."
)
TARGET_UNTIL = moment("until", "Delete what was stored before this time.")
ALL = text("all", "Delete everything: the slug of the team, or the id of the user without a team.")

_PLACES = {
    Order.HASH: re.compile(_PLACE),
    Order.UPLOADED: re.compile(rf"[0-9]{{1,14}}@{_PLACE}"),
}


class ArtifactsQuery(NamedTuple):
    """At most `limit` artifacts of the selection, after the place `after`. It is empty for the first page.

    With `hashes`, only those, without pages.
    """

    limit: int
    after: str
    selection: Selection
    names_scope: bool
    hashes: tuple[str, ...] = ()


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
    others = (LIMIT, CURSOR, PREFIX, WRITER, CI, FROM, UNTIL, ORDER, HIDDEN)
    check_parameters(request, SCOPES, HASHES, *others)
    sent = HASHES(request)
    if sent is None:
        return _asked(request)
    hashes = tuple(dict.fromkeys(sent.split(",")))
    if len(hashes) > MAX_ARTIFACTS or not all(map(is_hash, hashes)):
        raise InvalidRequest(
            "hashes", f"must be at most {MAX_ARTIFACTS} hashes, separated by commas"
        )
    for parameter in others:
        if parameter.sent(request) is not None:
            raise InvalidRequest(parameter.name, "must not come with hashes")
    return _asked(request)._replace(hashes=hashes)


def _asked(request: Request) -> ArtifactsQuery:
    limit, scope = LIMIT(request), SCOPES(request)
    if scope is not None and scope != ALL_SCOPES:
        parse_scope(scope)
    order = ORDER(request) or Order.HASH
    if order not in list(Order):
        raise InvalidRequest("order", f"must be {' or '.join(Order)}")
    prefix = PREFIX(request) or ""
    if prefix and not _PREFIX.fullmatch(prefix):
        raise InvalidRequest("prefix", "must be the beginning of a hash")
    ci, hidden, writer = CI(request), HIDDEN(request), WRITER(request)
    if ci is not None and not is_ci(ci):
        raise InvalidRequest("ci", f"must hold 1 to {MAX_CI_LENGTH} printable ASCII characters")
    if hidden not in (None, "true"):
        raise InvalidRequest("hidden", "must be true, or not be there")
    selection = Selection(
        hidden=hidden is not None,
        order=Order(order),
        scope=scope or SHARED_SCOPE,
        prefix=prefix,
        writer=None if writer is None else parse_writer_id(writer),
        ci=ci,
        since=FROM(request),
        until=UNTIL(request),
    )
    if (
        selection.since is not None
        and selection.until is not None
        and selection.since >= selection.until
    ):
        raise InvalidRequest("from", "must be before `until`")
    return ArtifactsQuery(
        limit=limit,
        after=_place(CURSOR(request), _PLACES[selection.order]),
        selection=selection,
        names_scope=scope is not None,
    )


def artifact_query(_token: BearerToken, request: Request) -> ArtifactsQuery:
    """The scope of one artifact. Only with ALL_SCOPES, there are pages. Raises InvalidRequest."""
    check_parameters(request, LIMIT, CURSOR, SCOPES)
    query = _asked(request)
    for parameter in (LIMIT, CURSOR):
        if query.selection.scope != ALL_SCOPES and parameter.sent(request) is not None:
            raise InvalidRequest(parameter.name, f"must come with scope={ALL_SCOPES}")
    if query.after and not query.after.startswith(f"{named_hash(request)}."):
        raise InvalidRequest("cursor", NEXT)
    return query


def scope_query(_token: BearerToken, request: Request) -> str | None:
    """The scope of one artifact, None if the query names none. Raises InvalidValue."""
    check_parameters(request, SCOPE)
    scope = SCOPE(request)
    if scope is not None:
        parse_scope(scope)
    return scope


def cursor_of(place: str | None) -> str | None:
    """The cursor of the next page, None on the last page. It is opaque to clients."""
    return None if place is None else base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _place(cursor: str | None, form: re.Pattern[str]) -> str:
    """The place that a cursor stands for, empty without one."""
    if cursor is None:
        return ""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (Error, ValueError):
        place = ""
    if not form.fullmatch(place):
        raise InvalidRequest("cursor", NEXT)
    return place


def removals_query(_token: BearerToken, request: Request) -> RemovalsQuery:
    """Raises InvalidRequest."""
    check_parameters(request, REMOVALS_LIMIT, CURSOR)
    return RemovalsQuery(limit=REMOVALS_LIMIT(request), after=_place(CURSOR(request), _TARGET))


def removal_query(_token: BearerToken, request: Request) -> RemovalQuery:
    """Requires exactly one target, so that a forgotten parameter does not delete everything.

    Raises InvalidValue, InvalidRequest.
    """
    writer = TARGET_WRITER(request)
    targets = (TARGET_SCOPE, TARGET_FROM, TARGET_UNTIL, ALL)
    check_parameters(request, TARGET_WRITER, *targets)
    others = [target.name for target in targets if target.sent(request) is not None]
    if writer is not None or not others:
        if others:
            raise InvalidRequest(others[0], "must not come with writer")
        return RemovalQuery(parse_writer_id(writer or ""))
    if others == ["from", "until"]:
        since, until = TARGET_FROM(request), TARGET_UNTIL(request)
        if since is None or until is None or since >= until:
            raise InvalidRequest("from", "must be before `until`")
        return RemovalQuery(Range(since, until).target)
    if len(others) > 1 or others[0] in ("from", "until"):
        raise InvalidRequest(
            others[0],
            "cannot be used like this: name a writer, a scope, both from and until, or all",
        )
    everything = ALL(request)
    if everything is not None:
        return RemovalQuery(EVERYTHING, name=everything)
    scope = parse_scope(TARGET_SCOPE(request) or "")
    if scope is None:
        raise InvalidRequest("scope", "must be the id of an own scope")
    return RemovalQuery(scope)


def removal_target(
    query: Annotated[RemovalQuery, Depends(removal_query)], principal: CacheManager
) -> str:
    """The target of the removal. To delete everything, the request has to repeat its owner. Raises InvalidRequest."""
    team = principal.membership.team
    if query.name not in (None, principal.owner if team is None else team.slug):
        raise InvalidRequest("all", "must be the slug of the team, or your user id without a team")
    return query.target
