"""The inputs of reported runs: one object for each run in the bucket of the artifacts, compressed JSON.

Only this module reads and writes them. docs/decisions/usage.md has the reasons.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from larder import aws
from larder.clock import from_ms, to_iso_date
from larder.settings import settings
from larder.teams.models import SHARED_SCOPE
from larder.why.models import MAX_UNPACKED, WithInputs

PREFIX = "inputs/"

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_LEVEL = 6


def packed(report: Mapping[str, Any]) -> bytes:
    """The content of an object."""
    text = json.dumps(report, separators=(",", ":")).encode()
    return gzip.compress(text, _LEVEL, mtime=0)


def put(owner: str, run: WithInputs, content: bytes) -> None:
    aws.s3().put_object(
        Bucket=settings().artifacts_bucket,
        Key=_key(owner, run),
        Body=content,
        ContentType="application/gzip",
    )


def get(
    owner: str, run: WithInputs, *, admit: Callable[[int], object] | None = None
) -> Mapping[str, Any] | None:
    """The report of a run. None if it has no object any more, or an object that is damaged.

    `admit` is called with the bytes of its JSON before that is parsed. What it raises is passed on.
    """
    try:
        reply = aws.s3().get_object(Bucket=settings().artifacts_bucket, Key=_key(owner, run))
        content = reply["Body"].read()
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    try:
        text = zlib.decompressobj(31).decompress(content, MAX_UNPACKED)
        if admit is not None:
            admit(len(text))
        report: Mapping[str, Any] = json.loads(text)
    except (zlib.error, ValueError):
        return None
    return report


def delete(owner: str, run: WithInputs) -> None:
    _delete_versions(_key(owner, run), lambda: True)


def delete_all(owner: str, has_time: Callable[[], bool]) -> bool:
    """Delete the objects of an owner. False if time ran out."""
    return _delete_versions(f"{PREFIX}{owner}/", has_time)


def _delete_versions(prefix: str, has_time: Callable[[], bool]) -> bool:
    bucket = settings().artifacts_bucket
    pages = aws.s3().get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for listed in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            if not has_time():
                return False
            aws.s3().delete_object(Bucket=bucket, Key=listed["Key"], VersionId=listed["VersionId"])
    return True


def _key(owner: str, run: WithInputs) -> str:
    started_at, _, id = run.place.partition("#")
    day = to_iso_date(from_ms(int(started_at, 16)).date())
    return f"{PREFIX}{owner}/{run.scope or SHARED_SCOPE}/{day}/{id}-{run.inputs}"
