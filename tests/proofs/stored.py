"""What lies in the tables and the bucket of a local cloud, read through the layer's own clients."""

import time
from datetime import datetime, timedelta
from pathlib import Path

from larder import aws
from larder.artifacts import service
from larder.settings import settings

DELIVERY_S = 60


def wait_for_events(data: Path) -> None:
    """Until every event of a finished object has been delivered."""
    deadline = time.monotonic() + DELIVERY_S
    while any((data / "events").glob("*.json")):
        assert time.monotonic() < deadline, "events of finished objects are not delivered"
        time.sleep(0.1)
    failed = data / "events" / "failed"
    assert not failed.exists(), f"events that always failed: {list(failed.iterdir())}"


def sweep_all(now: datetime) -> None:
    """As the schedule would: once when offers that never came are given up, and again when what they left may go."""
    for hours in (25, 26):
        report = service.sweep(now=now + timedelta(hours=hours))
        assert report.finished
        assert report.failed == 0


def index_sizes(owner: str) -> dict[str, int]:
    """Sizes of the artifacts in the owner's index."""
    pages = (
        aws.dynamodb()
        .get_paginator("query")
        .paginate(
            TableName=settings().artifacts_table,
            KeyConditionExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues=aws.serialize({":owner": owner}),
            ConsistentRead=True,
        )
    )
    items = [aws.deserialize(item) for page in pages for item in page["Items"]]
    return {item["hash"]: item["size_bytes"] for item in items if "#" not in item["hash"]}


def object_keys(owner: str = "") -> list[str]:
    """The keys of every object, or of one owner's."""
    pages = (
        aws.s3()
        .get_paginator("list_objects_v2")
        .paginate(Bucket=settings().artifacts_bucket, Prefix=f"artifacts/{owner}/" if owner else "")
    )
    return [listed["Key"] for page in pages for listed in page.get("Contents", [])]


def index_keys() -> list[tuple[str, str]]:
    """Owner and sort key of everything in the index."""
    pages = (
        aws.dynamodb()
        .get_paginator("scan")
        .paginate(TableName=settings().artifacts_table, ConsistentRead=True)
    )
    items = [aws.deserialize(item) for page in pages for item in page["Items"]]
    return [(item["owner"], item["hash"]) for item in items]
