"""Artifacts in replies to those who manage them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NotRequired, TypedDict

from larder.actor import Actor
from larder.artifacts.expiry import expires_at
from larder.artifacts.models import UNPROTECTED, Artifact, Contested, View
from larder.artifacts.selection import ArtifactPage
from larder.clock import Milliseconds, to_ms
from larder.web.queries.artifacts import cursor_of


class JobJson(TypedDict):
    """What a CI job built, as its id token said. `url` is the page of its run."""

    repository: str | None
    ref: str | None
    event: str | None
    url: str | None


class WriterJson(TypedDict):
    """What uploaded an artifact. `id` is the id of the key or session.

    `job` is there for the token of a CI job, in lists of artifacts, while the audit has it. `userId` is then its rule.
    """

    id: str
    userId: str | None
    job: NotRequired[JobJson]


class ContestedJson(TypedDict):
    """A different upload that was not stored, because the team keeps the first."""

    at: Milliseconds
    writer: WriterJson | None
    sha256: str | None


class ArtifactJson(TypedDict):
    """`scope`, `sha256` and `contested` are there if the query names a scope.

    `scope` is `shared` or the id of an own scope. `sha256` is null if the body did not pass through a function into the
    shared scope of a protected team. `hidden` is there if readers do not see the artifact: it was stored before the
    team was protected, or lacks the signature that the team requires.
    """

    hash: str
    scope: NotRequired[str]
    sha256: NotRequired[str | None]
    contested: NotRequired[ContestedJson | None]
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
    hidden: NotRequired[Literal[True]]


class CursorJson(TypedDict):
    """Send `next` as `cursor` to get the next page. It is null on the last page.

    A page can have fewer artifacts than `limit`, even none, without being the last. `read` is how many artifacts Larder
    read for this page; a search reads 2,000 at most.
    """

    count: int
    next: str | None
    read: int


class ArtifactsJson(TypedDict):
    artifacts: list[ArtifactJson]
    pagination: CursorJson


Jobs = Mapping[str, Mapping[str, str]]
"""What is known of CI jobs, by the ids of their keys."""

_NO_JOBS: Jobs = {}


def writers_of(artifacts: Iterable[Artifact]) -> Iterator[Actor | None]:
    """Those of the artifacts, and of the uploads that contest them."""
    for artifact in artifacts:
        yield artifact.writer
        yield artifact.contested.writer if artifact.contested else None


def artifact_json(
    artifact: Artifact, *, with_scope: bool, view: View = UNPROTECTED, jobs: Jobs = _NO_JOBS
) -> ArtifactJson:
    metadata = artifact.metadata
    body: ArtifactJson = {
        "hash": artifact.upload.hash,
        "size": artifact.size_bytes,
        "taskDurationMs": metadata.duration_ms,
        "tag": metadata.tag,
        "sha": metadata.sha,
        "dirtyHash": metadata.dirty_hash,
        "ci": metadata.ci,
        "interactive": metadata.interactive,
        "writer": None if artifact.writer is None else writer_json(artifact.writer, jobs),
        "createdAt": to_ms(artifact.created_at),
        "expiresAt": to_ms(expires_at(artifact)),
        "lastUsedAt": None if artifact.last_used_at is None else to_ms(artifact.last_used_at),
    }
    if not view.shows(artifact):
        body["hidden"] = True
    if with_scope:
        body["scope"] = artifact.upload.scope_name
        body["sha256"] = artifact.sha256
        body["contested"] = _contested_json(artifact.contested, jobs)
    return body


def artifacts_json(
    page: ArtifactPage, *, with_scope: bool, view: View = UNPROTECTED, jobs: Jobs = _NO_JOBS
) -> ArtifactsJson:
    return {
        "artifacts": [
            artifact_json(each, with_scope=with_scope, view=view, jobs=jobs)
            for each in page.artifacts
        ],
        "pagination": {
            "count": len(page.artifacts),
            "next": cursor_of(page.following),
            "read": page.read,
        },
    }


def _contested_json(contested: Contested | None, jobs: Jobs) -> ContestedJson | None:
    if contested is None:
        return None
    return {
        "at": to_ms(contested.at),
        "writer": None if contested.writer is None else writer_json(contested.writer, jobs),
        "sha256": contested.sha256,
    }


def writer_json(writer: Actor, jobs: Jobs = _NO_JOBS) -> WriterJson:
    body: WriterJson = {"id": writer.credential_id, "userId": writer.holder_id}
    job = jobs.get(writer.credential_id)
    if job is not None:
        body["job"] = {
            "repository": job.get("repository"),
            "ref": job.get("ref"),
            "event": job.get("event"),
            "url": job.get("url"),
        }
    return body
