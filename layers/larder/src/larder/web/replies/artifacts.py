"""Artifacts in replies to those who manage them."""

from typing import TypedDict

from larder.actor import Actor
from larder.artifacts.expiry import expires_at
from larder.artifacts.models import Artifact, ArtifactPage
from larder.audit.models import Entry
from larder.clock import Milliseconds, to_ms
from larder.web.queries.artifacts import cursor_of


class WriterJson(TypedDict):
    """What uploaded an artifact. `id` is the id of the key or session."""

    id: str
    userId: str | None


class ArtifactJson(TypedDict):
    hash: str
    size: int
    taskDurationMs: int | None
    tag: str | None
    sha: str | None
    dirtyHash: str | None
    ci: str | None
    interactive: bool | None
    writer: WriterJson | None
    createdAt: Milliseconds
    expiresAt: Milliseconds
    lastUsedAt: Milliseconds | None


class CursorJson(TypedDict):
    """Send `next` as `cursor` to get the next page. It is null on the last page."""

    count: int
    next: str | None


class ArtifactsJson(TypedDict):
    artifacts: list[ArtifactJson]
    pagination: CursorJson


class RemovalJson(TypedDict):
    writer: str
    askedAt: Milliseconds


class AcceptedRemovalJson(TypedDict):
    removal: RemovalJson


def artifact_json(artifact: Artifact) -> ArtifactJson:
    metadata = artifact.metadata
    return {
        "hash": artifact.upload.hash,
        "size": artifact.size_bytes,
        "taskDurationMs": metadata.duration_ms,
        "tag": metadata.tag,
        "sha": metadata.sha,
        "dirtyHash": metadata.dirty_hash,
        "ci": metadata.ci,
        "interactive": metadata.interactive,
        "writer": None if artifact.writer is None else _writer_json(artifact.writer),
        "createdAt": to_ms(artifact.created_at),
        "expiresAt": to_ms(expires_at(artifact)),
        "lastUsedAt": None if artifact.last_used_at is None else to_ms(artifact.last_used_at),
    }


def artifacts_json(page: ArtifactPage) -> ArtifactsJson:
    return {
        "artifacts": [artifact_json(artifact) for artifact in page.artifacts],
        "pagination": {"count": len(page.artifacts), "next": cursor_of(page.following)},
    }


def removal_json(entry: Entry) -> AcceptedRemovalJson:
    return {"removal": {"writer": entry.subject, "askedAt": to_ms(entry.at)}}


def _writer_json(writer: Actor) -> WriterJson:
    return {"id": writer.credential_id, "userId": writer.user_id}
