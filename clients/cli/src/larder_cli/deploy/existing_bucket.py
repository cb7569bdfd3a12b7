"""The bucket in `ExistingBucket`. Larder changes no settings of a bucket that it did not create, so it checks them."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from botocore.exceptions import ClientError

from larder.settings import listed
from larder_cli.deploy.options import NETWORKS

PREFIX = "artifacts/"
_INPUTS = "inputs/"
"""The inputs of runs, which only a lifecycle rule deletes."""
_OLD_NAMES = {None: "us-east-1", "EU": "eu-west-1"}
"""Locations that are not the name of their region."""
_BLOCKED = dict.fromkeys(
    ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
)
_ARCHIVES = {"GLACIER", "DEEP_ARCHIVE"}
"""Storage classes whose objects cannot be read at once."""
_OWN_KEY_OF_S3 = "alias/aws/s3"
_METRICS = "whole-bucket"
"""The id in the alarm MuchTraffic."""

Rule = dict[str, Any]
"""A rule of a lifecycle configuration."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What the owner of the bucket has to change, and the command for it."""

    text: str
    command: str

    def __str__(self) -> str:
        return f"- {self.text}:\n\n    {self.command}\n"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of this account and region."""

    s3: Any
    name: str
    account: str
    region: str
    partition: str

    def read(self, operation: str, *absent: str, **arguments: Any) -> dict[str, Any]:
        """The reply to a call, or an empty one for the error codes `absent`. Raises ClickException."""
        try:
            reply: dict[str, Any] = getattr(self.s3, operation)(
                Bucket=self.name, ExpectedBucketOwner=self.account, **arguments
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in absent:
                return {}
            if code == "NoSuchBucket":
                raise click.ClickException(
                    f"ExistingBucket: there is no bucket {self.name}"
                ) from error
            raise click.ClickException(
                f"ExistingBucket: cannot check {self.name}: {error}. The bucket has to belong to the account "
                f"{self.account}, and you need permission to read its settings (docs/deployer.md)."
            ) from error
        del reply["ResponseMetadata"]
        return reply

    def command(self, operation: str, **arguments: Any) -> str:
        """The line for the AWS command line. Structures are JSON."""
        words = ["aws", "s3api", operation, "--bucket", self.name]
        for name, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            words += [f"--{name.replace('_', '-')}", text]
        return shlex.join(words)


def check(bucket: Bucket, options: Mapping[str, str], *, is_used: bool, takes_used: bool) -> None:
    """Raise ClickException unless a stack with these options can store its artifacts in the bucket.

    `is_used` says that the stack stores them there already, `takes_used` that artifacts of another stack are accepted.
    """
    location = bucket.read("get_bucket_location").get("LocationConstraint")
    region = _OLD_NAMES.get(location, location)
    if region != bucket.region:
        raise click.ClickException(
            f"ExistingBucket: {bucket.name} is in {region}, and the stack in {bucket.region}. They have to be in the "
            "same region."
        )
    if found := list(_problems(bucket, options)):
        problems = "\n".join(map(str, found))
        raise click.ClickException(
            f"ExistingBucket: {bucket.name} is not ready. Larder does not change the settings of your bucket. Let its "
            f"owner do this, then deploy again:\n\n{problems}"
        )
    if not is_used and not takes_used and _has_artifacts(bucket):
        raise click.ClickException(
            f"ExistingBucket: {bucket.name} already has objects under {PREFIX}. Two stacks with one bucket delete each "
            f"other's artifacts, and other objects under {PREFIX} expire. If they are artifacts that no other stack "
            "uses, add --accept-stored-artifacts."
        )


def _has_artifacts(bucket: Bucket) -> bool:
    listed = bucket.read("list_object_versions", Prefix=PREFIX, MaxKeys=1)
    return bool(listed.get("Versions") or listed.get("DeleteMarkers"))


def _problems(bucket: Bucket, options: Mapping[str, str]) -> Iterator[Problem]:
    yield from _access(bucket)
    yield from _versions(bucket)
    yield from _events(bucket)
    yield from _encryption(bucket, options["KmsKeyArn"])
    yield from _policy(bucket, listed(options.get(NETWORKS, "")))
    yield from _lifecycle(bucket, int(options["RetentionDays"]), int(options["RunRetentionDays"]))
    if options["Alarms"] == "true" and options["AlarmTrafficGigabytes"] != "0":
        yield from _metrics(bucket)


def _access(bucket: Bucket) -> Iterator[Problem]:
    reply = bucket.read("get_public_access_block", "NoSuchPublicAccessBlockConfiguration")
    if reply.get("PublicAccessBlockConfiguration") != _BLOCKED:
        yield Problem(
            "it does not block all public access",
            bucket.command("put-public-access-block", public_access_block_configuration=_BLOCKED),
        )
    reply = bucket.read("get_bucket_ownership_controls", "OwnershipControlsNotFoundError")
    enforced = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    if reply.get("OwnershipControls") != enforced:
        yield Problem(
            "its objects can have access lists",
            bucket.command("put-bucket-ownership-controls", ownership_controls=enforced),
        )


def _versions(bucket: Bucket) -> Iterator[Problem]:
    versioning = bucket.read("get_bucket_versioning")
    if versioning.get("Status") != "Enabled":
        yield Problem(
            "it keeps no versions, so an upload to an old URL could replace an artifact",
            bucket.command("put-bucket-versioning", versioning_configuration={"Status": "Enabled"}),
        )
    if versioning.get("MFADelete") == "Enabled":
        yield Problem(
            "it requires a second factor to delete versions, so Larder could delete no artifacts",
            bucket.command(
                "put-bucket-versioning",
                versioning_configuration={"Status": "Enabled", "MFADelete": "Disabled"},
                mfa="SERIAL CODE",
            ),
        )
    reply = bucket.read("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError")
    if "Rule" in reply.get("ObjectLockConfiguration", {}):
        yield Problem(
            "it locks new objects, so clients could not upload and Larder could delete no artifacts",
            bucket.command(
                "put-object-lock-configuration",
                object_lock_configuration={"ObjectLockEnabled": "Enabled"},
            ),
        )


def _events(bucket: Bucket) -> Iterator[Problem]:
    notifications = bucket.read("get_bucket_notification_configuration")
    if "EventBridgeConfiguration" not in notifications:
        yield Problem(
            "it does not send its events to EventBridge, and Larder would not notice uploads",
            bucket.command(
                "put-bucket-notification-configuration",
                notification_configuration={**notifications, "EventBridgeConfiguration": {}},
            ),
        )


def _encryption(bucket: Bucket, wanted: str) -> Iterator[Problem]:
    reply = bucket.read("get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError")
    rules = reply.get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
    used = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    key = next((one["KMSMasterKeyID"] for one in used if one.get("KMSMasterKeyID")), "")
    if key.endswith(_OWN_KEY_OF_S3):
        key = ""
    # S3 returns the key as its owner wrote it: the ARN, or only the id at its end.
    if key == wanted or (key and key == wanted.rpartition("/")[2]):
        return
    by_default = {"SSEAlgorithm": "AES256"}
    text = f"it encrypts with the key {key}, which is not KmsKeyArn. Set KmsKeyArn, or"
    if wanted:
        by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": wanted}
        text = "it does not encrypt with KmsKeyArn"
    rule = {"ApplyServerSideEncryptionByDefault": by_default, "BucketKeyEnabled": bool(wanted)}
    yield Problem(
        text,
        bucket.command(
            "put-bucket-encryption", server_side_encryption_configuration={"Rules": [rule]}
        ),
    )


def _policy(bucket: Bucket, networks: Sequence[str]) -> Iterator[Problem]:
    """Both refusals at once, because a command replaces the whole policy."""
    reply = bucket.read("get_bucket_policy", "NoSuchBucketPolicy")
    policy = json.loads(reply.get("Policy", '{"Version": "2012-10-17", "Statement": []}'))
    statements = _as_list(policy["Statement"])
    arn = f"arn:{bucket.partition}:s3:::{bucket.name}"
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "TlsOnly": (
            "all requests without TLS",
            {"Bool": {"aws:SecureTransport": "false"}},
        )
    }
    if networks:
        addresses = {key: [*networks] for key in ("aws:SourceIp", "aws:VpcSourceIp")}
        wanted["AllowedNetworks"] = (
            "all presigned URLs outside of AllowedNetworks",
            {"StringEquals": {"s3:authType": "REST-QUERY-STRING"}, "NotIpAddress": addresses},
        )
    missing = {
        sid: one
        for sid, one in wanted.items()
        if not any(_refuses(statement, arn, one[1]) for statement in statements)
    }
    if not missing:
        return
    # One with the networks of an earlier deployment would go on refusing those that are new.
    kept = [one for one in statements if one.get("Sid") not in missing]
    refusals = [
        {
            "Sid": sid,
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [arn, f"{arn}/*"],
            "Condition": condition,
        }
        for sid, (_, condition) in missing.items()
    ]
    yield Problem(
        f"its policy has no statement that refuses {' and '.join(text for text, _ in missing.values())}",
        bucket.command(
            "put-bucket-policy",
            # Unlike the other settings, a policy is a text in the API, too.
            policy=json.dumps({**policy, "Statement": [*kept, *refusals]}),
        ),
    )


def _refuses(statement: Mapping[str, Any], arn: str, condition: Mapping[str, Any]) -> bool:
    """Whether it is a statement of docs/organization.md, perhaps for the artifacts only. Other forms are not read."""
    return (
        statement["Effect"] == "Deny"
        and statement.get("Principal") == "*"
        and statement.get("Action") == "s3:*"
        and not {f"{arn}/*", f"{arn}/{PREFIX}*"}.isdisjoint(_as_list(statement.get("Resource", [])))
        and statement.get("Condition") == condition
    )


def _lifecycle(bucket: Bucket, days: int, run_days: int) -> Iterator[Problem]:
    """The bucket may not delete or archive artifacts too early, and has to delete what the hourly sweep leaves and the
    inputs of runs.
    """
    reply = bucket.read("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration")
    rules = [_with_filter(rule) for rule in reply.get("Rules", [])]
    filtered = {"Status": "Enabled", "Filter": {"Prefix": PREFIX}}
    recommended = [
        {
            "ID": "larder-artifacts",
            **filtered,
            "Expiration": {"Days": days},
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        },
        {
            "ID": "larder-inputs",
            "Status": "Enabled",
            "Filter": {"Prefix": _INPUTS},
            "Expiration": {"Days": run_days},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        },
        {
            "ID": "larder-delete-markers",
            **filtered,
            "Expiration": {"ExpiredObjectDeleteMarker": True},
        },
    ]
    ours = {rule["ID"] for rule in recommended}
    others = [rule for rule in rules if rule.get("ID") not in ours]
    harmful = [rule for rule in rules if _loses_artifacts(rule, days)]
    for rule in harmful:
        if rule in others:
            yield Problem(
                f"its lifecycle rule {rule.get('ID')} deletes or archives artifacts before RetentionDays ({days}). "
                f"Limit it to objects outside {PREFIX}, or to a later time, in the output of",
                bucket.command("get-bucket-lifecycle-configuration"),
            )
    lasting = [rule for rule in rules if rule not in harmful]
    if not _deletes_all(lasting, PREFIX):
        missing = f"under {PREFIX} after RetentionDays ({days}) or more"
    elif not _deletes_all(rules, _INPUTS):
        missing = f"under {_INPUTS} after RunRetentionDays ({run_days})"
    else:
        return
    size = reply.get("TransitionDefaultMinimumObjectSize")
    yield Problem(
        f"no lifecycle rule deletes all versions {missing}",
        bucket.command(
            "put-bucket-lifecycle-configuration",
            lifecycle_configuration={"Rules": [*others, *recommended]},
            # Without it, S3 returns the size to its default.
            **({"transition_default_minimum_object_size": size} if size else {}),
        ),
    )


def _with_filter(rule: Rule) -> Rule:
    """The rule in the current form. S3 does not mix it with the old one, which has its prefix outside the filter."""
    if "Prefix" not in rule:
        return rule
    others = {name: value for name, value in rule.items() if name != "Prefix"}
    return {**others, "Filter": {"Prefix": rule["Prefix"]}}


def _conditions(rule: Rule) -> dict[str, Any]:
    given = rule.get("Filter", {})
    return dict(given.get("And", given))


def _deletes_all(rules: Sequence[Rule], prefix: str) -> bool:
    """Whether rules delete all current and all noncurrent versions under a prefix."""
    applied = [rule for rule in rules if _has_all(rule, prefix)]
    expiring = any("Days" in rule.get("Expiration", {}) for rule in applied)
    return expiring and any("NoncurrentVersionExpiration" in rule for rule in applied)


def _has_all(rule: Rule, prefix: str) -> bool:
    conditions = _conditions(rule)
    start = conditions.pop("Prefix", "")
    return rule["Status"] == "Enabled" and not conditions and prefix.startswith(start)


def _loses_artifacts(rule: Rule, days: int) -> bool:
    """Whether a rule makes artifacts unreadable before they expire. Artifacts have no tags."""
    conditions = _conditions(rule)
    prefix = conditions.get("Prefix", "")
    if rule["Status"] != "Enabled" or not conditions.keys().isdisjoint({"Tag", "Tags"}):
        return False
    if not PREFIX.startswith(prefix) and not prefix.startswith(PREFIX):
        return False
    expiration, noncurrent = rule.get("Expiration", {}), rule.get("NoncurrentVersionExpiration", {})
    moves = [*rule.get("Transitions", []), *rule.get("NoncurrentVersionTransitions", [])]
    return (
        "Date" in expiration
        or expiration.get("Days", days) < days
        or noncurrent.get("NoncurrentDays", days) < days
        or any(move.get("StorageClass") in _ARCHIVES for move in moves)
    )


def _metrics(bucket: Bucket) -> Iterator[Problem]:
    if not bucket.read("get_bucket_metrics_configuration", "NoSuchConfiguration", Id=_METRICS):
        yield Problem(
            "it has no request metrics, which AlarmTrafficGigabytes needs",
            bucket.command(
                "put-bucket-metrics-configuration",
                id=_METRICS,
                metrics_configuration={"Id": _METRICS},
            ),
        )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
