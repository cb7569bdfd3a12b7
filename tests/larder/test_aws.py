"""What botocore leaves to its callers."""

from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from larder import aws
from larder.errors import Throttled, TryAgain
from larder.settings import settings
from larder.teams.models import Role
from tests.faults import answering, error, unreachable

KEY = {"owner": "team_a", "hash": "abc"}


@pytest.fixture
def table(aws_in_memory: None) -> str:
    return settings().artifacts_table


def read(table: str) -> object:
    return aws.dynamodb().get_item(TableName=table, Key=aws.serialize(KEY))


def test_a_busy_store_is_told_as_throttled(table: str) -> None:
    busy = error("ThrottlingException")
    with answering("dynamodb", "GetItem", busy), pytest.raises(Throttled):
        read(table)


def test_a_store_in_trouble_is_told_as_try_again(table: str) -> None:
    trouble = error("InternalServerError", 500)
    with answering("dynamodb", "GetItem", trouble), pytest.raises(TryAgain):
        read(table)


def test_a_store_that_cannot_be_reached_is_told_as_try_again(table: str) -> None:
    with unreachable("dynamodb", "GetItem"), pytest.raises(TryAgain):
        read(table)


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
