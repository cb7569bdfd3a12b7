"""Delete a stack, with what it stores."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
from botocore.exceptions import ClientError

from larder_cli.deploy import stack as stacks
from larder_cli.deploy.account import Account
from larder_cli.deploy.flow import Watch, busy
from larder_cli.deploy.stack import State

_TABLE, _BUCKET = "AWS::DynamoDB::Table", "AWS::S3::Bucket"
_PAGE = 1_000


def contents(account: Account, *, delete_artifacts: bool) -> Iterator[str]:
    """Lines about what the stack holds. Counts of tables are up to six hours old."""
    dynamodb, s3 = account.client("dynamodb"), account.client("s3")
    for logical_id, table in _resources(account, _TABLE).items():
        try:
            found = dynamodb.describe_table(TableName=table)["Table"]
        except dynamodb.exceptions.ResourceNotFoundException:
            continue
        yield f"  deleted    {logical_id}: about {found.get('ItemCount', 0):,} items"
    for bucket in _resources(account, _BUCKET).values():
        if not _holds_objects(s3, bucket):
            yield f"  deleted    the bucket {bucket}, which is empty"
        elif delete_artifacts:
            yield f"  deleted    the bucket {bucket} and all artifacts in it"
        else:
            yield f"  kept       the bucket {bucket} with its artifacts (--delete-artifacts deletes them)"


def remove(account: Account, watch: Watch, *, backup: bool, delete_artifacts: bool) -> None:
    """End the protection of the stack and delete it. Can be repeated after a failure. Raises ClickException."""
    cloudformation, dynamodb = account.cloudformation, account.client("dynamodb")
    if backup:
        now = datetime.now(UTC)
        for logical_id, table in _resources(account, _TABLE).items():
            made = dynamodb.create_backup(
                TableName=table, BackupName=f"{account.stack}-{logical_id}-{now:%Y%m%d-%H%M%S}"
            )
            watch.say(f"Backup of {logical_id}: {made['BackupDetails']['BackupArn']}")
    state = account.find_stack().state
    if state is State.BUSY:
        # Since the question was asked. A deletion that fails would leave the stack without its protection.
        raise click.ClickException(busy(account))
    buckets = _resources(account, _BUCKET)
    if delete_artifacts:
        for bucket in buckets.values():
            _empty(account.client("s3"), bucket)
    if state is State.STUCK:
        stacks.finish_rollback(cloudformation, account.stack, account.region)
    try:
        stacks.delete_remains(cloudformation, dynamodb, account.stack)
    except click.ClickException:
        # S3 deletes only empty buckets. The second deletion leaves them.
        kept = [one for one in buckets if _holds_objects(account.client("s3"), buckets[one])]
        if not kept or delete_artifacts or account.find_stack().state is not State.HALF_DELETED:
            raise
        cloudformation.delete_stack(StackName=account.stack, RetainResources=kept)
        stacks.wait(cloudformation, account.stack, until=None)


def _resources(account: Account, kind: str) -> dict[str, str]:
    """The physical ids of resources of one type, by logical id."""
    return {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for resource in stacks.resources(account.cloudformation, account.stack)
        if resource["ResourceType"] == kind
    }


def _holds_objects(s3: Any, bucket: str) -> bool:
    try:
        listed = s3.list_object_versions(Bucket=bucket, MaxKeys=1)
    except ClientError as error:
        # A deployer may not be allowed to look. S3 itself refuses to delete a bucket that holds something.
        if error.response["Error"]["Code"] == "AccessDenied":
            return True
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
        return False
    return bool(listed.get("Versions") or listed.get("DeleteMarkers"))


def _empty(s3: Any, bucket: str) -> None:
    """Delete all versions of all objects."""
    while _holds_objects(s3, bucket):
        page = s3.list_object_versions(Bucket=bucket, MaxKeys=_PAGE)
        versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        deleted = s3.delete_objects(
            Bucket=bucket,
            Delete={
                "Objects": [
                    {"Key": version["Key"], "VersionId": version["VersionId"]}
                    for version in versions
                ],
                "Quiet": True,
            },
        )
        if errors := deleted.get("Errors"):
            raise click.ClickException(
                f"S3 does not delete {errors[0]['Key']} of {bucket}: {errors[0].get('Message', errors[0]['Code'])}"
            )
