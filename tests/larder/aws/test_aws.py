"""Errors, types and signatures that botocore leaves to its callers."""

from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from larder import aws
from larder.deadline import one_try
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.models import Role
from tests.faults import answering, error, refusing, unreachable

KEY = {"owner": "team_a", "hash": "abc"}


@pytest.fixture
def table(aws_in_memory: None) -> str:
    return settings().artifacts_table


def read(table: str) -> object:
    return aws.dynamodb().get_item(TableName=table, Key=aws.serialize(KEY))


def test_a_throttled_store_is_reported_as_try_again(table: str) -> None:
    busy = error("ThrottlingException")
    with answering("dynamodb", "GetItem", busy), pytest.raises(TryAgain):
        read(table)


def test_a_store_error_is_reported_as_try_again(table: str) -> None:
    trouble = error("InternalServerError", 500)
    with answering("dynamodb", "GetItem", trouble), pytest.raises(TryAgain):
        read(table)


def test_an_unreachable_store_is_reported_as_try_again(table: str) -> None:
    with unreachable("dynamodb", "GetItem"), pytest.raises(TryAgain):
        read(table)


def test_missing_permissions_are_reported_as_such_even_with_one_try(table: str) -> None:
    denied = {"__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException"}
    refused = pytest.raises(aws.ClientError, match="AccessDeniedException")
    with refusing("dynamodb", "GetItem", 400, denied), one_try(), refused:
        read(table)


def test_a_timeout_while_sending_a_body_to_s3_is_reported_as_try_again(aws_in_memory: None) -> None:
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
    b"\x00\xff",
]


def _in_order(typed: dict[str, Any]) -> dict[str, Any]:
    """Sort sets, because boto3 returns them in any order."""
    return {kind: sorted(value) if kind == "SS" else value for kind, value in typed.items()}


def _name(value: Any) -> str:
    return "a set" if isinstance(value, set) else repr(value)


@pytest.mark.parametrize("value", VALUES, ids=_name)
def test_values_are_typed_like_by_boto3(value: Any) -> None:
    typed: Any = TypeSerializer().serialize(value)
    assert aws.serialize({"value": value}) == {"value": _in_order(typed)}
    assert aws.deserialize({"value": typed}) == {"value": TypeDeserializer().deserialize(typed)}


def test_values_are_read_as_they_were_written() -> None:
    item = {"s": "a", "bytes": b"\xff", "n": 12, "b": True, "l": ["a", 1, None], "m": {"x": [False]}}
    assert aws.deserialize(aws.serialize({**item, "none": None})) == item


@pytest.mark.parametrize("value", [1.5, [1.5]], ids=repr)
def test_unsupported_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no table holds a "):
        aws.serialize({"value": value})


@pytest.mark.parametrize("typed", [{"BS": [b"a"]}, {"NS": ["1"]}], ids=repr)
def test_unsupported_stored_types_are_refused(typed: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="no table holds a value of the type"):
        aws.deserialize({"value": typed})


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_presigned_url_signs_only_the_host_and_expires(environment: None, method: str) -> None:
    url = aws.presign(method, "https://bucket.s3.eu-central-1.amazonaws.com/key", expires_s=60)
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in url
    assert "%2Feu-central-1%2Fs3%2Faws4_request" in url
    assert "X-Amz-SignedHeaders=host&" in url
    assert "X-Amz-Expires=60" in url
