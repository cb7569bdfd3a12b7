"""The deployer's policies and its role for GitHub Actions: deploy/deployer/template.yaml."""

import json
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from larder_cli.deploy.account import Account as AwsAccount
from larder_cli.deploy.flow import Deployment
from larder_cli.deploy.release import Release
from larder_cli.main import cli
from local.cloudformation import read_template
from tests.deployer import ACCOUNT, EXISTING_BUCKET, PLAN, POLICIES, REGION, TEMPLATE, Deployer
from tests.workflows import actions, commands, read_workflow, steps, unpinned
from tools.generate.__main__ import ROOT
from tools.generate.text import camel_case

LARDER = read_template(ROOT / "template.yaml")
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/larder-prod-boundary"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0f1e2d3c-4b5a-6978-8695-a4b3c2d1e0ff"
BOUNDED = {"PermissionsBoundary": BOUNDARY, "RolePath": "/larder-prod/"}
ENCRYPTED = {"KmsKeyArn": KEY}
EXISTING = {"ExistingBucket": "acme-build-cache"}
TRUSTING = {"TruststoreObject": "acme-tls/ca.pem"}
RELEASE = Release(Path(), {"version": "1.2.3"})
POLICY_LIMIT = 6_144
"""Characters of a managed policy without white space.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
PERMISSIONS = ("iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy")


@pytest.mark.parametrize("policy", sorted({*POLICIES, *PLAN}))
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
        document = Deployer(parameters, Region="ap-southeast-5", Partition="aws-us-gov").document(policy)
        assert 0 < len(json.dumps(document, separators=(",", ":"))) <= POLICY_LIMIT


def test_what_can_give_more_permissions_is_named_action_by_action() -> None:
    actions = {action for statement in Deployer().statements() for action in statement["Action"]}
    assert "lambda:*" in actions
    assert not [one for one in actions if "*" in one and one.startswith(("iam:", "secretsmanager:"))]


def test_only_the_names_of_the_stack_are_allowed() -> None:
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/"
    deployer = Deployer({"StackName": "larder-prod"})
    assert deployer.allows("dynamodb:DeleteTable", f"{table}larder-prod-TeamsTable-1ABC")
    for other in ("orders", "larder-TeamsTable-1ABC", "larder-production"):
        assert not deployer.allows("dynamodb:DeleteTable", table + other)
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/"
    assert deployer.allows("cloudformation:CreateChangeSet", f"{stack}larder-prod/1f2e")
    assert not deployer.allows("cloudformation:CreateChangeSet", f"{stack}larder-prod-2/1f2e")


def test_the_deployer_of_one_stack_cannot_reach_the_code_and_the_secret_of_another() -> None:
    deployer = Deployer({"StackName": "larder-dev"})
    bucket = f"arn:aws:s3:::larder-code-{ACCOUNT}-{REGION}"
    secret = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:SigningSecret-1ABC-2DEF"
    tag = "aws:ResourceTag/aws:cloudformation:stack-name"
    for stack, is_own in (("larder-dev", True), ("larder-prod", False), ("larder-dev-2", False)):
        for prefix in ("larder", "larder-plans"):
            key = f"{bucket}/{prefix}/{stack}/larder.template-0123456789abcdef.json"
            assert deployer.allows("s3:PutObject", key) == is_own
        for action in ("GetSecretValue", "DeleteSecret", "UpdateSecret", "TagResource"):
            assert deployer.allows(f"secretsmanager:{action}", secret, {tag: stack}) == is_own
    assert deployer.allows("secretsmanager:CreateSecret", secret)
    assert not deployer.allows("secretsmanager:GetSecretValue", secret)
    assert not deployer.allows("s3:PutBucketPolicy", bucket)
    assert not deployer.allows("s3:PutObject", f"{bucket}/larder/larder.template-0123456789abcdef.json")


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
    source = (ROOT / "clients/cli/src/larder_cli/deploy/existing_bucket.py").read_text()
    calls = re.findall(r'\.read\(\s*"(\w+)"', source)
    deployer = Deployer(EXISTING, [EXISTING_BUCKET])
    for call in calls:
        action = f"s3:{names.get(call) or camel_case(call)}"
        prefix = {"s3:prefix": "artifacts/"}
        assert deployer.allows(action, "arn:aws:s3:::acme-build-cache", prefix), action
    assert len(calls) > 5


# Roles ------------------------------------------------------------------------------------------


def roles(path: str = "/") -> Iterator[str]:
    for logical_id in ("PutArtifactRole", "SweepArtifactsRole"):
        yield f"arn:aws:iam::{ACCOUNT}:role{path}larder-prod-{logical_id}-1ABC"


def iam_actions(deployer: Deployer) -> set[str]:
    """Those on roles and policies. The summary has only figures of the account."""
    actions = {action for statement in deployer.statements() for action in statement["Action"]}
    return {one for one in actions if one.startswith("iam:")} - {"iam:GetAccountSummary"}


def test_roles_are_passed_only_to_lambda() -> None:
    deployer = Deployer()
    for role in roles():
        assert deployer.allows("iam:PassRole", role, {"iam:PassedToService": "lambda.amazonaws.com"})
        assert not deployer.allows("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
    assert not deployer.allows(
        "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {"iam:PassedToService": "lambda.amazonaws.com"}
    )


def test_with_a_boundary_no_role_gets_permissions_without_it() -> None:
    deployer = Deployer(BOUNDED)
    for role in roles("/larder-prod/"):
        for action in PERMISSIONS:
            assert deployer.allows(action, role, {"iam:PermissionsBoundary": BOUNDARY})
            assert not deployer.allows(action, role)
            other = BOUNDARY.replace("boundary", "admin")
            assert not deployer.allows(action, role, {"iam:PermissionsBoundary": other})
        assert not deployer.allows("iam:DeleteRolePermissionsBoundary", role)


def test_the_boundary_cannot_be_changed_even_if_its_name_is_one_of_the_stacks() -> None:
    boundary = BOUNDARY.replace(":policy/", ":policy/larder-prod/")
    deployer = Deployer({**BOUNDED, "PermissionsBoundary": boundary})
    policy = boundary.replace("boundary", "GuardRequests-1ABC")
    for action in ("iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion"):
        assert deployer.allows(action, policy)
        assert not deployer.allows(action, boundary)


def test_with_a_boundary_what_an_administrator_has_made_elsewhere_is_out_of_reach() -> None:
    deployer = Deployer(BOUNDED)
    to_lambda = {"iam:PassedToService": "lambda.amazonaws.com", "iam:PermissionsBoundary": BOUNDARY}
    iam = iam_actions(deployer)
    assert {"iam:PassRole", "iam:UpdateAssumeRolePolicy", "iam:CreatePolicyVersion"} <= iam
    (own,) = (f"arn:aws:iam::{ACCOUNT}:role/larder-prod/larder-prod-GetTeamRole-1ABC",)
    assert deployer.allows("iam:UpdateAssumeRolePolicy", own, to_lambda)
    for path in ("/", "/service/", "/larder-prod-2/", "/deployers/"):
        for kind in ("role", "policy"):
            theirs = f"arn:aws:iam::{ACCOUNT}:{kind}{path}larder-prod-cloudformation"
            assert not [one for one in iam if deployer.allows(one, theirs, to_lambda)]


def test_a_boundary_demands_a_path_of_its_own() -> None:
    rule = TEMPLATE["Rules"]["BoundedRolesHaveAPath"]
    assert rule["RuleCondition"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "PermissionsBoundary"}, ""]}]}
    assert rule["Assertions"][0]["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "RolePath"}, "/"]}]}


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
    assert {TEMPLATE["Resources"][policy]["Properties"]["Path"] for policy in (*POLICIES, "GitHubRole")} == {
        "/deployers/"
    }
    context = {"iam:PassedToService": "lambda.amazonaws.com"}
    for action in sorted(iam_actions(deployer)):
        assert not any(deployer.allows(action, arn, context) for arn in arns), action
    assert TEMPLATE["Rules"]["RolePathIsNotTheDeployers"]


# GitHub Actions ---------------------------------------------------------------------------------


def test_the_role_trusts_one_environment_of_one_repository() -> None:
    given = {"GitHubRepository": "acme/larder", "GitHubRepositoryId": "71", "GitHubEnvironment": "prod"}
    deployer = Deployer(given)
    (statement,) = deployer.trust()["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:repository_id": "71",
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
        ("RolePath", "/*/"),
        ("RolePath", "/larder-pro?/"),
        ("GitHubRepositoryId", "*"),
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


def test_pull_requests_of_the_repository_get_a_role_that_plans() -> None:
    deployer = Deployer({"GitHubRepository": "acme/larder", "GitHubRepositoryId": "none"})
    (statement,) = deployer.trust("GitHubPlanRole")["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": "repo:acme/larder:pull_request",
        }
    }
    role = TEMPLATE["Resources"]["GitHubPlanRole"]["Properties"]
    assert role["ManagedPolicyArns"] == [
        {"Ref": "PlanPolicy"},
        {"Fn::If": ["HasExistingBucket", {"Ref": EXISTING_BUCKET}, {"Ref": "AWS::NoValue"}]},
    ]
    assert not Deployer().has("GitHubPlanRole")


@pytest.mark.parametrize("own", ["", "acme-code"])
def test_a_pull_request_cannot_change_what_a_deployment_runs(own: str) -> None:
    """Change sets and templates of deployments have other names than those of plans."""
    given = {"CodeBucket": own, "GitHubRepository": "acme/larder", **EXISTING}
    plan = Deployer(given, policies=PLAN)
    bucket = f"arn:aws:s3:::{own or f'larder-code-{ACCOUNT}-{REGION}'}"
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/larder-prod/1f2e"
    account = AwsAccount(boto3.Session(), ACCOUNT, "caller", REGION, "larder-prod")
    for is_plan in (True, False):
        deployment = Deployment(account, RELEASE, {}, bucket.rpartition(":")[2], is_plan=is_plan)
        key = f"{bucket}/{deployment.prefix}larder.template-0123456789abcdef.json"
        named = {"cloudformation:ChangeSetName": deployment.label("all")}
        assert plan.allows("s3:PutObject", key) == is_plan
        for action in ("CreateChangeSet", "DeleteChangeSet", "DescribeChangeSet"):
            assert plan.allows(f"cloudformation:{action}", stack, named) == is_plan
        assert not plan.allows("cloudformation:ExecuteChangeSet", stack, named)
    assert not plan.allows("s3:PutObject", f"{bucket}/larder/layer-0123456789abcdef.zip")
    actions = {action for statement in plan.statements() for action in statement["Action"]}
    written = {one for one in actions if not re.search(r":(Get|List|Describe)", one)}
    assert written == {
        "cloudformation:CreateChangeSet",
        "cloudformation:DeleteChangeSet",
        "cloudformation:TagResource",
        "s3:PutObject",
    }


WORKFLOW = ROOT / "deploy" / "deployer" / "github-actions.yml"
INSTALL = "python -m pip install --quiet --require-hashes --only-binary :all: --requirement requirements.txt"
OF_THIS_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"


@pytest.fixture
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = read_workflow(WORKFLOW)["jobs"]
    return found


def larder(command: str) -> list[str]:
    """Check that a command is one of `larder` with its options. Returns its words."""
    program, name, *options = command.split()
    assert program == "larder"
    known = {one for option in cli.commands[name].params for one in option.opts}
    assert {one for one in options if one.startswith("--")} <= known
    return [name, *options]


def test_a_merge_upgrades_and_asks_nothing(jobs: dict[str, Any]) -> None:
    install, deploy = commands(jobs["deploy"])
    assert install == INSTALL
    assert larder(deploy) == ["upgrade", "--env", "prod", "--yes"]
    assert jobs["deploy"]["if"] == "github.event_name != 'pull_request'"


def test_a_pull_request_of_this_repository_is_planned(jobs: dict[str, Any]) -> None:
    install, plan = commands(jobs["plan"])
    assert install == INSTALL
    (line,) = [line for line in plan.splitlines() if "larder" in line]
    assert larder(line.partition(" > ")[0]) == ["plan", "--env", "prod"]
    assert jobs["plan"]["if"] == f"github.event_name == 'pull_request' && {OF_THIS_REPOSITORY}"


@pytest.mark.parametrize(("status", "passes"), [(0, True), (3, True), (1, False), (2, False)])
def test_the_plan_is_kept_and_a_refusal_fails_the_job(
    jobs: dict[str, Any], tmp_path: Path, status: int, passes: bool
) -> None:
    program = tmp_path / "larder"
    program.write_text(f"#!/bin/sh\necho changes\necho warning >&2\nexit {status}\n")
    program.chmod(0o755)
    _, plan = commands(jobs["plan"])
    done = bash(plan, tmp_path)
    assert (done.returncode == 0) == passes
    assert (tmp_path / "plan.txt").read_text() == "changes\nwarning\n"
    (kept,) = steps(jobs["plan"], "actions/upload-artifact")
    assert (kept["if"], kept["with"]["path"]) == ("${{ !cancelled() }}", "plan.txt")


def test_the_comment_shows_the_plan_as_code_whatever_it_says(jobs: dict[str, Any], tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gh.chmod(0o755)
    (tmp_path / "plan.txt").write_text("```\n@acme <img src=x>\n" + "x" * 70_000)
    (command,) = commands(jobs["comment"])
    done = bash(command, tmp_path, PULL_REQUEST="7", GITHUB_REPOSITORY="acme/larder")
    assert done.stdout.split() == (["pr", "comment", "7", "--repo", "acme/larder", "--body-file", "comment.txt"])
    title, empty, *lines = (tmp_path / "comment.txt").read_text().splitlines()
    assert (title, empty) == ("`larder plan --env prod`:", "")
    assert all(line.startswith("    ") for line in lines)
    assert (tmp_path / "comment.txt").stat().st_size < 65_536


def bash(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as GitHub does, with the programs of a folder first."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_environment_is_that_of_the_role_and_of_the_stack(jobs: dict[str, Any]) -> None:
    defaults = {name: one["Default"] for name, one in TEMPLATE["Parameters"].items()}
    assert jobs["deploy"]["environment"] == defaults["GitHubEnvironment"]
    page = (ROOT / "docs" / "deployer.md").read_text()
    (settings,) = re.findall(r"^ *```toml\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    assert tomllib.loads(textwrap.dedent(settings))["prod"]["stack"] == defaults["StackName"]


def test_each_job_has_only_the_permissions_that_it_needs(jobs: dict[str, Any]) -> None:
    assert read_workflow(WORKFLOW)["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "plan": {"contents": "read", "id-token": "write"},
        "comment": {"pull-requests": "write"},
        "deploy": {"contents": "read", "id-token": "write"},
    }
    assert not steps(jobs["comment"], "actions/checkout")
    for name in ("plan", "deploy"):
        (checkout,) = steps(jobs[name], "actions/checkout")
        assert checkout["with"]["persist-credentials"] == "false"


def test_only_main_and_pull_requests_run_it_and_it_uses_no_secret() -> None:
    assert "secrets." not in WORKFLOW.read_text()
    paths = ["larder.toml", "requirements.txt"]
    assert read_workflow(WORKFLOW)["on"] == {
        "pull_request": {"paths": paths},
        "push": {"branches": ["main"], "paths": paths},
        "workflow_dispatch": "",
    }


def test_pull_requests_get_the_role_that_plans_and_merges_the_other(jobs: dict[str, Any]) -> None:
    longest = TEMPLATE["Resources"]["GitHubRole"]["Properties"]["MaxSessionDuration"]
    for name, role in (("plan", "PLAN_ROLE"), ("deploy", "DEPLOYER_ROLE")):
        (step,) = steps(jobs[name], "aws-actions/configure-aws-credentials")
        assert step["with"]["role-to-assume"] == f"${{{{ vars.{role} }}}}"
        assert int(step["with"].get("role-duration-seconds", 3600)) <= longest


def test_every_action_is_pinned_by_commit_with_its_version() -> None:
    assert unpinned(WORKFLOW) == []
    assert len(set(actions(read_workflow(WORKFLOW)))) == 5


def test_a_deployment_waits_for_the_one_before(jobs: dict[str, Any]) -> None:
    concurrency = jobs["deploy"]["concurrency"]
    assert concurrency["cancel-in-progress"] == "false"
    assert "${{" not in concurrency["group"]
