"""Tables, bucket and signing secret as plain data, copied from the in-memory cloud and back."""

import base64
import json
from contextlib import nullcontext
from datetime import datetime
from typing import Any

import time_machine

from larder import aws
from larder.artifacts.models import NULL_VERSION
from larder.aws import boto
from larder.settings import settings
from tests.default_template import template
from tests.direct_uploads import keeping_no_versions

Stored = dict[str, Any]
"""`tables`: items in DynamoDB's own JSON by logical id; `objects` of the bucket; `signing_secret`."""


def taken() -> Stored:
    return {
        "tables": {table.logical_id: _items(table.name) for table in template().tables},
        "objects": _objects(),
        "signing_secret": aws.read_secret(settings().signing_secret)[0],
    }


def put_back(stored: Stored) -> None:
    """Add the data to the in-memory cloud. Skips tables that no longer exist."""
    versions = {}
    for one in stored["objects"]:
        # The buckets of releases without versions become a bucket with versions.
        has_version = one.get("version", NULL_VERSION) != NULL_VERSION
        with nullcontext() if has_version else keeping_no_versions():
            version = _put_object(one)
        if has_version:
            # S3 chooses the id of a version, so items get the new one.
            versions[one["version"]] = version
    for table in template().tables:
        for item in stored["tables"].get(table.logical_id, []):
            named = item.get("version", {}).get("S")
            renamed = {"version": {"S": versions[named]}} if named in versions else {}
            aws.dynamodb().put_item(TableName=table.name, Item={**item, **renamed})
    aws.write_secret(settings().signing_secret, stored["signing_secret"])


def _put_object(one: dict[str, Any]) -> str:
    """Returns the version."""
    # For an upload without an index item, the time of storing in S3 is its start time.
    with time_machine.travel(datetime.fromisoformat(one["stored_at"])):
        stored = aws.s3().put_object(
            Bucket=settings().artifacts_bucket,
            Key=one["key"],
            Body=base64.b64decode(one["body"]),
            ContentType=one["content_type"],
            Metadata=one["metadata"],
        )
    return stored.get("VersionId", NULL_VERSION)


def empty(logical_id: str) -> None:
    """Delete every item of one table."""
    (table,) = (one for one in template().tables if one.logical_id == logical_id)
    names = [one["AttributeName"] for one in table.create_table["KeySchema"]]
    for item in _items(table.name):
        key = {name: item[name] for name in names}
        aws.dynamodb().delete_item(TableName=table.name, Key=key)


def _items(table: str) -> list[Any]:
    pages = aws.dynamodb().get_paginator("scan").paginate(TableName=table)
    items = [item for page in pages for item in page["Items"]]
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def _objects() -> list[dict[str, Any]]:
    bucket = settings().artifacts_bucket
    found = []
    for listed in aws.s3().list_objects_v2(Bucket=bucket).get("Contents", []):
        stored = boto.client("s3").get_object(Bucket=bucket, Key=listed["Key"])
        found.append(
            {
                "key": listed["Key"],
                "version": stored.get("VersionId", NULL_VERSION),
                "body": base64.b64encode(stored["Body"].read()).decode(),
                "content_type": stored["ContentType"],
                "stored_at": stored["LastModified"].isoformat(),
                "metadata": stored["Metadata"],
            }
        )
    return found
