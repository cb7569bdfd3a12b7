"""`make deploy` with ExistingBucket: what the bucket has to be like, and the commands for its owner."""

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import click
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from moto.s3.models import s3_backends

from larder_cli.deploy.existing_bucket import Bucket, check
from local.template import REGION
from tests.deploying import commands_in, obey
from tests.hooks import hooked
from tests.tools.buckets import ACCOUNT, NAME, empty_bucket
from tools.release.package import ROOT

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OPTIONS = {
    "KmsKeyArn": "",
    "RetentionDays": "30",
    "RunRetentionDays": "30",
    "Alarms": "true",
    "AlarmTrafficGigabytes": "0",
}


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with empty_bucket() as made:
        made.s3.meta.events.register("after-call.s3.GetBucketNotificationConfiguration", _with_events)
        yield made


def _with_events(parsed: dict[str, Any], **_: object) -> None:
    """Return whether the events go to EventBridge, as S3 does. moto keeps it and does not return it."""
    stored = s3_backends[ACCOUNT]["aws"].buckets[NAME].notification_configuration
    if stored is not None and stored.event_bridge is not None:
        parsed["EventBridgeConfiguration"] = {}


@pytest.fixture
def ready(bucket: Bucket) -> Bucket:
    """The bucket after its owner has done what `make deploy` says."""
    obey(bucket.s3, refusal(bucket))
    return bucket


def check_bucket(bucket: Bucket, **options: str) -> None:
    check(bucket, {**OPTIONS, **options}, is_used=False, takes_used=False)


def refusal(bucket: Bucket, **options: str) -> str:
    with pytest.raises(click.ClickException) as refused:
        check_bucket(bucket, **options)
    return refused.value.message


def lifecycle(bucket: Bucket, *rules: dict[str, Any]) -> None:
    """Add rules to those of the bucket."""
    kept = bucket.read("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration")
    bucket.s3.put_bucket_lifecycle_configuration(
        Bucket=NAME, LifecycleConfiguration={"Rules": [*kept.get("Rules", []), *rules]}
    )


def test_a_new_bucket_is_refused_with_each_missing_setting_and_its_commands_suffice(bucket: Bucket) -> None:
    message = refusal(bucket)
    for text in (
        "does not block all public access",
        "can have access lists",
        "keeps no versions",
        "does not send its events to EventBridge",
        "no statement that refuses all requests without TLS",
        "no lifecycle rule deletes all versions under artifacts/",
    ):
        assert text in message
    assert len(commands_in(message)) == 6
    obey(bucket.s3, message)
    check_bucket(bucket)


def test_the_lines_in_the_documentation_suffice(bucket: Bucket) -> None:
    section = (ROOT / "docs" / "organization.md").read_text().partition("## Use an existing bucket")
    lines = section[2].partition("bucket=acme-build-cache\n")[2].partition("```")[0]
    one_each = re.sub(r"\\?\n(?! *aws )", " ", lines)
    obey(bucket.s3, one_each.replace("'$bucket'", NAME).replace("$bucket", NAME))
    check_bucket(bucket)


def test_every_call_names_the_account_that_has_to_own_the_bucket(ready: Bucket) -> None:
    owners = set()

    def note(params: dict[str, Any], **_: object) -> None:
        owners.add(params["headers"].get("x-amz-expected-bucket-owner"))

    with hooked("before-call", note, ready.s3):
        check_bucket(ready, AlarmTrafficGigabytes="0")
    assert owners == {ACCOUNT}


def test_a_bucket_that_does_not_exist_is_refused(bucket: Bucket) -> None:
    missing = Bucket(bucket.s3, "no-such-bucket", ACCOUNT, REGION, "aws")
    assert refusal(missing) == "ExistingBucket: there is no bucket no-such-bucket"


def test_a_bucket_in_another_region_is_refused(bucket: Bucket) -> None:
    elsewhere = Bucket(bucket.s3, NAME, ACCOUNT, "eu-west-1", "aws")
    message = refusal(elsewhere)
    assert f"{NAME} is in {REGION}, and the stack in eu-west-1" in message
    bucket.s3.create_bucket(Bucket="acme-eu", CreateBucketConfiguration={"LocationConstraint": "EU"})
    assert "not ready" in refusal(Bucket(bucket.s3, "acme-eu", ACCOUNT, "eu-west-1", "aws"))


# What the owner has already ------------------------------------------------------------------------


def test_the_commands_keep_what_the_owner_has(bucket: Bucket) -> None:
    topic = {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:logs", "Events": ["s3:ObjectCreated:*"]}
    boto3.client("sns", region_name=REGION).create_topic(Name="logs")
    bucket.s3.put_bucket_notification_configuration(
        Bucket=NAME, NotificationConfiguration={"TopicConfigurations": [{"Id": "logs", **topic}]}
    )
    statement = {
        "Sid": "Audit",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{NAME}/logs/*",
    }
    policy = {"Version": "2012-10-17", "Statement": statement}
    bucket.s3.put_bucket_policy(Bucket=NAME, Policy=json.dumps(policy))
    rule = {"ID": "logs", "Status": "Enabled", "Prefix": "logs/", "Expiration": {"Days": 7}}
    lifecycle(bucket, rule)
    obey(bucket.s3, refusal(bucket))
    check_bucket(bucket)
    (kept,) = bucket.read("get_bucket_notification_configuration")["TopicConfigurations"]
    assert (kept["Id"], kept["TopicArn"]) == ("logs", topic["TopicArn"])
    assert json.loads(bucket.read("get_bucket_policy")["Policy"])["Statement"][0] == statement
    first, *others = bucket.read("get_bucket_lifecycle_configuration")["Rules"]
    assert (first["ID"], first["Filter"], first["Expiration"]) == ("logs", {"Prefix": "logs/"}, {"Days": 7})
    assert {rule["Filter"]["Prefix"] for rule in others} == {"artifacts/", "inputs/"}


# The policy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "suffices"),
    [
        ({}, True),
        ({"Resource": [f"arn:aws:s3:::{NAME}/artifacts/*"]}, True),
        ({"Effect": "Allow"}, False),
        ({"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}}, False),
        ({"Action": "s3:PutObject"}, False),
        ({"Resource": f"arn:aws:s3:::{NAME}/logs/*"}, False),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, False),
        (
            {
                "Condition": {
                    "Bool": {"aws:SecureTransport": "false"},
                    "StringEquals": {"aws:PrincipalOrgID": "o-1234567890"},
                }
            },
            False,
        ),
    ],
)
def test_the_policy_has_to_refuse_every_request_without_tls(
    ready: Bucket, change: dict[str, Any], suffices: bool
) -> None:
    (statement,) = json.loads(ready.read("get_bucket_policy")["Policy"])["Statement"]
    policy = {"Version": "2012-10-17", "Statement": [{**statement, **change}]}
    ready.s3.put_bucket_policy(Bucket=NAME, Policy=json.dumps(policy))
    if suffices:
        check_bucket(ready)
    else:
        assert "no statement that refuses all requests without TLS" in refusal(ready)


def test_with_networks_the_policy_has_to_refuse_presigned_urls_from_elsewhere(bucket: Bucket) -> None:
    networks = "203.0.113.0/24,2001:db8::/32"
    message = refusal(bucket, AllowedNetworks=networks)
    assert "refuses all requests without TLS and all presigned URLs outside of AllowedNetworks" in message
    obey(bucket.s3, message)
    check_bucket(bucket, AllowedNetworks=networks)
    # Other networks replace the statement, and none leave it.
    message = refusal(bucket, AllowedNetworks="203.0.113.0/24")
    assert "refuses all presigned URLs outside of AllowedNetworks" in message
    obey(bucket.s3, message)
    check_bucket(bucket, AllowedNetworks="203.0.113.0/24")
    check_bucket(bucket)
    statements = json.loads(bucket.read("get_bucket_policy")["Policy"])["Statement"]
    assert [statement["Sid"] for statement in statements] == ["TlsOnly", "AllowedNetworks"]


# Versions ---------------------------------------------------------------------------------------


def test_a_bucket_that_locks_new_objects_is_refused(bucket: Bucket) -> None:
    name = "acme-locked"
    bucket.s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    locked = Bucket(bucket.s3, name, ACCOUNT, REGION, "aws")
    assert "locks new objects" not in refusal(locked)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    bucket.s3.put_object_lock_configuration(
        Bucket=name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    assert "it locks new objects" in refusal(locked)


# The key ----------------------------------------------------------------------------------------


def encrypt(bucket: Bucket, key: str) -> None:
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    bucket.s3.put_bucket_encryption(
        Bucket=NAME, ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": by_default}]}
    )


def test_with_a_key_of_yours_the_bucket_has_to_use_it(ready: Bucket) -> None:
    message = refusal(ready, KmsKeyArn=KEY)
    assert "it does not encrypt with KmsKeyArn" in message
    obey(ready.s3, message)
    check_bucket(ready, KmsKeyArn=KEY)
    encrypt(ready, KEY.rpartition("/")[2])
    check_bucket(ready, KmsKeyArn=KEY)


def test_a_bucket_with_a_key_that_the_functions_cannot_use_is_refused(ready: Bucket) -> None:
    encrypt(ready, KEY)
    message = refusal(ready)
    assert f"it encrypts with the key {KEY}, which is not KmsKeyArn" in message
    obey(ready.s3, message)
    check_bucket(ready)


def test_the_key_of_s3_needs_no_option(ready: Bucket) -> None:
    encrypt(ready, f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/aws/s3")
    check_bucket(ready)


# Lifecycle rules --------------------------------------------------------------------------------


def rule(**parts: Any) -> dict[str, Any]:
    return {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": ""}, **parts}


@pytest.mark.parametrize(
    "parts",
    [
        {"Expiration": {"Days": 29}},
        {"Expiration": {"Date": "2030-01-01T00:00:00Z"}},
        {"NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
        {"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]},
        {"NoncurrentVersionTransitions": [{"NoncurrentDays": 1, "StorageClass": "DEEP_ARCHIVE"}]},
        {"Expiration": {"Days": 1}, "Filter": {"Prefix": "artifacts/team_1/"}},
        {"Expiration": {"Days": 1}, "Filter": {"Prefix": "art"}},
        {"Expiration": {"Days": 1}, "Filter": {"ObjectSizeGreaterThan": 1000}},
    ],
)
def test_a_rule_that_deletes_or_archives_artifacts_too_early_is_refused_by_name(
    ready: Bucket, parts: dict[str, Any]
) -> None:
    lifecycle(ready, rule(**parts))
    message = refusal(ready)
    assert "its lifecycle rule theirs deletes or archives artifacts before RetentionDays" in message
    assert len(commands_in(message)) == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"Expiration": {"Days": 30}},
        {"Expiration": {"Days": 1}, "Status": "Disabled"},
        {"Expiration": {"Days": 1}, "Filter": {"Prefix": "logs/"}},
        {"Expiration": {"Days": 1}, "Filter": {"Tag": {"Key": "class", "Value": "temporary"}}},
        {"Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]},
    ],
)
def test_a_rule_that_leaves_artifacts_readable_is_accepted(ready: Bucket, parts: dict[str, Any]) -> None:
    lifecycle(ready, rule(**parts))
    check_bucket(ready)


def test_a_longer_retention_needs_longer_rules(ready: Bucket) -> None:
    message = refusal(ready, RetentionDays="90")
    assert "no lifecycle rule deletes all versions under artifacts/ after RetentionDays (90)" in message
    obey(ready.s3, message)
    check_bucket(ready, RetentionDays="90")
    check_bucket(ready, RetentionDays="30")


def test_rules_for_the_whole_bucket_can_delete_what_the_sweep_leaves(ready: Bucket) -> None:
    ready.s3.delete_bucket_lifecycle(Bucket=NAME)
    lifecycle(ready, rule(Expiration={"Days": 365}))
    assert "no lifecycle rule" in refusal(ready)
    lifecycle(ready, rule(ID="old", NoncurrentVersionExpiration={"NoncurrentDays": 60}))
    check_bucket(ready)


def test_a_rule_deletes_the_inputs_of_runs(ready: Bucket) -> None:
    rules = ready.read("get_bucket_lifecycle_configuration")["Rules"]
    ready.s3.delete_bucket_lifecycle(Bucket=NAME)
    lifecycle(ready, *(rule for rule in rules if rule["Filter"]["Prefix"] != "inputs/"))
    message = refusal(ready)
    assert "no lifecycle rule deletes all versions under inputs/ after RunRetentionDays" in message
    obey(ready.s3, message)
    check_bucket(ready)


# Metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", [True, False])
def test_the_alarm_on_traffic_needs_request_metrics(ready: Bucket, measured: bool) -> None:
    def answer(**_: object) -> tuple[AWSResponse, dict[str, Any]]:
        """The reply of S3. moto has no metrics."""
        reply: dict[str, Any] = {"MetricsConfiguration": {"Id": "whole-bucket"}}
        if not measured:
            reply = {"Error": {"Code": "NoSuchConfiguration", "Message": ""}}
        response = AWSResponse("", 200 if measured else 404, HTTPHeaders(), None)
        return response, {**reply, "ResponseMetadata": {}}

    with hooked("before-call.s3.GetBucketMetricsConfiguration", answer, ready.s3):
        check_bucket(ready, AlarmTrafficGigabytes="100", Alarms="false")
        if measured:
            check_bucket(ready, AlarmTrafficGigabytes="100")
        else:
            message = refusal(ready, AlarmTrafficGigabytes="100")
            assert "it has no request metrics" in message
            (command,) = commands_in(message)
            assert command[2] == "put-bucket-metrics-configuration"
            assert command[5:7] == ["--id", "whole-bucket"]


# What is in the bucket --------------------------------------------------------------------------


@pytest.fixture
def holding(bucket: Bucket) -> Bucket:
    """A ready bucket with an object outside artifacts/."""
    bucket.s3.put_object(Bucket=NAME, Key="logs/2026-11-22.gz", Body=b"log")
    return bucket


def test_objects_outside_artifacts_do_not_matter(holding: Bucket) -> None:
    obey(holding.s3, refusal(holding))
    check_bucket(holding)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_bucket_with_artifacts_is_taken_only_if_the_stack_uses_it_or_you_say_so(
    holding: Bucket, deleted: bool
) -> None:
    artifact = {"Bucket": NAME, "Key": "artifacts/team_1/abc/1"}
    holding.s3.put_bucket_versioning(Bucket=NAME, VersioningConfiguration={"Status": "Enabled"})
    holding.s3.put_object(**artifact, Body=b"artifact")
    if deleted:
        holding.s3.delete_object(**artifact)
    obey(holding.s3, refusal(holding))
    assert "already has objects under artifacts/" in refusal(holding)
    check(holding, OPTIONS, is_used=True, takes_used=False)
    check(holding, OPTIONS, is_used=False, takes_used=True)
