"""Work of the function RemoveArtifacts as jobs: whoever asks for it does not wait for it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from larder import aws
from larder.settings import settings


class JobKind(StrEnum):
    WRITTEN = "written"
    """What a key, session or user wrote is to go."""
    LEAST_RECENTLY_USED = "least_recently_used"
    """The quota needs room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalJob:
    """Whose artifacts are to go, and which: for `WRITTEN`, by whom they were written, a key's, session's or user's id.

    What else is to be known stands in the index, so that a job that comes twice, or late, does no more than is asked.
    """

    kind: JobKind
    owner: str
    writer: str | None = None


def hand_over(job: RemovalJob) -> None:
    """One asynchronous invocation. Raises TryAgain."""
    aws.lambda_().invoke(
        FunctionName=settings().removal_function,
        InvocationType="Event",
        Payload=json.dumps(asdict(job)).encode(),
    )


def parse_job(record: Mapping[str, Any]) -> RemovalJob:
    """The job that `hand_over` gave. Raises KeyError, ValueError for anything else."""
    return RemovalJob(
        kind=JobKind(record["kind"]), owner=record["owner"], writer=record.get("writer")
    )
