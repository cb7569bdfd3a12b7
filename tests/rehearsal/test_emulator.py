"""The calls that the emulator refuses, and its gaps. The rehearsal is only as good as these.

`acting` closes the gaps. If a release of the emulator closes one, a test fails here.
"""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from larder.settings import settings
from tests.conftest import SetOption
from tests.direct_uploads import offer
from tests.permissions import allows, asks
from tests.rehearsal.acting import Rehearsal
from tests.rehearsal.roles import Permission, roles
from tests.requests import Cloud

NO_RIGHTS = "GetOk"
"""A function that may only count requests."""


@pytest.fixture
def powerless(aws_in_memory: None, rehearsed: Rehearsal) -> Any:
    """Creates clients with the keys of a function that has no permission for the calls of these tests."""
    keys = rehearsed.stack.keys_of(NO_RIGHTS)
    return lambda service: rehearsed.stack.client(service, keys)


KEY = {"pk": {"S": "1"}, "sk": {"S": "1"}}


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("dynamodb", "get_item", {"TableName": "larder-identity-table", "Key": KEY}),
    ("dynamodb", "put_item", {"TableName": "larder-identity-table", "Item": KEY}),
    ("dynamodb", "batch_get_item", {"RequestItems": {"larder-identity-table": {"Keys": [KEY]}}}),
    ("dynamodb", "transact_write_items",
     {"TransactItems": [{"Put": {"TableName": "larder-identity-table", "Item": KEY}}]}),
    ("dynamodb", "query",
     {"TableName": "larder-teams-table", "IndexName": "by_user",
      "KeyConditionExpression": "user_id = :u", "ExpressionAttributeValues": {":u": {"S": "1"}}}),
    ("s3", "get_object", {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1"}),
    ("s3", "head_object", {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1"}),
    ("s3", "put_object", {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1"}),
    ("s3", "get_object",
     {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1", "VersionId": "null"}),
    ("s3", "delete_object",
     {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1", "VersionId": "null"}),
    ("lambda", "invoke", {"FunctionName": "larder-send-account-email", "InvocationType": "DryRun"}),
    ("secretsmanager", "get_secret_value", {"SecretId": "SigningSecret"}),
    ("sesv2", "send_email", {"FromEmailAddress": "larder@acme.example", "Content": {}}),
    ("cloudwatch", "put_metric_data", {"Namespace": "Larder", "MetricData": [{"MetricName": "m"}]}),
    ("sqs", "send_message",
     {"QueueUrl": "https://sqs.eu-central-1.amazonaws.com/000000000000/larder-commit-upload-failures",
      "MessageBody": "{}"}),
]  # fmt: skip
ENFORCED = {{"sesv2": "ses"}.get(service, service) for service, _, _ in CALLS}
"""The services whose calls the emulator refuses in these tests, by their names in policies."""


@pytest.mark.parametrize(("service", "operation", "parameters"), CALLS)
def test_it_refuses_calls_that_a_role_does_not_allow(
    powerless: Any, service: str, operation: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(powerless(service), operation)(**parameters)
    assert refused.value.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException", "403")


def test_it_refuses_a_wrong_signature(aws_in_memory: None, rehearsed: Rehearsal) -> None:
    key_id, _, token = rehearsed.stack.keys_of(NO_RIGHTS)
    with pytest.raises(ClientError, match="signature"):
        rehearsed.stack.client("dynamodb", (key_id, "another secret", token)).list_tables()


# ------------------------------------------------------------------------------------ its gaps


def test_the_template_uses_only_services_and_conditions_tested_here() -> None:
    """Before using a permission of another service or with another condition, check that the emulator supports it."""
    held = [statement for role in roles().values() for _, statement in role.holders()]
    assert {statement.action.partition(":")[0] for statement in held} <= ENFORCED
    assert {statement.action for statement in held if statement.condition} == {
        "dynamodb:PutItem",
        "s3:ListBucket",
        "s3:ListBucketVersions",
        "ses:SendEmail",
    }


def test_the_emulator_ignores_partition_keys_and_the_guard_of_the_tests_does_not(
    aws_in_memory: None, rehearsed: Rehearsal
) -> None:
    client = rehearsed.stack.client("dynamodb", rehearsed.stack.keys_of("SendAccountEmail"))
    put = {"TableName": "larder-identity-table", "Item": {**KEY, "pk": {"S": "user#1"}}}
    client.put_item(**put)
    ((grant, context),) = asks("PutItem", put)
    assert not allows("SendAccountEmail", grant, context)


def test_the_emulator_reveals_missing_objects_to_all_and_the_rehearsal_does_not(
    cloud: Cloud, rehearsed: Rehearsal
) -> None:
    offer(cloud.send, "abc")
    listing = Permission("FetchArtifact", "s3:ListBucket", "ArtifactsBucket.Arn")
    with rehearsed.stack.without(listing):
        client = rehearsed.stack.client("s3", rehearsed.stack.keys_of("FetchArtifact"))
        with pytest.raises(ClientError, match="404"):
            client.head_object(Bucket=settings().artifacts_bucket, Key="artifacts/none")
        with pytest.raises(AssertionError, match="does not let FetchArtifact HeadObject"):
            cloud.send("GET", "/v8/artifacts/abc")
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404


def test_the_emulator_checks_ses_for_any_sender_and_the_rehearsal_for_the_given_one(
    aws_in_memory: None, rehearsed: Rehearsal, option: SetOption
) -> None:
    option("email_sender", "larder@acme.example")
    for resource in ("identity/acme.example", "configuration-set/some"):
        assert rehearsed.may_send("SendAccountEmail", resource, "larder@acme.example")
        assert not rehearsed.may_send("SendAccountEmail", resource, "ceo@acme.example")
        assert not rehearsed.may_send(NO_RIGHTS, resource, "larder@acme.example")
