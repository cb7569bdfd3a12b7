"""Removals as jobs for the function RemoveArtifacts: whoever asks for one does not wait for it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from larder import aws
from larder.settings import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalJob:
    """Whose artifacts are to go, and by whom they were written: a key's, session's or user's id.

    What else is to be known stands in the index, so that a job that comes twice, or late, does no more than is asked.
    """

    owner: str
    writer: str


def hand_over(job: RemovalJob) -> None:
    """One asynchronous invocation. Raises TryAgain."""
    aws.lambda_().invoke(
        FunctionName=settings().removal_function,
        InvocationType="Event",
        Payload=json.dumps(asdict(job)).encode(),
    )


def parse_job(record: Mapping[str, Any]) -> RemovalJob:
    """The job that `hand_over` gave. Raises KeyError, TypeError for anything else."""
    return RemovalJob(**record)
