"""What the emulator refuses by itself, and what it does not: the rehearsal is worth as much as that.

What is said here of the second kind is what `acting` makes up for. A release that closes a gap fails a test.
"""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from larder.settings import settings
from tests.conftest import SetOption
from tests.direct_uploads import offer
from tests.rehearsal.acting import Rehearsal
from tests.rehearsal.roles import Permission, roles
from tests.requests import Cloud

NO_RIGHTS = "GetOk"
"""A function that may do nothing but count requests."""


@pytest.fixture
def powerless(aws_in_memory: None, rehearsed: Rehearsal) -> Any:
    """Makes clients that have the keys of a function which may do nothing that is tried here."""
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
    ("s3", "delete_object", {"Bucket": "larder-artifacts-bucket", "Key": "artifacts/1"}),
    ("lambda", "invoke", {"FunctionName": "larder-send-account-email", "InvocationType": "DryRun"}),
    ("secretsmanager", "get_secret_value", {"SecretId": "SigningSecret"}),
    ("sesv2", "send_email", {"FromEmailAddress": "larder@acme.example", "Content": {}}),
    ("cloudwatch", "put_metric_data", {"Namespace": "Larder", "MetricData": [{"MetricName": "m"}]}),
    ("sqs", "send_message",
     {"QueueUrl": "https://sqs.eu-central-1.amazonaws.com/000000000000/larder-commit-upload-failures",
      "MessageBody": "{}"}),
]  # fmt: skip
ENFORCED = {{"sesv2": "ses"}.get(service, service) for service, _, _ in CALLS}
"""The services that the emulator was seen to refuse something of, as policies name them."""


@pytest.mark.parametrize(("service", "operation", "parameters"), CALLS)
def test_it_refuses_what_a_role_does_not_allow(
    powerless: Any, service: str, operation: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(powerless(service), operation)(**parameters)
    assert refused.value.response["Error"]["Code"] in (
        "AccessDenied",
        "AccessDeniedException",
        "403",
    )


def test_it_refuses_a_wrong_signature(aws_in_memory: None, rehearsed: Rehearsal) -> None:
    key_id, _, token = rehearsed.stack.keys_of(NO_RIGHTS)
    with pytest.raises(ClientError, match="signature"):
        rehearsed.stack.client("dynamodb", (key_id, "another secret", token)).list_tables()


# ------------------------------------------------------------------------------------ its gaps


def test_what_is_asked_here_are_the_services_and_conditions_of_the_template() -> None:
    """A permission of another service, or with another condition, needs a look at what the emulator makes of it."""
    held = [statement for role in roles().values() for _, statement in role.holders()]
    assert {statement.action.partition(":")[0] for statement in held} <= ENFORCED
    assert {statement.action for statement in held if statement.condition} == {"ses:SendEmail"}


def test_it_tells_anybody_that_an_object_is_missing_and_the_rehearsal_does_not(
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


def test_it_asks_ses_about_everything_and_the_rehearsal_about_the_sender(
    aws_in_memory: None, rehearsed: Rehearsal, option: SetOption
) -> None:
    option("email_sender", "larder@acme.example")
    for resource in ("identity/acme.example", "configuration-set/some"):
        assert rehearsed.may_send("SendAccountEmail", resource, "larder@acme.example")
        assert not rehearsed.may_send("SendAccountEmail", resource, "ceo@acme.example")
        assert not rehearsed.may_send(NO_RIGHTS, resource, "larder@acme.example")
