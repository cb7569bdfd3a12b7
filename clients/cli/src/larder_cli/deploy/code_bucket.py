"""The bucket for the code of releases. Lambda reads code only from its own region."""

import json
from collections.abc import Mapping

import click
from botocore.exceptions import ClientError

from larder_cli.deploy.account import Account
from larder_cli.deploy.stack import State, delete_remains, find, wait_until_ready

STACK = "larder-code"
PREFIX = "larder/"
"""What the keys of releases begin with. The name of the stack follows, so that policies keep stacks apart."""
PLANS = "larder-plans/"
"""The same for the templates of plans, which expire."""

_EDITION = "2"
"""Of the template. A bucket with an older one is updated, if the caller may."""

_BUCKET = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Bucket}"}
TEMPLATE = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "The code of Larder's releases. It never expires: to go back to a release takes its archives.",
    "Resources": {
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BucketName": {"Fn::Sub": "larder-code-${AWS::AccountId}-${AWS::Region}"},
                "VersioningConfiguration": {"Status": "Enabled"},
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": "plans",
                            "Status": "Enabled",
                            "Prefix": PLANS,
                            "ExpirationInDays": 1,
                            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                        }
                    ]
                },
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
    "Outputs": {"Bucket": {"Value": {"Ref": "Bucket"}}, "Edition": {"Value": _EDITION}},
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
    """Create the stack with the bucket, unless it is there. Returns whether it was created.

    Raises ClickException, also if the caller may not: deployers cannot, because all stacks of the account share it.
    """
    cloudformation = account.cloudformation
    stack = find(cloudformation, STACK)
    if stack.state is State.REMAINS:
        delete_remains(cloudformation, account.client("dynamodb"), STACK)
        stack = find(cloudformation, STACK)
    is_new = stack.state is State.NEW
    template = {"StackName": STACK, "TemplateBody": json.dumps(TEMPLATE)}
    try:
        if is_new:
            listed = [{"Key": name, "Value": value} for name, value in tags.items()]
            cloudformation.create_stack(**template, Tags=listed)
        elif stack.state is State.READY and (stack.outputs or {}).get("Edition") != _EDITION:
            cloudformation.update_stack(**template)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("AccessDenied", "AccessDeniedException"):
            if not is_new:
                return False  # A deployer needs nothing of what is newer.
            raise click.ClickException(
                f"there is no bucket {own_bucket(account)} for the code yet, and you may not create it: {error}. Let "
                "an administrator run `larder plan` once, which creates it (docs/deployer.md)."
            ) from error
        # Another process creates or updates it at the same time, or the reply got lost and boto3 asked again.
        if code not in ("AlreadyExistsException", "ValidationError"):
            raise
    wait_until_ready(cloudformation, STACK)
    return is_new
