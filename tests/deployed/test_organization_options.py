"""A deployment with every option for organizations at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployed.stack import WITHOUT_ALARMS, Stack, packed
from tests.deploying import obey
from tests.emulator.process import emulator
from tests.permissions import RESOURCES

pytestmark = pytest.mark.e2e

KEY = "arn:aws:kms:eu-central-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NETWORK = {
    "AllowedNetworks": "203.0.113.0/24,2001:db8::/32",
    "SecurityGroupIds": "sg-0123abcd",
    "SubnetIds": "subnet-0123abcd,subnet-0123456789abcdef0",
}
OPTIONS = {
    **WITHOUT_ALARMS,
    **NETWORK,
    "CertificateArn": "arn:aws:acm:eu-central-1:000000000000:certificate/1234abcd",
    "DisableExecuteApiEndpoint": "true",
    "DomainName": "cache.example.com",
    "DualStack": "true",
    "ExistingBucket": "acme-build-cache",
    "KmsKeyArn": KEY,
    "PermissionsBoundary": "arn:aws:iam::000000000000:policy/developers",
    "RolePath": "/larder/",
    "TruststoreUri": "s3://certificates/truststore.pem",
    "TruststoreVersion": "1",
}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with emulator(tmp_path / "emulator") as running:
        yield Stack(running, packed(tmp_path / "packed"))


def test_they_deploy_together_and_can_all_be_taken_out(stack: Stack) -> None:
    s3 = stack.emulator.client("s3")
    s3.create_bucket(Bucket=OPTIONS["ExistingBucket"])
    obey(s3, stack.try_to_deploy(OPTIONS).text)
    stack.deploy(OPTIONS)
    assert stack.types()["AWS::ApiGatewayV2::DomainName"] == 1
    assert "AWS::S3::Bucket" not in stack.types()
    iam = stack.emulator.client("iam")
    attached = {
        policy["PolicyName"]: iam.list_entities_for_policy(PolicyArn=policy["Arn"])["PolicyRoles"]
        for policy in iam.list_policies(Scope="Local")["Policies"]
        if "WithOwnKey" in policy["PolicyName"]
    }
    # The functions that use the key, as `make generate` lists them.
    using = [resource["Properties"]["Roles"] for name, resource in RESOURCES.items() if "WithOwnKey" in name]
    assert sorted(map(len, attached.values())) == sorted(map(len, using))
    assert all(attached.values())
    assert in_vpc(stack) == {True}
    stack.deploy(WITHOUT_ALARMS)
    assert "AWS::ApiGatewayV2::DomainName" not in stack.types()
    assert stack.types()["AWS::S3::Bucket"] == 1
    assert in_vpc(stack) == {False}


def test_functions_move_into_a_vpc_in_place_and_presigned_urls_are_bound_to_the_networks(stack: Stack) -> None:
    stack.deploy(WITHOUT_ALARMS)
    before = stack.types()
    refused = stack.try_to_deploy({**WITHOUT_ALARMS, "SubnetIds": NETWORK["SubnetIds"]})
    assert "SubnetIds needs SecurityGroupIds" in refused.text
    stack.deploy({**WITHOUT_ALARMS, **NETWORK})
    assert stack.types() == before
    assert in_vpc(stack) == {True}
    s3 = stack.emulator.client("s3")
    (bucket,) = (one["Name"] for one in s3.list_buckets()["Buckets"] if "artifacts" in one["Name"])
    statements = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
    (condition,) = (one["Condition"] for one in statements if one["Sid"] == "AllowedNetworks")
    addresses = ["203.0.113.0/24", "2001:db8::/32"]
    assert condition == {
        "StringEquals": {"s3:authType": "REST-QUERY-STRING"},
        "NotIpAddress": {"aws:SourceIp": addresses, "aws:VpcSourceIp": addresses},
    }


def in_vpc(stack: Stack) -> set[bool]:
    """Whether roles have AWS's policy for a VPC, not that for logs. The emulator keeps no subnets of functions."""
    iam = stack.emulator.client("iam")
    roles = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    attached = [
        {one["PolicyName"] for one in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]}
        for name in roles
        if name.startswith(f"{stack.name}-")
    ]
    assert len(attached) > 80
    assert all(
        ("AWSLambdaVPCAccessExecutionRole" in one) is not ("AWSLambdaBasicExecutionRole" in one) for one in attached
    )
    return {"AWSLambdaVPCAccessExecutionRole" in one for one in attached}
