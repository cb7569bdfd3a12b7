"""Replies of the cache API, as build clients read them."""

from typing import Literal, NotRequired, TypedDict

from larder.artifacts.models import Artifact, QueryResult
from larder.teams.models import CachingStatus


class CachingStatusJson(TypedDict):
    status: CachingStatus


class QueryEntryJson(TypedDict):
    size: int
    taskDurationMs: int
    tag: NotRequired[str]
    sha: NotRequired[str]
    dirtyHash: NotRequired[str]


class QueryErrorJson(TypedDict):
    message: Literal["The look-up failed. Ask for this hash again."]


class FailedQueryJson(TypedDict):
    """The hash could not be looked up. Query it again."""

    error: QueryErrorJson


QueryJson = dict[str, QueryEntryJson | FailedQueryJson | None]


def query_json(result: QueryResult) -> QueryJson:
    """By hash: null for one that is not stored, an error for one that could not be looked up."""
    entries: QueryJson = {}
    for hash, artifact in result.found.items():
        entries[hash] = None if artifact is None else _query_entry(artifact)
    for hash in result.failed:
        entries[hash] = {"error": {"message": "The look-up failed. Ask for this hash again."}}
    return entries


def _query_entry(artifact: Artifact) -> QueryEntryJson:
    metadata = artifact.metadata
    # The build client takes nothing but a whole number for the duration.
    entry: QueryEntryJson = {
        "size": artifact.size_bytes,
        "taskDurationMs": metadata.duration_ms or 0,
    }
    if metadata.tag is not None:
        entry["tag"] = metadata.tag
    if metadata.sha is not None:
        entry["sha"] = metadata.sha
    if metadata.dirty_hash is not None:
        entry["dirtyHash"] = metadata.dirty_hash
    return entry
