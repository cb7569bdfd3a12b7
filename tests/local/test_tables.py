"""The tables: the engine's replies, and that no acknowledged write is lost."""

import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from local.tables.ministack import engine, expiry
from local.template import Table
from tests.local.stub_service import TABLE, StubCloud, eventually

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dynamodb(cloud: StubCloud) -> Any:
    return cloud.dynamodb()


def put(dynamodb: Any, name: str, **attributes: str) -> None:
    item = {key: {"S": value} for key, value in {"id": name, **attributes}.items()}
    dynamodb.put_item(TableName=TABLE, Item=item)


def get(dynamodb: Any, name: str) -> dict[str, Any] | None:
    reply = dynamodb.get_item(TableName=TABLE, Key={"id": {"S": name}}, ConsistentRead=True)
    return reply.get("Item")


def test_a_cancelled_transaction_returns_each_reason_and_the_item(dynamodb: Any) -> None:
    put(dynamodb, "taken", v="old")
    taken = {
        "TableName": TABLE,
        "Item": {"id": {"S": "taken"}},
        "ConditionExpression": "attribute_not_exists(id)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    free = {"TableName": TABLE, "Item": {"id": {"S": "free"}}}
    with pytest.raises(ClientError) as refused:
        dynamodb.transact_write_items(TransactItems=[{"Put": free}, {"Put": taken}])
    reasons = refused.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    assert reasons[1]["Item"] == {"id": {"S": "taken"}, "v": {"S": "old"}}
    assert get(dynamodb, "free") is None


def test_a_failed_conditional_write_returns_the_item(dynamodb: Any) -> None:
    put(dynamodb, "counted", n="1")
    with pytest.raises(ClientError) as refused:
        dynamodb.update_item(
            TableName=TABLE,
            Key={"id": {"S": "counted"}},
            UpdateExpression="SET n = :two",
            ConditionExpression="n = :two",
            ExpressionAttributeValues={":two": {"S": "2"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert dict(refused.value.response)["Item"] == {"id": {"S": "counted"}, "n": {"S": "1"}}


def test_a_rejected_batch_writes_nothing(dynamodb: Any) -> None:
    requests = [{"PutRequest": {"Item": {"id": {"S": "batch-1"}}}}, {"PutRequest": {"Item": {"id": {"N": "2"}}}}]
    with pytest.raises(ClientError):
        dynamodb.batch_write_item(RequestItems={TABLE: requests})
    assert get(dynamodb, "batch-1") is None


def test_operations_that_are_not_journalled_are_rejected(dynamodb: Any) -> None:
    with pytest.raises(ClientError, match="UnknownOperationException"):
        dynamodb.delete_table(TableName=TABLE)
    with pytest.raises(ClientError, match="UnknownOperationException"):
        dynamodb.execute_statement(Statement=f"INSERT INTO \"{TABLE}\" VALUE {{'id': 'x'}}")


def test_a_wrong_secret_is_rejected(cloud: StubCloud) -> None:
    environment = cloud.description["environment"]
    stranger = boto3.client(
        "dynamodb",
        endpoint_url=environment["AWS_ENDPOINT_URL_DYNAMODB"],
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="wrong",
    )
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        stranger.list_tables()
    unsigned = httpx.post(
        environment["AWS_ENDPOINT_URL_DYNAMODB"],
        headers={"x-amz-target": "DynamoDB_20120810.ListTables"},
        content=b"{}",
        trust_env=False,
    )
    assert unsigned.status_code == 400


def writer(cloud: StubCloud, number: int, acknowledged: dict[str, str], stop: threading.Event) -> None:
    """Put, count and transact until the server ends, and record only acknowledged writes."""
    dynamodb = cloud.dynamodb()
    try:
        for turn in itertools.count():
            if stop.is_set():
                return
            name, counter = f"w{number}-{turn % 7}", f"c{number}"
            put(dynamodb, name, v=str(turn))
            acknowledged[name] = str(turn)
            dynamodb.transact_write_items(
                TransactItems=[
                    {
                        "Update": {
                            "TableName": TABLE,
                            "Key": {"id": {"S": counter}},
                            "UpdateExpression": "SET v = :turn",
                            "ExpressionAttributeValues": {":turn": {"S": str(turn)}},
                        }
                    },
                    {"Put": {"TableName": TABLE, "Item": {"id": {"S": f"{counter}-{turn}"}}}},
                    {"Delete": {"TableName": TABLE, "Key": {"id": {"S": f"{counter}-{turn - 1}"}}}},
                ]
            )
            acknowledged[counter] = str(turn)
    except (BotoCoreError, ClientError):
        return


def check_nothing_lost(dynamodb: Any, acknowledged: dict[str, str]) -> None:
    assert len(acknowledged) > 20
    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE)
    items = {item["id"]["S"]: item for page in pages for item in page["Items"]}
    for name, turn in acknowledged.items():
        stored = int(items[name]["v"]["S"])
        # One later write may have been in flight.
        assert int(turn) <= stored <= int(turn) + 7, name
    for number in range(6):
        # A transaction is stored completely or not at all.
        last = items[f"c{number}"]["v"]["S"]
        assert [name for name in items if name.startswith(f"c{number}-")] == [f"c{number}-{last}"]


@pytest.mark.parametrize("victim", ["server process", "whole cloud"])
def test_no_acknowledged_write_is_lost_by_kill_9(tmp_path: Path, victim: str) -> None:
    cloud = StubCloud(tmp_path)
    acknowledged: dict[str, str] = {}
    stop = threading.Event()
    try:
        threads = [threading.Thread(target=writer, args=(cloud, number, acknowledged, stop)) for number in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        assert eventually(lambda: len(acknowledged) > 30)
        if victim == "server process":
            os.kill(cloud.child("local.tables"), signal.SIGKILL)
        else:
            cloud.kill()
        stop.set()
        for thread in threads:
            thread.join()
        if victim == "whole cloud":
            cloud.start()
        dynamodb = cloud.dynamodb()
        assert eventually(lambda: answers(dynamodb))
        check_nothing_lost(dynamodb, acknowledged)
    finally:
        stop.set()
        cloud.stop()


def answers(dynamodb: Any) -> bool:
    try:
        dynamodb.list_tables()
    except (BotoCoreError, ClientError):
        return False
    return True


def test_items_survive_a_change_of_the_tables_indexes(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path)
    try:
        put(cloud.dynamodb(), "a", colour="red")
        put(cloud.dynamodb(), "b", colour="blue")
        assert cloud.stop() == 0
        template = cloud.template.read_text()
        cloud.template.write_text(
            template.replace(
                "      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]\n",
                "      AttributeDefinitions: [{AttributeName: id, AttributeType: S},"
                " {AttributeName: colour, AttributeType: S}]\n"
                "      GlobalSecondaryIndexes: [{IndexName: by_colour, Projection: {ProjectionType: ALL},"
                " KeySchema: [{AttributeName: colour, KeyType: HASH}]}]\n",
            )
        )
        cloud.start()
        found = cloud.dynamodb().query(
            TableName=TABLE,
            IndexName="by_colour",
            KeyConditionExpression="colour = :c",
            ExpressionAttributeValues={":c": {"S": "blue"}},
        )
        assert [item["id"]["S"] for item in found["Items"]] == ["b"]
        # The items of a table that is no longer in the template are kept, and return with the table.
        cloud.stop()
        cloud.template.write_text(template.replace("ThingsTable:", "OtherTable:"))
        cloud.start()
        cloud.stop()
        cloud.template.write_text(template)
        cloud.start()
        assert get(cloud.dynamodb(), "a") == {"id": {"S": "a"}, "colour": {"S": "red"}}
    finally:
        cloud.stop()


def test_removes_items_past_their_time_to_live() -> None:
    table = Table(
        "ExpiringTable",
        {
            "TableName": f"expiring-{os.getpid()}",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        },
        ttl_attribute="expires_at",
    )
    engine.create_tables([table])
    for name, expires_at in (("old", {"N": "100"}), ("new", {"N": "300"}), ("text", {"S": "1"})):
        item = {"id": {"S": name}, "expires_at": expires_at}
        request = {"TableName": table.name, "Item": item}
        assert engine.run("PutItem", json.dumps(request).encode())[0] == 200
    due = [change.key["id"]["S"] for batch in expiry.expired([table], 200) for change in batch]
    assert due == ["old"]


def test_a_running_local_cloud_deletes_them(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, EXPIRY_SECONDS="1")
    try:
        for name, expires_at in (("passed", time.time() - 1), ("to come", time.time() + 3600)):
            item = {"id": {"S": name}, "expires_at": {"N": str(int(expires_at))}}
            cloud.dynamodb().put_item(TableName=TABLE, Item=item)
        assert eventually(lambda: get(cloud.dynamodb(), "passed") is None)
        assert get(cloud.dynamodb(), "to come")
    finally:
        cloud.stop()
