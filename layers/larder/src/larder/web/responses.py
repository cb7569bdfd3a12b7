"""Replies to clients."""

import json
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Request, Response
from aws_lambda_powertools.shared.cookies import Cookie

from larder.artifacts.models import Artifact, ArtifactHash
from larder.errors import (
    DeleteUserDisabled,
    InvalidBody,
    InvalidRequest,
    LarderError,
)
from larder.web.base_url import base_url
from larder.web.replies.errors import auth_error, cache_error

_JSON = "application/json"
_BYTES = "application/octet-stream"
_NO_STORE = {"Cache-Control": "no-store"}

AUTHORIZATION_ALLOWED = {"Access-Control-Allow-Headers": "Authorization"}
"""In a reply to OPTIONS: makes turbo send its token with the request (docs/clients/turbo.md#preflight)."""

Shape = TypeVar("Shape")

# A handler's return type names one of these classes, and the OpenAPI document is made of that:
# tools/openapi/replies.py has the status and the headers of each.


class MayHave(str):
    """A header that a reply can have beyond those of its class: `Annotated[JsonResponse[...], MayHave("Location")]`."""

    __slots__ = ()


MAY_SET_COOKIES = MayHave("Set-Cookie")


class JsonResponse(Response[str], Generic[Shape]):
    """JSON of a shape that a TypedDict declares."""


class AcceptedResponse(Response[str], Generic[Shape]):
    """202: what was asked for is done later."""


class PrivateResponse(Response[str], Generic[Shape]):
    """JSON that only the caller may see: no cache keeps it."""


class EmptyResponse(Response[None]):
    """200 without a body."""


class PreflightResponse(Response[None]):
    """The reply to OPTIONS that sends the build client's request here, with its token."""


class UploadOffer(Response[None]):
    """The reply to OPTIONS that sends the build client's upload straight to storage."""


class ArtifactResponse(Response[bytes]):
    """An artifact."""


class ArtifactHead(Response[None]):
    """The headers of an artifact."""


class ArtifactRedirect(Response[None]):
    """The headers of an artifact, and where to fetch it."""


class PageRedirect(Response[None]):
    """Where a browser goes on to."""


def json_response(
    body: Shape, *, headers: Mapping[str, str] | None = None, cookies: Sequence[Cookie] = ()
) -> JsonResponse[Shape]:
    return JsonResponse(200, _JSON, json.dumps(body), headers, list(cookies))


def accepted_response(body: Shape) -> AcceptedResponse[Shape]:
    return AcceptedResponse(202, _JSON, json.dumps(body))


def private_response(body: Shape, *, cookies: Sequence[Cookie] = ()) -> PrivateResponse[Shape]:
    return PrivateResponse(200, _JSON, json.dumps(body), _NO_STORE, list(cookies))


def empty_response() -> EmptyResponse:
    return EmptyResponse(200)


def preflight_response() -> PreflightResponse:
    return PreflightResponse(204, headers=AUTHORIZATION_ALLOWED)


def upload_offer(url: str) -> UploadOffer:
    return UploadOffer(204, headers={"Location": url})


def empty(status: int, headers: Mapping[str, str] | None = None) -> Response[None]:
    return Response(status_code=status, headers=headers)


def error_response(error: LarderError, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(
        status_code=error.status,
        content_type=_JSON,
        headers={**error.headers, **(headers or {})},
        body=json.dumps(cache_error(error)),
    )


def auth_error_response(error: LarderError) -> Response[str] | Response[None]:
    """An error in the format of the Better Auth client (docs/clients/better-auth.md#what-the-client-needs)."""
    if isinstance(error, DeleteUserDisabled):
        return empty(error.status)
    if type(error) is InvalidRequest and error.field != "body":
        # A service named the field and the rule, without knowing by which API it was called.
        error = InvalidBody(error.field, error.rule, *error.others)
    return Response(
        status_code=error.status,
        content_type=_JSON,
        headers=dict(error.headers),
        body=json.dumps(auth_error(error)),
    )


def artifact_response(artifact: Artifact, body: bytes) -> ArtifactResponse:
    return ArtifactResponse(200, _BYTES, body, _artifact_headers(artifact))


def artifact_head(artifact: Artifact) -> ArtifactHead:
    headers = {**_artifact_headers(artifact), "Content-Length": str(artifact.size_bytes)}
    return ArtifactHead(200, _BYTES, headers=headers)


def redirect(artifact: Artifact, url: str) -> ArtifactRedirect:
    """302: every client version follows it, and drops its token on the way (docs/clients/turbo.md#downloads)."""
    headers = {**_artifact_headers(artifact), "Location": url, **_NO_STORE}
    return ArtifactRedirect(302, headers=headers)


def _artifact_headers(artifact: Artifact) -> dict[str, str]:
    metadata = artifact.metadata
    # Unknown for a direct upload. Clients read a missing header as 0, and an invalid one as a miss.
    duration = metadata.duration_ms
    headers = {
        "x-artifact-duration": None if duration is None else str(duration),
        "x-artifact-tag": metadata.tag,
        "x-artifact-sha": metadata.sha,
        "x-artifact-dirty-hash": metadata.dirty_hash,
    }
    return {name: value for name, value in headers.items() if value is not None}


def sent_on(url: str, **query: str) -> PageRedirect:
    """302 to a page, with `query` added before any `#`. The query may be secret, so nothing may keep the address."""
    page, hash_sign, fragment = url.partition("#")
    if query:
        page += ("&" if "?" in page else "?") + urlencode(query)
    headers = {"Location": page + hash_sign + fragment, "Referrer-Policy": "no-referrer"}
    return PageRedirect(302, headers={**headers, **_NO_STORE})


def artifact_url(request: Request, hash: ArtifactHash, team_id: str | None) -> str:
    """The URL of the artifact at this deployment.

    It names a team by its id, even if only the key is bound to the team: slugs change, and another token has no team.
    """
    query = "" if team_id is None else f"?teamId={team_id}"
    return f"{base_url(request)}/v8/artifacts/{hash}{query}"
