"""The bucket for the code of releases. Lambda reads code only from its own region."""

import json
from collections.abc import Mapping
from contextlib import suppress

import click
from botocore.exceptions import ClientError

from larder_cli.deploy.account import Account
from larder_cli.deploy.stack import State, delete_remains, find, wait

STACK = "larder-code"
PREFIX = "larder/"
"""What the keys of all uploads begin with."""

_BUCKET = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Bucket}"}
TEMPLATE = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "The code of Larder's releases. Nothing expires: to go back to a release takes its archives.",
    "Resources": {
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BucketName": {"Fn::Sub": "larder-code-${AWS::AccountId}-${AWS::Region}"},
                "VersioningConfiguration": {"Status": "Enabled"},
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "PublicAccessBlockConfiguration": dict.fromkeys(
                    (
                        "BlockPublicAcls",
                        "BlockPublicPolicy",
                        "IgnorePublicAcls",
                        "RestrictPublicBuckets",
                    ),
                    True,
                ),
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
                    ]
                },
            },
        },
        "Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {
                "Bucket": {"Ref": "Bucket"},
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Sid": "TlsOnly",
                            "Effect": "Deny",
                            "Principal": "*",
                            "Action": "s3:*",
                            "Resource": [
                                _BUCKET,
                                {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Bucket}/*"},
                            ],
                            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                        }
                    ],
                },
            },
        },
    },
    "Outputs": {"Bucket": {"Value": {"Ref": "Bucket"}}},
}


def own_bucket(account: Account) -> str:
    """The name of the bucket that `larder install` creates."""
    return f"larder-code-{account.id}-{account.region}"


def check(account: Account, name: str) -> None:
    """Raise ClickException unless the bucket is there, of this account and in the stack's region."""
    try:
        found = account.client("s3").head_bucket(Bucket=name, ExpectedBucketOwner=account.id)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("404", "NoSuchBucket"):
            raise click.ClickException(f"code-bucket: there is no bucket {name}") from error
        raise click.ClickException(
            f"code-bucket: cannot read {name}, where the code goes: {error}. It has to belong to the account "
            f"{account.id}."
        ) from error
    region = found.get("BucketRegion", account.region)
    if region != account.region:
        raise click.ClickException(
            f"code-bucket: {name} is in {region}, and the stack in {account.region}. They have to be in the same "
            "region, because Lambda reads code only from its own."
        )


def create_if_absent(account: Account, tags: Mapping[str, str]) -> bool:
    """Create the stack with the bucket, unless it is there. Returns whether it was created. Raises ClickException."""
    cloudformation = account.cloudformation
    stack = find(cloudformation, STACK)
    if stack.state is State.READY:
        return False
    if stack.state is State.REMAINS:
        delete_remains(cloudformation, account.client("dynamodb"), STACK)
        stack = find(cloudformation, STACK)
    if stack.state is State.NEW:
        # The stack is there already if another stack is installed at the same time, or if the reply got lost and boto3
        # asked again.
        with suppress(cloudformation.exceptions.AlreadyExistsException):
            cloudformation.create_stack(
                StackName=STACK,
                TemplateBody=json.dumps(TEMPLATE),
                Tags=[{"Key": name, "Value": value} for name, value in tags.items()],
            )
    wait(cloudformation, STACK, until="CREATE_COMPLETE")
    return True
