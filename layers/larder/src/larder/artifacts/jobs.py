"""Jobs for the functions RemoveArtifacts and CommitUpload, which run them asynchronously."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from larder import aws
from larder.artifacts.models import Upload
from larder.deadline import last_call
from larder.settings import settings


class JobKind(StrEnum):
    REMOVAL = "removal"
    """Carry out a removal, such as of all that a key, session or user wrote."""
    LEAST_RECENTLY_USED = "least_recently_used"
    """Evict the least recently used artifacts to free space in the quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalJob:
    """Artifacts of `owner` to delete. For `REMOVAL`, `target` says which (`selection`).

    Everything else is in the index, so that a job that runs twice or late does no harm.
    """

    kind: JobKind
    owner: str
    target: str | None = None


def hand_over(job: RemovalJob) -> None:
    """Start the function with one asynchronous invocation. Raises TryAgain."""
    start(settings().removal_function, asdict(job))


def hand_over_upload(upload: Upload, version: str) -> None:
    """Let CommitUpload publish or discard an object that is in the bucket, as S3's event does for direct uploads.

    Raises TryAgain.
    """
    stored = {"key": upload.object_key, "version-id": version}
    # The request ends because a store does not answer, perhaps after its deadline.
    with last_call():
        start(settings().commit_function, {"detail": {"object": stored}})


def start(function: str, event: Mapping[str, Any]) -> None:
    """Start a function with one asynchronous invocation. Raises TryAgain."""
    aws.lambda_().invoke(
        FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode()
    )


def parse_job(record: Mapping[str, Any]) -> RemovalJob:
    """Parse what `hand_over` sent. Raises KeyError, ValueError."""
    return RemovalJob(
        kind=JobKind(record["kind"]), owner=record["owner"], target=record.get("target")
    )
