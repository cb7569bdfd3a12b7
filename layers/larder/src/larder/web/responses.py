"""What clients get back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Request, Response
from aws_lambda_powertools.shared.cookies import Cookie

from larder.artifacts.models import Artifact, ArtifactHash, QueryResult
from larder.errors import (
    DeleteUserDisabled,
    InvalidBody,
    InvalidRequest,
    LarderError,
)
from larder.web.base_url import base_url
from larder.web.error_bodies import auth_error, cache_error

_JSON = "application/json"
_BYTES = "application/octet-stream"

NO_STORE = {"Cache-Control": "no-store"}

AUTHORIZATION_ALLOWED = {"Access-Control-Allow-Headers": "Authorization"}
"""In a reply to OPTIONS: the build client sends its token with the request (docs/clients/turbo.md#preflight)."""


def json_response(
    body: Any,
    status: int = 200,
    *,
    headers: Mapping[str, str] | None = None,
    cookies: Sequence[Cookie] = (),
) -> Response[str]:
    return Response(
        status_code=status,
        content_type=_JSON,
        headers=dict(headers or {}),
        cookies=list(cookies),
        body=json.dumps(body),
    )


def empty(status: int, headers: Mapping[str, str] | None = None) -> Response[None]:
    return Response(status_code=status, headers=dict(headers or {}))


def error_response(error: LarderError, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(
        status_code=error.status,
        content_type=_JSON,
        headers={**error.headers, **(headers or {})},
        body=json.dumps(cache_error(error)),
    )


def auth_error_response(error: LarderError) -> Response[str] | Response[None]:
    """An error as the Better Auth client parses it (docs/clients/better-auth.md#what-the-client-needs)."""
    if isinstance(error, DeleteUserDisabled):
        return empty(error.status)
    if type(error) is InvalidRequest and error.field != "body":
        # A service told the field and the rule, without knowing by which API it was asked.
        error = InvalidBody(error.field, error.rule, *error.others)
    return Response(
        status_code=error.status,
        content_type=_JSON,
        headers=dict(error.headers),
        body=json.dumps(auth_error(error)),
    )


def artifact_response(artifact: Artifact, body: bytes) -> Response[bytes]:
    return Response(
        status_code=200, content_type=_BYTES, headers=artifact_headers(artifact), body=body
    )


def artifact_head(artifact: Artifact) -> Response[None]:
    headers = {**artifact_headers(artifact), "Content-Length": str(artifact.size_bytes)}
    return Response(status_code=200, content_type=_BYTES, headers=headers)


def redirect(artifact: Artifact, url: str) -> Response[None]:
    """302: every client version follows it, and drops its token on the way (docs/clients/turbo.md#downloads)."""
    headers = {**artifact_headers(artifact), "Location": url, "Cache-Control": "no-store"}
    return Response(status_code=302, headers=headers)


def artifact_headers(artifact: Artifact) -> dict[str, str]:
    metadata = artifact.metadata
    # Unknown for a direct upload: clients take its absence for 0. They take what they cannot parse for a miss.
    duration = metadata.duration_ms
    headers = {
        "x-artifact-duration": None if duration is None else str(duration),
        "x-artifact-tag": metadata.tag,
        "x-artifact-sha": metadata.sha,
        "x-artifact-dirty-hash": metadata.dirty_hash,
    }
    return {name: value for name, value in headers.items() if value is not None}


def query_entries(result: QueryResult) -> dict[str, Any]:
    """The reply to a query: null for a hash that is not stored, an error for one that could not be looked up."""
    entries: dict[str, Any] = {}
    for hash, artifact in result.found.items():
        entries[hash] = None if artifact is None else _query_entry(artifact)
    for hash in result.failed:
        entries[hash] = {"error": {"message": "The look-up failed. Ask for this hash again."}}
    return entries


def _query_entry(artifact: Artifact) -> dict[str, Any]:
    # The build client takes nothing but a whole number for the duration.
    entry: dict[str, Any] = {
        "size": artifact.size_bytes,
        "taskDurationMs": artifact.metadata.duration_ms or 0,
    }
    if artifact.metadata.tag is not None:
        entry["tag"] = artifact.metadata.tag
    return entry


def sent_on(url: str, **query: str) -> Response[None]:
    """302 to a page, with what it is told in its query, before any `#`. It may be secret: nothing keeps it."""
    page, hash_sign, fragment = url.partition("#")
    if query:
        page += ("&" if "?" in page else "?") + urlencode(query)
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return Response(status_code=302, headers={"Location": page + hash_sign + fragment, **headers})


def artifact_url(request: Request, hash: ArtifactHash, team_id: str | None) -> str:
    """Where the artifact can be fetched again: under the deployment's own address.

    A team stands in it by its id, whether the request or the key named it: slugs change, and other tokens know no key's
    team.
    """
    query = "" if team_id is None else f"?teamId={team_id}"
    return f"{base_url(request)}/v8/artifacts/{hash}{query}"
