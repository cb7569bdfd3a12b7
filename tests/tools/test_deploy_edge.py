"""`make deploy` with Edge: what a bucket and a key of yours have to allow, and the commands for their owner."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.template import REGION
from tests.hooks import hooked
from tests.tools.buckets import ACCOUNT, NAME, empty_bucket
from tools.deploy.bucket import Bucket
from tools.deploy.command import ROOT
from tools.deploy.edge import bucket_problems, bucket_statement, key_problems, key_statement

DISTRIBUTION = f"arn:aws:cloudfront::{ACCOUNT}:distribution/E2EXAMPLE"
OTHER = f"arn:aws:cloudfront::{ACCOUNT}:distribution/E3EXAMPLE"
AUDIT = {
    "Sid": "Audit",
    "Effect": "Allow",
    "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
    "Action": "*",
    "Resource": "*",
}


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with empty_bucket() as made:
        yield made


def has(bucket: Bucket, *statements: object) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    bucket.s3.put_bucket_policy(Bucket=NAME, Policy=policy)


def policy_in(command: str) -> str:
    """The policy that the command puts. It is the last word."""
    return shlex.split(command)[-1]


def test_the_command_adds_the_statement_and_keeps_the_others(bucket: Bucket) -> None:
    has(bucket, AUDIT)
    (problem,) = bucket_problems(bucket, DISTRIBUTION)
    assert "does not let the edge in" in problem.text
    bucket.s3.put_bucket_policy(Bucket=NAME, Policy=policy_in(problem.command))
    assert list(bucket_problems(bucket, DISTRIBUTION)) == []
    stored = json.loads(bucket.read("get_bucket_policy")["Policy"])["Statement"]
    assert stored == [AUDIT, bucket_statement(bucket, DISTRIBUTION)]
    # A distribution that was deleted and created again has another id.
    (problem,) = bucket_problems(bucket, OTHER)
    assert json.loads(policy_in(problem.command))["Statement"][0] == AUDIT
    assert DISTRIBUTION not in problem.command


def test_a_bucket_without_a_policy_gets_one(bucket: Bucket) -> None:
    (problem,) = bucket_problems(bucket, DISTRIBUTION)
    bucket.s3.put_bucket_policy(Bucket=NAME, Policy=policy_in(problem.command))
    assert list(bucket_problems(bucket, DISTRIBUTION)) == []


@pytest.mark.parametrize(
    ("change", "suffices"),
    [
        ({}, True),
        ({"Action": "s3:*"}, True),
        ({"Resource": [f"arn:aws:s3:::{NAME}/*"]}, True),
        ({"Condition": {"ArnLike": {"aws:SourceArn": [OTHER, DISTRIBUTION]}}}, True),
        ({"Condition": {}}, True),
        ({"Effect": "Deny"}, False),
        ({"Principal": {"Service": "events.amazonaws.com"}}, False),
        ({"Principal": "*"}, False),
        ({"Action": ["s3:GetObject", "s3:PutObject"]}, False),
        ({"Resource": f"arn:aws:s3:::{NAME}/logs/*"}, False),
        ({"Condition": {"StringEquals": {"aws:SourceArn": OTHER}}}, False),
        ({"Condition": {"StringNotEquals": {"aws:SourceArn": DISTRIBUTION}}}, False),
        ({"Condition": {"StringEquals": {"aws:SourceAccount": "111111111111"}}}, False),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, False),
    ],
)
def test_what_the_policy_of_a_bucket_has_to_allow(
    bucket: Bucket, change: dict[str, Any], suffices: bool
) -> None:
    has(bucket, {**bucket_statement(bucket, DISTRIBUTION), **change})
    assert (not list(bucket_problems(bucket, DISTRIBUTION))) is suffices


def test_the_policy_of_a_key_is_checked_in_the_same_way(bucket: Bucket) -> None:
    kms = boto3.client("kms", region_name=REGION)
    key = kms.create_key(Policy=json.dumps({"Statement": AUDIT}))["KeyMetadata"]["Arn"]
    (problem,) = key_problems(kms, key, DISTRIBUTION)
    assert key in problem.command
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=policy_in(problem.command))
    assert list(key_problems(kms, key, DISTRIBUTION)) == []
    assert len(list(key_problems(kms, key, OTHER))) == 1


def test_a_key_policy_that_you_cannot_read_is_a_note(bucket: Bucket) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetKeyPolicy")

    kms = boto3.client("kms", region_name=REGION)
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd"
    with hooked("before-call.kms.GetKeyPolicy", refuse, kms):
        (problem,) = key_problems(kms, key, DISTRIBUTION)
    assert "(AccessDeniedException)" in problem.text


def test_the_documentation_has_the_same_statements(bucket: Bucket) -> None:
    page = (ROOT / "docs" / "edge.md").read_text()
    blocks = re.findall(
        r"```json\n(.*?)```", page.partition("### A bucket of your own")[2], re.DOTALL
    )
    texts = {
        "YOUR-BUCKET": NAME,
        "YOUR-ACCOUNT": ACCOUNT,
        "EDGE-DISTRIBUTION": DISTRIBUTION.rpartition("/")[2],
    }
    for name, value in texts.items():
        blocks = [block.replace(name, value) for block in blocks]
    of_bucket, of_key = map(json.loads, blocks)
    assert of_bucket == bucket_statement(bucket, DISTRIBUTION)
    assert of_key == key_statement(DISTRIBUTION)
