"""The contents of the tables and the bucket of a local cloud, read with the layer's own clients."""

import time
from datetime import datetime, timedelta
from pathlib import Path

from larder import aws
from larder.artifacts import sweep
from larder.artifacts.models import Artifact
from larder.artifacts.repository import index
from larder.artifacts.repository.table import owner_of
from larder.settings import settings

DELIVERY_S = 60


def wait_for_events(data: Path, *, within_s: float = DELIVERY_S) -> None:
    """Wait until every event of a finished object has been delivered."""
    _wait_until_done(data / "events", "events of finished objects are not delivered", within_s)


def wait_for_jobs(data: Path, *, within_s: float = DELIVERY_S) -> None:
    """Wait until all background jobs of functions are done."""
    _wait_until_done(data / "invocations", "what was handed over is not done", within_s)


def _wait_until_done(folder: Path, otherwise: str, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while any(folder.glob("*.json")):
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
    failed = folder / "failed"
    assert not failed.exists(), f"always failed: {list(failed.iterdir())}"


def sweep_all(now: datetime) -> None:
    """Sweep as the schedule does: once when unused offers expire, and again when their remains can be deleted."""
    for hours in (25, 26):
        report = sweep.sweep(now=now + timedelta(hours=hours))
        assert report.finished
        assert report.failed == 0


def index_sizes(owner: str) -> dict[str, int]:
    """Sizes of the artifacts in the owner's index."""
    return {one.upload.index_key: one.size_bytes for one in index.stored_by(owner) if isinstance(one, Artifact)}


def object_keys(owner: str = "") -> list[str]:
    """The keys of all versions of all objects, or of one owner's objects."""
    return [key for key, _ in stored_versions(owner)]


def stored_versions(owner: str = "") -> list[tuple[str, int]]:
    """The key and size of all versions of all objects, or of one owner's objects."""
    pages = (
        aws.s3()
        .get_paginator("list_object_versions")
        .paginate(Bucket=settings().artifacts_bucket, Prefix=f"artifacts/{owner}/" if owner else "")
    )
    listed = [listed for page in pages for listed in page.get("Versions", [])]
    return [(one["Key"], one["Size"]) for one in listed]


def index_keys() -> list[tuple[str, str]]:
    """Owner and sort key of every item in the index."""
    pages = aws.dynamodb().get_paginator("scan").paginate(TableName=settings().artifacts_table, ConsistentRead=True)
    items = [aws.deserialize(item) for page in pages for item in page["Items"]]
    return [(owner_of(item["owner"]), item["hash"]) for item in items]
