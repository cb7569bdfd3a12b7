"""Path, query and headers, parsed and checked: the dependencies that handlers name in their signatures.

Each raises InvalidRequest, or InvalidValue from a parser of a service.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from larder.api_keys.verification import presented_form
from larder.artifacts.models import (
    MAX_CI_LENGTH,
    MAX_DURATION_MS,
    MAX_TAG_LENGTH,
    PRINTABLE,
    REVISION,
    ArtifactHash,
    ArtifactMetadata,
    is_ci,
    is_revision,
    is_tag,
    parse_hash,
)
from larder.errors import InvalidTeam, InvalidValue, Unauthenticated
from larder.hashing import hash_key
from larder.settings import settings
from larder.teams.slugs import SLUG, TEAM_ID, names_a_team, parse_slug, parse_team_id
from larder.web.bodies.raw import printable, sent_bytes
from larder.web.declared import Body, Parameter, text
from larder.web.errors import InvalidRequest
from larder.web.log import logger
from larder.web.powertools.resolver import Depends, Request
from larder.web.request_context import request_context

_KEY = re.compile(r"Bearer +(?P<key>[\x21-\x7e]{64,256})", re.IGNORECASE)
_SESSION = re.compile(r"Bearer +(?P<token>[A-Za-z0-9]{32})", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,11}(?:\.[0-9]{1,9})?")
_TEAM = frozenset({"teamId", "slug"})
_MEANS_A_TEAM = frozenset({"team", "teamid", "teamslug", "slug"})
"""Spellings of `teamId` and `slug` to refuse. If they were ignored, the request would act for the user."""
_NO_LETTER = re.compile(r"[^a-z]")
_REVISION: dict[str, Any] = {"type": "string", "pattern": REVISION}

TEAM = text(
    "teamId",
    "The id of the team to act for. Empty for no team.",
    {"type": "string", "pattern": TEAM_ID, "empty": True},
)
TEAM_SLUG = text(
    "slug",
    "The slug of the team to act for, or its id.",
    {"type": "string", "pattern": SLUG, "empty": True},
)
CI = text(
    "x-artifact-client-ci",
    "The CI that the client runs in.",
    {"type": "string", "pattern": PRINTABLE, "empty": True, "maxLength": MAX_CI_LENGTH},
    place="header",
)
INTERACTIVE = text(
    "x-artifact-client-interactive",
    "Whether the client runs in an interactive shell.",
    {"type": "string", "enum": ["0", "1"]},
    place="header",
)
DURATION = text(
    "x-artifact-duration",
    "Milliseconds that the task took.",
    {"type": "number", "minimum": 0, "maximum": MAX_DURATION_MS},
    place="header",
)
TAG = text(
    "x-artifact-tag",
    "A signature. Larder returns it unchanged with the artifact.",
    {"type": "string", "pattern": PRINTABLE, "empty": True, "maxLength": MAX_TAG_LENGTH},
    place="header",
)
SHA = text(
    "x-artifact-sha", "The commit that the artifact was built from.", _REVISION, place="header"
)
DIRTY_HASH = text(
    "x-artifact-dirty-hash", "The hash of uncommitted changes.", _REVISION, place="header"
)


class Token(NamedTuple):
    """A bearer token in its stored form: a hash, or the API key itself if hashing is disabled."""

    hash: str
    is_session: bool


class TeamQuery(NamedTuple):
    """The team that the request names, if any. If both are set, they have to name the same."""

    team_id: str | None
    slug: str | None


_TURBO = re.compile(r"turbo (\d{1,4})\.(\d{1,4})\.(\d{1,4})")

USER_AGENT = text(
    "user-agent",
    "Versions of turbo that break presigned URLs get no URL, or only one of the edge. Newer ones get another code "
    "when a public read key uploads.",
    place="header",
)


def turbo_version(user_agent: str) -> tuple[int, ...] | None:
    """The version of turbo that names itself, such as (2, 11, 11). None for any other client."""
    match = _TURBO.match(user_agent)
    return None if match is None else tuple(map(int, match.groups()))


class ClientInfo(NamedTuple):
    """What a client says about itself in headers."""

    ci: str | None
    interactive: bool | None


def bearer_token(request: Request) -> Token:
    """The bearer token in its stored form.

    Keys have 64 characters or more, session tokens 32. All other parsers depend on this one, so that a request without
    a token gets 401 before any other error.
    """
    header = request.headers.get("authorization", "")
    if session := _SESSION.fullmatch(header):
        return Token(hash=hash_key(session["token"]), is_session=True)
    key = _KEY.fullmatch(header)
    key_hash = None if key is None else presented_form(key["key"], request_context(request))
    if key_hash is None:
        raise Unauthenticated
    return Token(key_hash, is_session=False)


BearerToken = Annotated[Token, Depends(bearer_token)]


def team_query(_token: BearerToken, request: Request) -> TeamQuery:
    """The team that the request names. Capitals and spaces around a slug are forgiven, and an id in its place.

    Raises InvalidTeam, and InvalidRequest for another spelling of a parameter.
    """
    for name in request.query_parameters or {}:
        if name not in _TEAM and _NO_LETTER.sub("", name.lower()) in _MEANS_A_TEAM:
            raise InvalidRequest(printable(name), "is unknown: name a team by teamId or slug")
    # A client with an unset variable sends an empty `teamId=`.
    team_id, slug = TEAM(request), (TEAM_SLUG(request) or "").strip()
    if slug and not team_id and names_a_team(slug):
        team_id, slug = slug, ""
    try:
        return TeamQuery(
            team_id=parse_team_id(team_id) if team_id else None,
            slug=parse_slug(slug.lower()) if slug else None,
        )
    except InvalidValue as error:
        raise InvalidTeam(error.field, error.rule) from None


def check_parameters(request: Request, *declared: Parameter[Any]) -> None:
    """Refuse unknown parameters, except those that name the team.

    For Larder's own endpoints: if a mistyped filter were ignored, the request would delete or count too much.
    """
    known = _TEAM.union(parameter.name for parameter in declared)
    for name in request.query_parameters or {}:
        if name not in known:
            names = ", ".join(sorted(known))
            raise InvalidRequest(printable(name), f"is unknown: the parameters here are {names}")


def no_parameters(_token: BearerToken, request: Request) -> None:
    check_parameters(request)


def hash_in_path(request: Request) -> ArtifactHash | None:
    """The hash in the path, for endpoints that have one."""
    text = request.path_parameters.get("artifact_hash")
    return None if text is None else parse_hash(text)


def named_hash(request: Request) -> ArtifactHash:
    return parse_hash(request.path_parameters["artifact_hash"])


def client_info(_token: BearerToken, request: Request) -> ClientInfo:
    ci = _described(CI, request, is_ci)
    interactive = _described(INTERACTIVE, request, {"0", "1"}.__contains__)
    return ClientInfo(ci=ci, interactive=None if interactive is None else interactive == "1")


Client = Annotated[ClientInfo, Depends(client_info)]


def artifact_metadata(client: Client, request: Request) -> ArtifactMetadata:
    """The headers of an upload. A duration can have decimals and is stored as whole milliseconds.

    A tag that cannot be stored is refused, because without it clients would refuse the artifact. The others only
    describe it: one that cannot be stored is left out, and the log names it.
    """
    # A client with an unset variable sends an empty header.
    tag = TAG(request) or None
    if tag is not None and not is_tag(tag):
        raise InvalidRequest(
            TAG.name, f"must hold at most {MAX_TAG_LENGTH} printable ASCII characters"
        )
    duration = _described(DURATION, request, _is_duration)
    return ArtifactMetadata(
        duration_ms=None if duration is None else round(float(duration)),
        tag=tag,
        sha=_described(SHA, request, is_revision),
        dirty_hash=_described(DIRTY_HASH, request, is_revision),
        ci=client.ci,
        interactive=client.interactive,
    )


def artifact_body(_token: BearerToken, request: Request) -> bytes:
    return _ARTIFACT(request)


def _sent_artifact(request: Request) -> bytes:
    """The body of an upload. Its length must match Content-Length.

    turbo before 2.2 sends chunked bodies without a length. The gateway joins them, so the size is the length of the
    body (docs/clients/turbo.md#uploads).
    """
    body = sent_bytes(request)
    length = request.headers.get("content-length")
    if length is not None and not (length.isascii() and length.isdecimal()):
        raise InvalidRequest("content-length", "must be a whole number of bytes")
    if length is not None and int(length[:20]) != len(body):
        raise InvalidRequest(
            "content-length", f"says {length[:20]} bytes, but the body has {len(body)}"
        )
    if not body:
        raise InvalidRequest("body", "must hold the artifact; it is empty")
    if len(body) > (most := settings().max_upload_bytes):
        raise InvalidRequest("content-length", f"must be at most {most} bytes, not {len(body)}")
    return body


_ARTIFACT = Body(
    "application/octet-stream",
    lambda: {"type": "string", "format": "binary", "minLength": 1},
    _sent_artifact,
)


def _described(
    header: Parameter[str | None], request: Request, is_valid: Callable[[str], bool]
) -> str | None:
    """The value of a header that only describes. None, with a note in the log, for one that cannot be stored."""
    value = header(request) or None
    if value is None or is_valid(value):
        return value
    logger().append_keys(**{f"dropped_{header.name.replace('-', '_')}": True})
    return None


def _is_duration(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and float(text) <= MAX_DURATION_MS


NamedTeam = Annotated[TeamQuery, Depends(team_query)]
NoOtherParameters = Annotated[None, Depends(no_parameters)]
"""The query can only name the team."""
NamedHash = Annotated[ArtifactHash, Depends(named_hash)]
