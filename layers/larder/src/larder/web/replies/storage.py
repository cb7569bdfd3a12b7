"""What takes the space of a team or user, in replies."""

from typing import TypedDict

from larder.artifacts.records import AGES, Breakdown, Part, Seen
from larder.clock import Milliseconds, to_ms
from larder.teams.models import SHARED_SCOPE
from larder.usage.uploads import Stored
from larder.web.replies.artifacts import WriterJson, writer_json


class StoredJson(TypedDict):
    """`scopedBytes` is the part of `storedBytes` in own scopes of a protected team."""

    artifacts: int
    storedBytes: int
    scopedBytes: int


class AgeJson(StoredJson):
    """Artifacts that are younger than `days`, and not in the entry before. `days` is null for older ones."""

    days: int | None


class WriterPartJson(StoredJson):
    """`writer` is the id of a key or session, or of the rule of CI jobs. It is null if the writer is not known."""

    writer: str | None


class CiPartJson(StoredJson):
    """`ci` is null for artifacts that named no CI vendor."""

    ci: str | None


class NamedPartJson(StoredJson):
    """`name` is null for artifacts without one, and "…" for those of further names, after the first 500."""

    name: str | None


class LargeArtifactJson(TypedDict):
    hash: str
    scope: str
    size: int
    ci: str | None
    writer: WriterJson | None
    createdAt: Milliseconds


class BreakdownJson(StoredJson):
    """`neverRead` is null unless the deployment records uses, to evict artifacts.

    Repositories are those of the id tokens of jobs, and tasks and packages those of reported runs. A branch is that of
    the run that built the artifact, or of the token.
    """

    checkedAt: Milliseconds
    neverRead: StoredJson | None
    ages: list[AgeJson]
    writers: list[WriterPartJson]
    ci: list[CiPartJson]
    repositories: list[NamedPartJson]
    branches: list[NamedPartJson]
    packages: list[NamedPartJson]
    tasks: list[NamedPartJson]
    largest: list[LargeArtifactJson]


class StorageJson(TypedDict):
    """`storage` is null until a daily check was complete."""

    owner: str
    storage: BreakdownJson | None


def storage_json(owner: str, breakdown: Breakdown | None) -> StorageJson:
    return {"owner": owner, "storage": None if breakdown is None else _breakdown_json(breakdown)}


def _breakdown_json(breakdown: Breakdown) -> BreakdownJson:
    unread = breakdown.never_read
    return {
        "checkedAt": to_ms(breakdown.at),
        **_stored_json(breakdown.stored),
        "neverRead": None if unread is None else _stored_json(unread),
        "ages": [
            {"days": days, **_stored_json(stored)}
            for days, stored in zip((*AGES, None), breakdown.ages, strict=True)
        ],
        "writers": [_writer_part_json(part) for part in breakdown.writers],
        "ci": [_ci_part_json(part) for part in breakdown.vendors],
        "repositories": _named_json(breakdown, "repository"),
        "branches": _named_json(breakdown, "branch"),
        "packages": _named_json(breakdown, "package"),
        "tasks": _named_json(breakdown, "task"),
        "largest": [_large_json(artifact) for artifact in breakdown.largest],
    }


def _stored_json(stored: Stored) -> StoredJson:
    return {
        "artifacts": stored.artifacts,
        "storedBytes": stored.size_bytes,
        "scopedBytes": stored.scoped_bytes,
    }


def _writer_part_json(part: Part) -> WriterPartJson:
    return {"writer": part.name, **_stored_json(part.stored)}


def _ci_part_json(part: Part) -> CiPartJson:
    return {"ci": part.name, **_stored_json(part.stored)}


def _named_json(breakdown: Breakdown, field: str) -> list[NamedPartJson]:
    """The parts of a field of the origin. None are known of a check by an older version."""
    parts = breakdown.origins.get(field, ())
    return [{"name": part.name, **_stored_json(part.stored)} for part in parts]


def _large_json(artifact: Seen) -> LargeArtifactJson:
    return {
        "hash": artifact.hash,
        "scope": artifact.scope or SHARED_SCOPE,
        "size": artifact.size_bytes,
        "ci": artifact.ci,
        "writer": None if artifact.writer is None else writer_json(artifact.writer),
        "createdAt": to_ms(artifact.created_at),
    }
