"""What botocore leaves to its callers."""

from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from larder import aws
from larder.errors import Throttled, TryAgain
from larder.settings import settings
from larder.teams.models import Role
from tests.faults import Answer, answering, error, refusing, reply, unreachable

KEY = {"owner": "team_a", "hash": "abc"}


@pytest.fixture
def table(aws_in_memory: None) -> str:
    return settings().artifacts_table


def test_keys_that_were_left_unprocessed_are_asked_for_again(table: str) -> None:
    aws.dynamodb().put_item(TableName=table, Item=aws.serialize(KEY))
    unprocessed = {table: {"Keys": [aws.serialize(KEY)], "ConsistentRead": True}}
    first = reply({"Responses": {table: []}, "UnprocessedKeys": unprocessed})
    with answering("dynamodb", "BatchGetItem", first, times=1):
        assert aws.batch_get({table: [KEY]}) == {table: [KEY]}


def test_keys_that_stay_unprocessed_are_an_error_and_not_a_miss(table: str) -> None:
    unprocessed = {table: {"Keys": [aws.serialize(KEY)], "ConsistentRead": True}}
    always = reply({"Responses": {table: []}, "UnprocessedKeys": unprocessed})
    with answering("dynamodb", "BatchGetItem", always), pytest.raises(TryAgain):
        aws.batch_get({table: [KEY]})


def test_a_busy_store_is_told_as_throttled(table: str) -> None:
    busy = error("ThrottlingException")
    with answering("dynamodb", "BatchGetItem", busy), pytest.raises(Throttled):
        aws.batch_get({table: [KEY]})


def test_a_store_in_trouble_is_told_as_try_again(table: str) -> None:
    trouble = error("InternalServerError", 500)
    with answering("dynamodb", "BatchGetItem", trouble), pytest.raises(TryAgain):
        aws.batch_get({table: [KEY]})


def test_a_store_that_cannot_be_reached_is_told_as_try_again(table: str) -> None:
    with unreachable("dynamodb", "BatchGetItem"), pytest.raises(TryAgain):
        aws.batch_get({table: [KEY]})


def new_item(table: str) -> list[dict[str, Any]]:
    unclaimed = {"ConditionExpression": "attribute_not_exists(pk)"}
    return [{"Put": {"TableName": table, "Item": aws.serialize(KEY), **unclaimed}}] * 2


def cancelled(*reasons: str) -> Answer:
    told = [{"Code": reason} for reason in reasons]
    return error("TransactionCanceledException", CancellationReasons=told)


BUSY_WITHIN = ["ThrottlingError", "ProvisionedThroughputExceeded"]


@pytest.mark.parametrize("reason", BUSY_WITHIN)
def test_a_transaction_that_meets_a_busy_table_is_no_failed_condition(
    table: str, reason: str
) -> None:
    """Its callers would take that for an address that has a user, or a slug that is taken."""
    busy = cancelled("None", reason)
    with answering("dynamodb", "TransactWriteItems", busy), pytest.raises(Throttled):
        aws.write_together(new_item(table))


@pytest.mark.parametrize("reason", BUSY_WITHIN)
def test_a_failed_condition_is_final_whatever_else_was_busy(table: str, reason: str) -> None:
    both = cancelled("ConditionalCheckFailed", reason)
    with answering("dynamodb", "TransactWriteItems", both):
        assert aws.write_together(new_item(table)) is False


def test_a_transaction_that_meets_a_busy_table_is_tried_three_times(table: str) -> None:
    body = {
        "__type": "TransactionCanceledException",
        "CancellationReasons": [{"Code": "ThrottlingError"}],
    }
    with refusing("dynamodb", "TransactWriteItems", 400, body) as tries, pytest.raises(Throttled):
        aws.write_together(new_item(table))
    assert len(tries) == 3


def test_a_transaction_that_is_still_under_way_is_told_as_throttled(table: str) -> None:
    under_way = error("TransactionInProgressException")
    with answering("dynamodb", "TransactWriteItems", under_way), pytest.raises(Throttled):
        aws.write_together(new_item(table))


def test_a_body_that_reaches_s3_too_late_is_told_as_try_again(aws_in_memory: None) -> None:
    bucket = settings().artifacts_bucket
    with answering("s3", "PutObject", error("RequestTimeout")), pytest.raises(TryAgain):
        aws.s3().put_object(Bucket=bucket, Key="artifacts/a", Body=b"a")


VALUES: list[Any] = [
    *("", "a", "ä\x00", Role.OWNER),
    *(0, 12, -3, 10**37),
    *(True, False),
    *([], ["a", 1, [None]], ("a", 1)),
    *({}, {"x": [False], "y": {"z": None}}),
    {"a", "ä"},
]


def _in_order(typed: dict[str, Any]) -> dict[str, Any]:
    """A set has no order, and boto3 gives it none."""
    return {kind: sorted(value) if kind == "SS" else value for kind, value in typed.items()}


def _name(value: Any) -> str:
    return "a set" if isinstance(value, set) else repr(value)


@pytest.mark.parametrize("value", VALUES, ids=_name)
def test_values_are_typed_as_boto3_types_them(value: Any) -> None:
    typed: Any = TypeSerializer().serialize(value)
    assert aws.serialize({"value": value}) == {"value": _in_order(typed)}
    assert aws.deserialize({"value": typed}) == {"value": TypeDeserializer().deserialize(typed)}


def test_values_come_back_as_they_were_put() -> None:
    item = {"s": "a", "n": 12, "b": True, "l": ["a", 1, None], "m": {"x": [False]}}
    assert aws.deserialize(aws.serialize({**item, "none": None})) == item


@pytest.mark.parametrize("value", [1.5, b"a", [1.5]], ids=repr)
def test_what_no_table_holds_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no table holds a "):
        aws.serialize({"value": value})


@pytest.mark.parametrize("typed", [{"B": b"a"}, {"NS": ["1"]}], ids=repr)
def test_what_no_table_holds_is_not_guessed_at(typed: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="no table holds a value of the type"):
        aws.deserialize({"value": typed})


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_presigned_url_signs_host_alone_and_ends(environment: None, method: str) -> None:
    url = aws.presign(method, "https://bucket.s3.eu-central-1.amazonaws.com/key", expires_s=60)
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in url
    assert "%2Feu-central-1%2Fs3%2Faws4_request" in url
    assert "X-Amz-SignedHeaders=host&" in url
    assert "X-Amz-Expires=60" in url
