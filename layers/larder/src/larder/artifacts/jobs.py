"""Jobs for the function RemoveArtifacts, which runs them asynchronously."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from larder import aws
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


def start(function: str, job: Mapping[str, Any]) -> None:
    """Start a function with one asynchronous invocation. Raises TryAgain."""
    aws.lambda_().invoke(
        FunctionName=function, InvocationType="Event", Payload=json.dumps(job).encode()
    )


def parse_job(record: Mapping[str, Any]) -> RemovalJob:
    """Parse what `hand_over` sent. Raises KeyError, ValueError."""
    return RemovalJob(
        kind=JobKind(record["kind"]), owner=record["owner"], target=record.get("target")
    )
