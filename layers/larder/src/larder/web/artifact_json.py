"""Stored artifacts on the wire, as their managers see them. Times are in milliseconds since 1970."""

from typing import Any

from larder.artifacts.models import Artifact, ArtifactPage, Writer
from larder.artifacts.retention import expires_at
from larder.audit.models import Entry
from larder.clock import to_ms
from larder.web.artifact_query import cursor_of


def artifact_json(artifact: Artifact) -> dict[str, Any]:
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


def artifacts_json(page: ArtifactPage) -> dict[str, Any]:
    return {
        "artifacts": [artifact_json(artifact) for artifact in page.artifacts],
        "pagination": {"count": len(page.artifacts), "next": cursor_of(page.following)},
    }


def removal_json(entry: Entry) -> dict[str, Any]:
    return {"removal": {"writer": entry.subject, "askedAt": to_ms(entry.at)}}


def _writer_json(writer: Writer) -> dict[str, Any]:
    """`id` is that of the key or session."""
    return {"id": writer.id, "userId": writer.user_id}
