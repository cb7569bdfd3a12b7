"""Replies to build clients: artifacts, and where to upload and fetch them."""

from larder.artifacts.models import Artifact, ArtifactHash
from larder.teams.models import SHARED_SCOPE
from larder.web.powertools.resolver import Request
from larder.web.request_context import base_url
from larder.web.responses import OWN, SCOPE_HEADER, DeclaredResponse

_BYTES = "application/octet-stream"

AUTHORIZATION_ALLOWED = {"Access-Control-Allow-Headers": "Authorization"}
"""In a reply to OPTIONS: makes turbo send its token with the request (docs/clients/turbo.md#preflight)."""

_ARTIFACT_HEADERS = frozenset(
    {
        "x-artifact-duration",
        "x-artifact-tag",
        "x-artifact-sha",
        "x-artifact-dirty-hash",
        SCOPE_HEADER,
    }
)


class PreflightResponse(DeclaredResponse[None]):
    """The reply to OPTIONS that sends the build client's request here, with its token."""

    status = 204
    always = frozenset(AUTHORIZATION_ALLOWED)


class UploadOffer(DeclaredResponse[None]):
    """The reply to OPTIONS that sends the build client's upload straight to storage."""

    status = 204
    always = frozenset({"Location"})


class ArtifactResponse(DeclaredResponse[bytes]):
    """An artifact."""

    media_type = _BYTES
    optional = _ARTIFACT_HEADERS


class ArtifactHead(DeclaredResponse[None]):
    """The headers of an artifact."""

    always = frozenset({"Content-Length"})
    optional = _ARTIFACT_HEADERS


class ArtifactRedirect(DeclaredResponse[None]):
    """The headers of an artifact, and where to fetch it."""

    status = 302
    always = frozenset({"Location"})
    optional = _ARTIFACT_HEADERS


def preflight_response() -> PreflightResponse:
    return PreflightResponse(headers=AUTHORIZATION_ALLOWED)


def upload_offer(url: str) -> UploadOffer:
    return UploadOffer(headers={"Location": url})


def artifact_response(artifact: Artifact, body: bytes, *, scoped: bool) -> ArtifactResponse:
    """`scoped` says whether the team has own scopes, here as in the functions below."""
    return ArtifactResponse(body, _artifact_headers(artifact, scoped))


def artifact_head(artifact: Artifact, *, scoped: bool) -> ArtifactHead:
    described = {"Content-Type": _BYTES, "Content-Length": str(artifact.size_bytes)}
    return ArtifactHead(headers={**_artifact_headers(artifact, scoped), **described})


def redirect(artifact: Artifact, url: str, *, scoped: bool) -> ArtifactRedirect:
    """302: every client version follows it, and drops its token on the way (docs/clients/turbo.md#downloads)."""
    headers = {**_artifact_headers(artifact, scoped), "Location": url}
    return ArtifactRedirect(headers=headers)


def _artifact_headers(artifact: Artifact, scoped: bool) -> dict[str, str]:
    metadata = artifact.metadata
    # Unknown for a direct upload. Clients read a missing header as 0, and an invalid one as a miss.
    duration = metadata.duration_ms
    headers = {
        "x-artifact-duration": None if duration is None else str(duration),
        "x-artifact-tag": metadata.tag,
        "x-artifact-sha": metadata.sha,
        "x-artifact-dirty-hash": metadata.dirty_hash,
        SCOPE_HEADER: _scope_name(artifact) if scoped else None,
    }
    return {name: value for name, value in headers.items() if value is not None}


def artifact_url(request: Request, hash: ArtifactHash, team_id: str | None) -> str:
    """The URL of the artifact at this deployment.

    It names a team by its id, even if only the key is bound to the team: slugs change, and another token has no team.
    """
    query = "" if team_id is None else f"?teamId={team_id}"
    return f"{base_url(request)}/v8/artifacts/{hash}{query}"


def _scope_name(artifact: Artifact) -> str:
    return SHARED_SCOPE if artifact.upload.scope is None else OWN
