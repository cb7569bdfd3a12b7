"""The differences between the engines. All other tests of the local cloud apply to both.

docs/architecture.md has the list.
"""

import json
import re
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.data_folder import DYNAMODB_LOCAL
from tests.local.stub_service import TABLE, StubCloud, eventually
from tests.local.test_serve import serve

LARGE_ITEMS = 45
LARGE_BYTES = 390_000
"""This many exceed BatchGetItem's limit of 16 MB."""

REFUSED_BY_AWS: dict[str, dict[str, Any]] = {
    "one path twice": {"UpdateExpression": "SET n = :one, n = :one"},
    "a path and one inside it": {"UpdateExpression": "SET m.a = :one, m = :one"},
    "an attribute added to and set": {"UpdateExpression": "ADD n :one SET n = :one"},
    "an attribute compared with itself": {
        "UpdateExpression": "SET n = :one",
        "ConditionExpression": "n = n",
    },
}


def is_aws_engine(cloud: StubCloud) -> bool:
    return bool(json.loads((cloud.data / "local.json").read_text())["engine"] == DYNAMODB_LOCAL)


@pytest.mark.parametrize("name", REFUSED_BY_AWS)
def test_only_dynamodb_local_rejects_an_update_that_aws_rejects(
    name: str, cloud: StubCloud
) -> None:
    dynamodb, key = cloud.dynamodb(), {"id": {"S": f"update: {name}"}}
    item = {**key, "n": {"N": "1"}, "m": {"M": {"a": {"N": "1"}}}}
    dynamodb.put_item(TableName=TABLE, Item=item)
    update = {
        "TableName": TABLE,
        "Key": key,
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        **REFUSED_BY_AWS[name],
    }
    if is_aws_engine(cloud):
        with pytest.raises(ClientError, match="ValidationException"):
            dynamodb.update_item(**update)
        assert dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True)["Item"] == item
    else:
        dynamodb.update_item(**update)


def test_only_dynamodb_local_rejects_a_filter_on_a_key(cloud: StubCloud) -> None:
    query = {
        "TableName": TABLE,
        "KeyConditionExpression": "id = :id",
        "FilterExpression": "id = :id",
        "ExpressionAttributeValues": {":id": {"S": "filtered"}},
    }
    if is_aws_engine(cloud):
        with pytest.raises(ClientError, match="only contain non-primary key attributes"):
            cloud.dynamodb().query(**query)
    else:
        assert cloud.dynamodb().query(**query)["Count"] == 0


def test_only_dynamodb_local_reports_the_cost_of_large_reads_and_ends_a_batch_at_16_mb(
    cloud: StubCloud,
) -> None:
    dynamodb = cloud.dynamodb()
    keys = [{"id": {"S": f"large-{number}"}} for number in range(LARGE_ITEMS)]
    for key in keys:
        dynamodb.put_item(TableName=TABLE, Item={**key, "v": {"S": "x" * LARGE_BYTES}})
    read = dynamodb.get_item(
        TableName=TABLE, Key=keys[0], ConsistentRead=True, ReturnConsumedCapacity="TOTAL"
    )
    batch = dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    found, left = len(batch["Responses"][TABLE]), batch["UnprocessedKeys"]
    if is_aws_engine(cloud):
        assert read["ConsumedCapacity"]["CapacityUnits"] == -(-LARGE_BYTES // 4096)
        assert 0 < found == LARGE_ITEMS - len(left[TABLE]["Keys"]) < LARGE_ITEMS
    else:
        assert read["ConsumedCapacity"]["CapacityUnits"] == 1
        assert (found, left) == (LARGE_ITEMS, {})


def test_requests_that_bypass_the_front_find_no_tables(cloud: StubCloud) -> None:
    if not is_aws_engine(cloud):
        pytest.skip(
            "ministack runs in the process of its front: there is nothing behind it to reach"
        )
    started = (cloud.data / "logs" / "dynamodb.log").read_text()
    port = re.findall(r"^Port:\s+(\d+)", started, re.MULTILINE)[-1]
    environment = cloud.description["environment"]
    behind = boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    assert TABLE in cloud.dynamodb().list_tables()["TableNames"]
    assert behind.list_tables()["TableNames"] == []


def test_expired_items_are_deleted(cloud: StubCloud) -> None:
    dynamodb, now = cloud.dynamodb(), int(time.time())
    for name, expires_at in (("passed", now - 1), ("to come", now + 3600)):
        item = {"id": {"S": name}, "expires_at": {"N": str(expires_at)}}
        dynamodb.put_item(TableName=TABLE, Item=item)

    def there(name: str) -> bool:
        reply = dynamodb.get_item(TableName=TABLE, Key={"id": {"S": name}}, ConsistentRead=True)
        return "Item" in reply

    assert eventually(lambda: not there("passed"), 90)
    assert there("to come")


def test_a_folder_keeps_its_engine(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path / "own")
    assert cloud.stop() == 0
    used, other = "ministack", DYNAMODB_LOCAL
    if is_aws_engine(cloud):
        used, other = other, used
    refused = serve(tmp_path, ENGINE=other, PORT="0", DATA=str(cloud.data))
    assert refused.returncode == 1
    assert f"use {used}: start with ENGINE={used}, or choose another folder" in refused.stderr
