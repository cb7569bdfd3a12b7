"""The principals of requests that may be sent on to S3 or to the edge.

| Type | The principal |
|---|---|
| `RedirectableReader` | a `CacheReader`, whose request may be redirected to the edge |
| `PreflightWriter` | a `CacheWriter`, if the request announces an upload that can bypass the functions |
"""

from enum import Enum
from typing import Annotated

from larder.artifacts import edge
from larder.artifacts.models import Wanted
from larder.web.declared import text
from larder.web.parameters import (
    USER_AGENT,
    BearerToken,
    NamedTeam,
    bearer_token,
    hash_in_path,
    team_query,
    turbo_version,
)
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import cache_writer, reader
from larder.web.principals.prefetch import CachePrincipal, is_bound

_SENDS_LENGTH = (2, 2, 3)
"""Older versions upload without Content-Length. S3 and the edge refuse that (docs/clients/turbo.md#uploads)."""

_KEEPS_LOCATION = (2, 10, 13)
"""Older versions append `&teamId=...&slug=...` to the Location of a preflight, which breaks the signature of a
presigned URL. The edge ignores it. Their preflight names no team (docs/clients/turbo.md#preflight)."""

ANNOUNCED = text(
    "access-control-request-method",
    "The method of the request that follows. For `PUT`, the reply has a signed URL to upload to.",
    place="header",
)


class DirectUploads(Enum):
    """The uploads of a client that can bypass the functions."""

    NONE = "none"
    BY_EDGE = "to the edge, with a key that is bound to a team"
    ALL = "all"


def direct_uploads(user_agent: str) -> DirectUploads:
    """What the client can do. All clients other than `turbo` can do all."""
    version = turbo_version(user_agent)
    if version is None:
        return DirectUploads.ALL
    if version < _SENDS_LENGTH:
        return DirectUploads.NONE
    return DirectUploads.ALL if version >= _KEEPS_LOCATION else DirectUploads.BY_EDGE


def redirectable_reader(token: BearerToken, team: NamedTeam, request: Request) -> CachePrincipal:
    with edge.reading_key():
        return reader(token, team, Wanted(hash_in_path(request), body=True))


def direct_uploads_of_client(request: Request) -> DirectUploads:
    return direct_uploads(USER_AGENT(request) or "")


def preflight_writer(
    request: Request, client: Annotated[DirectUploads, Depends(direct_uploads_of_client)]
) -> CachePrincipal | None:
    """The principal of an OPTIONS that announces an upload which can bypass the functions, or None for any other.

    For the others the token is not checked, because the reply only allows the client to send the request itself.
    """
    announced = (ANNOUNCED(request) or "").upper()
    if announced != "PUT" or client is DirectUploads.NONE:
        return None
    if client is DirectUploads.BY_EDGE and not edge.is_deployed():
        return None
    token = bearer_token(request)
    team = team_query(token, request)
    if client is DirectUploads.BY_EDGE and not is_bound(token):
        # The upload is for a team that this client names only with the upload itself.
        return None
    with edge.reading_key():
        return cache_writer(token, team, request)


RedirectableReader = Annotated[CachePrincipal, Depends(redirectable_reader)]
PreflightWriter = Annotated[CachePrincipal | None, Depends(preflight_writer)]
