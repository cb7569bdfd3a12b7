"""The deployer's policies and its role for GitHub Actions: deployer/template.yaml."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from local.cloudformation import read_template
from tests.deployer import ACCOUNT, POLICIES, REGION, TEMPLATE, Deployer
from tools.deploy.command import deploy
from tools.generate.__main__ import ROOT
from tools.generate.deployer import TABLE, NotCovered, needed_statements, resource_types
from tools.generate.text import camel_case

LARDER = read_template(ROOT / "template.yaml")
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/larder-prod-boundary"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0f1e2d3c-4b5a-6978-8695-a4b3c2d1e0ff"
ENCRYPTED = {"KmsKeyArn": KEY}
EXISTING = {"ExistingBucket": "acme-build-cache"}
TRUSTING = {"TruststoreObject": "acme-tls/ca.pem"}
POLICY_LIMIT = 6_144
"""Characters of a managed policy without white space.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
PERMISSIONS = (
    "iam:AttachRolePolicy",
    "iam:CreateRole",
    "iam:PutRolePermissionsBoundary",
    "iam:PutRolePolicy",
)


def test_a_resource_type_without_a_statement_is_an_error() -> None:
    types = resource_types(LARDER)
    with pytest.raises(NotCovered, match="no statement for AWS::Kinesis::Stream"):
        needed_statements({*types, "AWS::Kinesis::Stream"})


def test_a_resource_type_that_the_template_has_not_gets_no_statement() -> None:
    types = resource_types(LARDER)
    sids = {one["sid"] for one in needed_statements(types - {"AWS::Budgets::Budget"})}
    assert {one["sid"] for one in needed_statements(types)} - sids == {"Budget"}


def test_every_statement_of_the_table_is_in_a_policy() -> None:
    written = {
        sid
        for bounded in ("", BOUNDARY)
        for bucket in ("", "uploads")
        for one in Deployer(
            {
                "PermissionsBoundary": bounded,
                "CodeBucket": bucket,
                "Edge": "true",
                **ENCRYPTED,
                **EXISTING,
                **TRUSTING,
            }
        ).statements()
        if (sid := one["Sid"])
    }
    assert written == {one["sid"] for one in tomllib.loads(TABLE.read_text())["statement"]}


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_fits_into_the_limit_with_the_longest_values(policy: str) -> None:
    longest = {
        "StackName": "l" * 24,
        "RolePath": f"/{'p' * 60}/",
        "CodeBucket": "b" * 63,
        "KmsKeyArn": f"arn:aws-us-gov:kms:ap-southeast-5:{ACCOUNT}:key/{'k' * 36}",
        "ExistingBucket": "b" * 63,
        "TruststoreObject": f"{'b' * 63}/{'k' * 200}",
        "Edge": "true",
        "PermissionsBoundary": f"arn:aws-us-gov:iam::{ACCOUNT}:policy/{'b' * 128}",
    }
    for parameters in (longest, {**longest, "CodeBucket": ""}):
        document = Deployer(parameters, Region="ap-southeast-5", Partition="aws-us-gov").document(
            policy
        )
        assert 0 < len(json.dumps(document, separators=(",", ":"))) <= POLICY_LIMIT


def test_a_statement_for_all_resources_gives_a_reason() -> None:
    everywhere = [
        one for one in tomllib.loads(TABLE.read_text())["statement"] if "*" in one["resources"]
    ]
    assert len(everywhere) == 5
    for one in everywhere:
        assert len(one["reason"]) > 20, one["sid"]
        assert not any("*" in action for action in one["actions"]), one["sid"]


def test_no_action_has_a_wildcard() -> None:
    actions = [action for one in Deployer().statements() for action in one["Action"]]
    assert len(actions) > 150
    for action in actions:
        assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action)


def test_only_the_names_of_the_stack_are_allowed() -> None:
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/"
    deployer = Deployer({"StackName": "larder-prod"})
    assert deployer.allows("dynamodb:DeleteTable", f"{table}larder-prod-TeamsTable-1ABC")
    for other in ("orders", "larder-TeamsTable-1ABC", "larder-production"):
        assert not deployer.allows("dynamodb:DeleteTable", table + other)
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/"
    assert deployer.allows("cloudformation:CreateChangeSet", f"{stack}larder-prod/1f2e")
    assert not deployer.allows("cloudformation:CreateChangeSet", f"{stack}larder-prod-2/1f2e")


def test_the_deployer_cannot_read_what_the_stack_stores() -> None:
    deployer = Deployer({"StackName": "larder-prod"})
    bucket = "arn:aws:s3:::larder-prod-artifactsbucket-1abc"
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/larder-prod-TeamsTable-1ABC"
    assert deployer.allows("s3:PutLifecycleConfiguration", bucket)
    assert not deployer.allows("s3:GetObject", f"{bucket}/artifacts/x")
    assert not deployer.allows("s3:DeleteObject", f"{bucket}/artifacts/x")
    for action in ("GetItem", "Query", "Scan", "PutItem"):
        assert not deployer.allows(f"dynamodb:{action}", table)


def test_a_key_and_a_trust_store_are_allowed_only_if_they_are_named() -> None:
    ca = "arn:aws:s3:::acme-tls/ca.pem"
    deployer = Deployer({**ENCRYPTED, **TRUSTING})
    assert deployer.allows("kms:CreateGrant", KEY)
    assert not deployer.allows("kms:CreateGrant", f"{KEY}0")
    assert deployer.allows("s3:GetObject", ca)
    assert not deployer.allows("s3:GetObject", f"{ca}0")
    assert not Deployer().allows("kms:CreateGrant", KEY)
    assert not Deployer().allows("s3:GetObject", ca)


def test_an_existing_bucket_can_be_checked_and_not_changed() -> None:
    deployer = Deployer(EXISTING)
    bucket = "arn:aws:s3:::acme-build-cache"
    assert deployer.allows("s3:GetBucketPolicy", bucket)
    assert not Deployer().allows("s3:GetBucketPolicy", bucket)
    assert deployer.allows("s3:ListBucketVersions", bucket, {"s3:prefix": "artifacts/"})
    assert not deployer.allows("s3:ListBucketVersions", bucket)
    assert not deployer.allows("s3:ListBucketVersions", bucket, {"s3:prefix": "logs/"})
    for action in ("PutBucketPolicy", "PutLifecycleConfiguration", "DeleteBucket"):
        assert not deployer.allows(f"s3:{action}", bucket)
    for action in ("GetObject", "GetObjectVersion", "DeleteObject", "PutObject"):
        assert not deployer.allows(f"s3:{action}", f"{bucket}/artifacts/x")


def test_it_allows_every_call_that_checks_the_bucket() -> None:
    names = {
        "get_bucket_encryption": "GetEncryptionConfiguration",
        "get_bucket_lifecycle_configuration": "GetLifecycleConfiguration",
        "get_bucket_metrics_configuration": "GetMetricsConfiguration",
        "get_bucket_notification_configuration": "GetBucketNotification",
        "get_object_lock_configuration": "GetBucketObjectLockConfiguration",
        "get_public_access_block": "GetBucketPublicAccessBlock",
        "list_object_versions": "ListBucketVersions",
    }
    source = (ROOT / "cli/src/larder_cli/deploy/existing_bucket.py").read_text()
    calls = re.findall(r'\.read\(\s*"(\w+)"', source)
    needed = {f"s3:{names.get(one) or camel_case(one)}" for one in calls}
    table = tomllib.loads(TABLE.read_text())["statement"]
    granted = [one["actions"] for one in table if one.get("when") == "HasExistingBucket"]
    assert needed == {action for actions in granted for action in actions}


# Roles ------------------------------------------------------------------------------------------


def roles(path: str = "/") -> Iterator[str]:
    for logical_id in ("PutArtifactRole", "SweepArtifactsRole"):
        yield f"arn:aws:iam::{ACCOUNT}:role{path}larder-prod-{logical_id}-1ABC"


def test_roles_are_passed_only_to_lambda() -> None:
    deployer = Deployer()
    for role in roles():
        assert deployer.allows(
            "iam:PassRole", role, {"iam:PassedToService": "lambda.amazonaws.com"}
        )
        assert not deployer.allows(
            "iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"}
        )
    assert not deployer.allows(
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/admin",
        {"iam:PassedToService": "lambda.amazonaws.com"},
    )


def test_with_a_boundary_no_role_gets_permissions_without_it() -> None:
    deployer = Deployer({"PermissionsBoundary": BOUNDARY})
    for role in roles():
        for action in PERMISSIONS:
            assert deployer.allows(action, role, {"iam:PermissionsBoundary": BOUNDARY})
            assert not deployer.allows(action, role)
            other = BOUNDARY.replace("boundary", "admin")
            assert not deployer.allows(action, role, {"iam:PermissionsBoundary": other})
        assert not deployer.allows("iam:DeleteRolePermissionsBoundary", role)


def test_the_boundary_cannot_be_changed_even_if_its_name_is_one_of_the_stacks() -> None:
    deployer = Deployer({"PermissionsBoundary": BOUNDARY})
    policy = BOUNDARY.replace("boundary", "GuardRequests-1ABC")
    for action in ("iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion"):
        assert deployer.allows(action, policy)
        assert not deployer.allows(action, BOUNDARY)


def test_roles_have_to_be_under_the_path() -> None:
    deployer = Deployer({"RolePath": "/larder/"})
    assert all(deployer.allows("iam:CreateRole", role) for role in roles("/larder/"))
    assert not any(deployer.allows("iam:CreateRole", role) for role in roles())


@pytest.mark.parametrize("stack", ["larder", "d", "deployers"])
def test_the_deployer_cannot_change_its_own_policies_and_role(stack: str) -> None:
    deployer = Deployer({"StackName": stack, "GitHubRepository": "acme/larder"})
    own = [f"policy/deployers/{stack}-deployer-StackPolicy-1ABC"]
    own += [f"role/deployers/{stack}-deployer-GitHubRole-1ABC"]
    arns = [f"arn:aws:iam::{ACCOUNT}:{one}" for one in own]
    assert {
        TEMPLATE["Resources"][one]["Properties"]["Path"] for one in (*POLICIES, "GitHubRole")
    } == {"/deployers/"}
    context = {"iam:PassedToService": "lambda.amazonaws.com"}
    actions = {action for one in deployer.statements() for action in one["Action"]}
    for action in sorted(one for one in actions if one.startswith("iam:")):
        assert not any(deployer.allows(action, arn, context) for arn in arns), action
    assert TEMPLATE["Rules"]["RolePathIsNotTheDeployers"]


# GitHub Actions ---------------------------------------------------------------------------------


def test_the_role_trusts_one_environment_of_one_repository() -> None:
    deployer = Deployer({"GitHubRepository": "acme/larder", "GitHubEnvironment": "prod"})
    (statement,) = deployer.trust()["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": "repo:acme/larder:environment:prod",
        }
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GitHubRepository", "acme/*"),
        ("GitHubRepository", "*"),
        ("GitHubRepository", "acme/larder:*"),
        ("GitHubEnvironment", "*"),
        ("GitHubEnvironment", ""),
        ("StackName", "*"),
        ("StackName", ""),
        ("StackName", "Larder"),
        ("StackName", "l" * 25),
        ("CodeBucket", "*"),
        ("PermissionsBoundary", "*"),
    ],
)
def test_a_parameter_cannot_be_a_wildcard(name: str, value: str) -> None:
    assert not re.fullmatch(TEMPLATE["Parameters"][name]["AllowedPattern"], value)


def test_without_a_repository_there_is_no_role() -> None:
    assert not Deployer().has("GitHubRole")
    assert not Deployer().has("GitHub")
    assert Deployer({"GitHubRepository": "acme/larder"}).has("GitHub")


def test_an_existing_identity_provider_is_not_created_again() -> None:
    provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"
    deployer = Deployer({"GitHubRepository": "acme/larder", "GitHubProvider": provider})
    assert not deployer.has("GitHub")
    assert deployer.has("GitHubRole")
    (statement,) = deployer.trust()["Statement"]
    assert statement["Principal"] == {"Federated": provider}


@pytest.mark.parametrize("name", ["ExistingBucket", "PermissionsBoundary", "RolePath"])
def test_shared_parameters_accept_the_same_values_as_the_stacks(name: str) -> None:
    pattern = LARDER["Parameters"][name]["AllowedPattern"]
    assert TEMPLATE["Parameters"][name]["AllowedPattern"] == pattern


WORKFLOW = ROOT / "deployer" / "github-actions.yml"


@pytest.fixture
def workflow() -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    parsed: dict[str, Any] = yaml.load(WORKFLOW.read_text(), Loader=yaml.BaseLoader)
    return parsed


def commands(workflow: dict[str, Any]) -> list[str]:
    return [step["run"] for step in workflow["jobs"]["deploy"]["steps"] if "run" in step]


def test_the_workflow_deploys_with_make_and_asks_nothing(workflow: dict[str, Any]) -> None:
    (command,) = commands(workflow)
    program, target, *variables = command.split()
    makefile = (ROOT / "Makefile").read_text()
    assert program == "make"
    assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)
    assert dict(one.split("=", 1) for one in variables) == {
        "ENV": "prod",
        "ARGS": "--no-confirm-changeset",
    }
    assert "--no-confirm-changeset" in [name for one in deploy.params for name in one.opts]


def test_the_workflows_environments_are_those_of_the_role_and_the_stack(
    workflow: dict[str, Any],
) -> None:
    defaults = {name: one["Default"] for name, one in TEMPLATE["Parameters"].items()}
    job = workflow["jobs"]["deploy"]
    assert job["environment"] == defaults["GitHubEnvironment"]
    settings = tomllib.loads((ROOT / "samconfig.toml").read_text())
    (command,) = commands(workflow)
    (environment,) = re.findall(r"ENV=(\S+)", command)
    assert settings[environment]["deploy"]["parameters"]["stack_name"] == defaults["StackName"]


def test_only_the_job_gets_permissions_and_only_for_the_token_and_the_code(
    workflow: dict[str, Any],
) -> None:
    assert workflow["permissions"] == {}
    assert [job["permissions"] for job in workflow["jobs"].values()] == [
        {"contents": "read", "id-token": "write"}
    ]


def test_the_workflow_uses_no_secret_and_no_pull_request(workflow: dict[str, Any]) -> None:
    assert "secrets." not in WORKFLOW.read_text()
    assert set(workflow["on"]) == {"push", "workflow_dispatch"}
    assert workflow["on"]["push"] == {"branches": ["main"]}


def test_the_credentials_are_those_of_the_role(workflow: dict[str, Any]) -> None:
    steps = workflow["jobs"]["deploy"]["steps"]
    (given,) = [step["with"] for step in steps if "configure-aws" in step.get("uses", "")]
    assert given["role-to-assume"] == "${{ vars.DEPLOYER_ROLE }}"
    longest = TEMPLATE["Resources"]["GitHubRole"]["Properties"]["MaxSessionDuration"]
    assert int(given["role-duration-seconds"]) <= longest


def test_every_action_is_pinned_by_commit_with_its_version() -> None:
    used = re.findall(r"uses: (.+)$", WORKFLOW.read_text(), re.MULTILINE)
    assert len(used) == 3
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)


def test_a_deployment_waits_for_the_one_before(workflow: dict[str, Any]) -> None:
    assert workflow["concurrency"]["cancel-in-progress"] == "false"
    assert "${{" not in workflow["concurrency"]["group"]
