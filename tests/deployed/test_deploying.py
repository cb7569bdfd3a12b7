"""`make deploy` and `larder install` of a small release: the region, a new stack, failures and options."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import WaiterError

from local.template import REGION
from tests.deploying import ELSEWHERE, TEMPLATE, Account, Done, empty_account, obey
from tests.emulator.aws_behaviour import THROTTLED
from tests.local.stub_service import eventually


@pytest.fixture
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Account]:
    with empty_account(tmp_path, way=getattr(request, "param", "larder")) as account:
        yield account


both_ways = pytest.mark.parametrize("account", ["make", "larder"], indirect=True)
"""What the two commands read differently: region, options and answers. The rest is one implementation."""


# The region -------------------------------------------------------------------------------------


def profile(account: Account, region: str) -> None:
    (account.folder / ".aws").mkdir()
    (account.folder / ".aws" / "config").write_text(f"[default]\nregion = {region}\n")


@both_ways
@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_one_variable_names_the_region(account: Account, variable: str) -> None:
    done = account.deploy(environ={variable: ELSEWHERE})
    assert (done.status, f"region {ELSEWHERE}" in done.text) == (0, True), done.text
    assert account.stack(ELSEWHERE) is not None
    assert account.stack(REGION) is None


@both_ways
def test_the_profile_names_the_region(account: Account) -> None:
    profile(account, ELSEWHERE)
    done = account.deploy(environ={})
    assert (done.status, f"region {ELSEWHERE}" in done.text) == (0, True), done.text
    assert account.stack(ELSEWHERE) is not None


def test_it_stops_if_the_profile_names_another_region(account: Account) -> None:
    profile(account, ELSEWHERE)
    done = account.deploy(environ={"AWS_REGION": REGION})
    assert done.status == 2
    assert f"AWS_REGION says {REGION}, the AWS profile says {ELSEWHERE}" in done.text
    assert (account.stack(REGION), account.stack(ELSEWHERE)) == (None, None)


def test_a_region_before_the_command_counts(account: Account) -> None:
    program = Path(sys.executable).with_name("larder")
    given = ("--config", account.folder / "larder.toml", "--release", account.folder)
    done = account.run([program, "--region", ELSEWHERE, "plan", *given], environ={})
    assert (done.status, f"region {ELSEWHERE}" in done.text) == (3, True), done.text


@both_ways
def test_a_region_without_budgets_gets_a_template_without_them(account: Account) -> None:
    north = ("--region", "eu-north-1")
    account.configure(ProtectData="true", MonthlyBudgetDollars="500")
    refused = account.deploy(*north)
    assert (refused.status, account.stack("eu-north-1")) == (2, None)
    assert "MonthlyBudgetDollars=500: CloudFormation has no budgets in eu-north-1" in refused.text.replace("\n", " ")
    account.configure(ProtectData="true")
    done = account.deploy(*north)
    assert done.status == 0, done.text
    s3 = account.client("s3", "eu-north-1")
    (bucket,) = s3.list_buckets()["Buckets"]
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket["Name"])["Contents"]]
    assert [key for key in keys if "template" in key and "no-budgets" not in key] == []


@both_ways
def test_it_stops_without_a_region(account: Account) -> None:
    done = account.deploy(environ={})
    assert (done.status, "export AWS_REGION=" in done.text) == (2, True)


# A new stack ------------------------------------------------------------------------------------


@both_ways
def test_a_new_stack_is_complete_before_it_is_protected(account: Account) -> None:
    done = account.deploy()
    assert done.status == 0, done.text
    assert "The stack is complete. Protecting its data." in done.text
    assert account.is_protected()
    stack = account.stack()
    assert stack is not None
    assert stack["EnableTerminationProtection"]
    *_, users, teams, keys, _, _, _, smoke = done.text.splitlines()
    prefix = "  larder --stack larder-prod"
    assert users.startswith(f"{prefix} users create")
    assert teams.startswith(f"{prefix} teams create")
    assert keys.startswith(f"{prefix} keys create")
    assert smoke == ("  TURBO_API=https://api.example TURBO_TOKEN=... larder --stack larder-prod smoke")


def test_a_trial_stays_unprotected(account: Account) -> None:
    account.configure(ProtectData="false")
    assert account.deploy().status == 0
    assert not account.is_protected()
    stack = account.stack()
    assert stack is not None
    assert not stack["EnableTerminationProtection"]


@both_ways
def test_it_asks_before_it_creates(account: Account) -> None:
    done = account.deploy(answers="n\n")
    assert "Create it?" in done.text
    assert account.stack() is None
    assert account.deploy(answers="y\n").status == 0
    assert account.is_protected()


def test_a_change_that_is_not_executed_leaves_the_stack_protected(account: Account) -> None:
    assert account.deploy().status == 0
    account.configure(ProtectData="false")
    done = account.deploy(answers="n\n")
    assert (done.status, "Nothing was deployed" in done.text) == (0, True), done.text
    stack = account.stack()
    assert stack is not None
    assert stack["EnableTerminationProtection"]
    assert account.is_protected()
    assert account.deploy().status == 0
    assert not account.is_protected()
    assert not (account.stack() or {})["EnableTerminationProtection"]


def test_a_stack_that_lost_its_protection_gets_it_back_without_a_change(account: Account) -> None:
    assert account.deploy().status == 0
    account.client("cloudformation").update_termination_protection(
        StackName="larder-prod", EnableTerminationProtection=False
    )
    assert "Nothing changes" in account.deploy().text
    assert (account.stack() or {})["EnableTerminationProtection"]


def test_an_account_that_allows_few_functions_is_refused(tmp_path: Path) -> None:
    with empty_account(tmp_path, functions_at_once=10) as account:
        done = account.deploy()
        assert done.status == 1
        assert "at most 10 functions at once" in done.text
        assert "aws service-quotas request-service-quota-increase --service-code lambda" in done.text
        assert account.stack() is None
        assert account.deploy("--accept-low-concurrency").status == 0


# Failures ---------------------------------------------------------------------------------------


def test_the_command_cleans_up_after_a_creation_that_failed(account: Account) -> None:
    account.failing.write_text("4")  # after the bucket for the code and its policy
    failed = account.deploy()
    assert failed.status == 1, failed.text
    assert "this failure was requested by a test" in failed.text
    assert "run the same command again" in failed.text
    stack = account.stack()
    assert stack is not None
    assert stack["StackStatus"] == "CREATE_FAILED"
    done = account.deploy()
    assert done.status == 0, done.text
    assert "It holds no data" in done.text
    assert account.is_protected()


MANY = TEMPLATE.replace(
    "Outputs:",
    "".join(
        f"  Note{number}: {{Type: AWS::SSM::Parameter, Properties: {{Type: String, Value: a}}}}\n"
        for number in range(12)
    )
    + "Outputs:",
)


def test_a_creation_of_which_a_third_is_throttled_ends_complete(account: Account) -> None:
    assert account.larder("plan").status == 3  # creates the bucket for the code
    account.release(MANY)
    account.failing.write_text(f"{THROTTLED} 3")
    done = account.deploy()
    assert done.status == 0, done.text
    assert done.text.count("AWS throttled 1 of the resources") > 3
    assert "It holds no data" not in done.text
    assert account.is_protected()
    notes = account.client("ssm").get_paginator("describe_parameters").paginate()
    assert sum(len(page["Parameters"]) for page in notes) == 14


def test_a_creation_that_was_throttled_is_continued(account: Account) -> None:
    """As after a process that ended meanwhile."""
    cloudformation = account.client("cloudformation")
    account.failing.write_text(THROTTLED)
    cloudformation.create_stack(StackName="larder-prod", TemplateBody=MANY, DisableRollback=True)
    eventually(lambda: (account.stack() or {})["StackStatus"] == "CREATE_FAILED", 20)
    done = account.deploy()
    assert done.status == 0, done.text
    assert "has stopped, because AWS throttled it" in done.text
    assert "It holds no data" not in done.text
    assert account.is_protected()


def test_a_creation_without_progress_ends_with_the_reason(account: Account) -> None:
    assert account.larder("plan").status == 3
    account.failing.write_text(f"{THROTTLED} 1")
    failed = account.deploy()
    assert (failed.status, "Nothing is wrong with the deployment" in failed.text) == (1, True)
    assert (account.stack() or {})["StackStatus"] == "UPDATE_FAILED"
    account.failing.unlink()
    assert account.deploy().status == 0
    assert account.is_protected()


def test_a_protected_creation_that_failed_can_be_cleaned_up_too(account: Account) -> None:
    """Other tools leave this: a table that the rollback could not delete."""
    cloudformation = account.client("cloudformation")
    template = TEMPLATE
    account.failing.write_text("3")
    cloudformation.create_stack(StackName="larder-prod", TemplateBody=template)
    with pytest.raises(WaiterError):
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName="larder-prod", WaiterConfig={"Delay": 1, "MaxAttempts": 20}
        )
    stack = account.stack()
    assert stack is not None
    assert stack["StackStatus"] == "ROLLBACK_FAILED"
    done = account.deploy()
    assert done.status == 0, done.text
    assert account.is_protected()


def add_a_resource(account: Account) -> None:
    more = "  More: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: more}}\nOutputs:"
    account.release(TEMPLATE.replace("Outputs:", more))


def test_the_command_continues_after_an_update_that_failed(account: Account) -> None:
    assert account.deploy().status == 0
    add_a_resource(account)
    account.failing.write_text("1")
    assert account.deploy().status == 1
    stack = account.stack()
    assert stack is not None
    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert account.is_protected()
    assert account.deploy().status == 0


# Options ----------------------------------------------------------------------------------------


WORDS = 'say "it is"  {"a":["b c"]} \N{CHEESE WEDGE}'


@both_ways
def test_a_text_with_quotes_and_spaces_arrives_unchanged(account: Account) -> None:
    # SAM drops a backslash before a quote, when it reads samconfig.toml.
    words = WORDS if account.way == "make" else WORDS + r"\""
    account.configure(Words=words)
    done = account.deploy()
    assert done.status == 0, done.text
    assert account.note("Words") == f"<{words}>"


@both_ways
def test_an_option_that_is_taken_out_returns_to_its_default(account: Account) -> None:
    account.configure(Level="DEBUG")
    account.deploy()
    assert account.note("Level") == "DEBUG"
    account.configure()
    done = account.deploy()
    assert "Level" in done.text
    assert account.note("Level") == "INFO"


def test_a_new_default_arrives(account: Account) -> None:
    account.deploy()
    account.release(TEMPLATE.replace("Default: INFO", "Default: WARN"))
    done = account.deploy()
    assert [line.split() for line in done.text.splitlines() if line.startswith("Level")] == [["Level", "INFO", "WARN"]]
    assert account.note("Level") == "WARN"


@both_ways
def test_an_override_applies_in_addition_to_those_of_the_file(account: Account) -> None:
    account.configure(ProtectData="false", Words="file")
    given = ("Level=DEBUG", "Words=line")
    if account.way == "make":
        account.deploy("--parameter-overrides", *given)
    else:
        account.deploy("--set", given[0], "--set", given[1])
    assert (account.note("Level"), account.note("Words")) == ("DEBUG", "<line>")
    assert not account.is_protected()


@both_ways
def test_a_misspelt_option_is_refused_by_name(account: Account) -> None:
    account.configure(Wrods="x")
    done = account.deploy()
    assert done.status == 1
    assert "Larder has no option Wrods. Did you mean Words?" in done.text
    assert account.stack() is None


# An existing bucket -----------------------------------------------------------------------------


@both_ways
def test_a_bucket_that_is_not_ready_or_has_artifacts_is_refused_before_anything_changes(account: Account) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="acme-build-cache")
    s3.put_object(Bucket="acme-build-cache", Key="artifacts/team_1/abc/1", Body=b"artifact")
    account.configure(ExistingBucket="acme-build-cache")
    refused = account.deploy()
    assert (refused.status, "acme-build-cache is not ready" in refused.text) == (1, True)
    obey(s3, refused.text)
    refused = account.deploy()
    assert (refused.status, "--accept-stored-artifacts" in refused.text) == (1, True)
    assert account.stack() is None
    done = account.deploy("--accept-stored-artifacts")
    assert done.status == 0, done.text
    # The stack's own artifacts need no permission.
    done = account.deploy()
    assert done.status == 0, done.text


def test_a_bucket_of_another_region_or_account_is_refused(account: Account) -> None:
    account.client("s3", ELSEWHERE).create_bucket(
        Bucket="acme-elsewhere", CreateBucketConfiguration={"LocationConstraint": ELSEWHERE}
    )
    account.configure(ExistingBucket="acme-elsewhere")
    refused = account.deploy()
    assert f"acme-elsewhere is in {ELSEWHERE}, and the stack in {REGION}" in refused.text
    theirs = boto3.session.Session("111111111111", "testing", region_name=REGION)
    theirs.client("s3", endpoint_url=account.emulator.url).create_bucket(Bucket="acme-theirs")
    account.configure(ExistingBucket="acme-theirs")
    refused = account.deploy()
    assert "The bucket has to belong to the account 000000000000" in refused.text
    assert account.stack() is None


# The edge ---------------------------------------------------------------------------------------


def test_the_policies_that_the_edge_needs_are_named_after_the_deployment(account: Account) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="acme-build-cache")
    account.configure(ExistingBucket="acme-build-cache")
    obey(s3, account.deploy().text)
    done = account.deploy()
    assert (done.status, "the edge" in done.text) == (0, False), done.text
    # The emulator sees no change in a condition alone.
    account.configure(ExistingBucket="acme-build-cache", Edge="true", Level="DEBUG")
    done = account.deploy()
    assert done.status == 0, done.text
    assert "the policy of ExistingBucket needs the statement of docs/edge.md" in done.text


def named(account: Account, stack: str) -> tuple[str, str]:
    return ("--stack-name" if account.way == "make" else "--stack", stack)


@both_ways
def test_a_name_of_25_characters_is_refused_for_a_new_stack(account: Account) -> None:
    refused = account.deploy(*named(account, "s" * 25))
    assert (refused.status, "more than 24 characters" in refused.text) == (2, True)
    assert account.deploy(*named(account, "s" * 24)).status == 0


# Limits of routes -------------------------------------------------------------------------------

LIMITED = """
AWSTemplateFormatVersion: "2010-09-09"
Description: "Larder: a small release with limits of routes."
Parameters:
  ProtectData: {Type: String, Default: "false"}
  ExistingBucket: {Type: String, Default: ""}
  Edge: {Type: String, Default: "false"}
  Level: {Type: String, Default: INFO}
Resources:
  HttpApi:
    Type: AWS::ApiGatewayV2::Api
    Properties:
      Body: {openapi: "3.0.1", info: {title: larder}, paths: %s}
  Stage:
    Type: AWS::ApiGatewayV2::Stage
    Properties: {ApiId: !Ref HttpApi, StageName: $default, AutoDeploy: true, RouteSettings: %s}
  Note: {Type: AWS::SSM::Parameter, DependsOn: Stage, Properties: {Type: String, Value: "%s"}}
Outputs:
  Api: {Value: !Ref HttpApi}
"""


def release(account: Account, *paths: str, limited: str | None, note: str = "a") -> Done:
    """Deploy a version whose API has these routes, of which one has limits of its own."""
    routes: dict[str, Any] = {path: {"get": {}} for path in paths}
    own: dict[str, Any] = {f"GET {limited}": {"ThrottlingRateLimit": 1}} if limited else {}
    text = LIMITED % (json.dumps(routes), json.dumps(own), note)
    account.configure()
    account.release(text)
    return account.deploy()


def limits(account: Account) -> set[str]:
    gateway = account.client("apigatewayv2")
    (stage,) = gateway.get_stages(ApiId=account.output("Api"))["Items"]
    return set(stage["RouteSettings"])


def remove_limits(account: Account, printed: str) -> None:
    """Run the commands of a message, as the AWS command line would."""
    lines = [line for line in printed.splitlines() if "delete-route-settings" in line]
    assert lines, printed
    for line in lines:
        *_, api, _, stage, _, key = shlex.split(line)
        account.client("apigatewayv2").delete_route_settings(ApiId=api, StageName=stage, RouteKey=key)


def test_a_version_without_a_limited_route_is_deployed_once_its_limits_are_removed(account: Account) -> None:
    assert release(account, "/a", "/b", limited="/b").status == 0
    refused = release(account, "/a", limited="/a")
    assert (refused.status, "Unable to find Route by key GET /b" in refused.text) == (1, True)
    assert (account.stack() or {})["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    remove_limits(account, refused.text)
    done = release(account, "/a", limited="/a")
    assert done.status == 0, done.text
    assert limits(account) == {"GET /a"}


@pytest.mark.parametrize("forward", [True, False], ids=["the same version", "the version before"])
def test_a_rollback_that_limits_of_a_route_stop_is_finished(account: Account, forward: bool) -> None:
    assert release(account, "/a", limited=None).status == 0
    account.failing.write_text("Note")
    failed = release(account, "/a", "/b", limited="/b", note="b")
    assert failed.status == 1
    assert (account.stack() or {})["StackStatus"] == "UPDATE_ROLLBACK_FAILED", failed.text
    if forward:
        done = release(account, "/a", "/b", limited="/b", note="b")
        assert done.status == 0, done.text
        assert limits(account) == {"GET /b"}
        return
    done = release(account, "/a", limited=None)
    assert done.status == 0, done.text
    remove_limits(account, done.text)
    assert limits(account) == set()
    assert release(account, "/a", limited="/a", note="c").status == 0


def test_another_reason_that_stops_a_rollback_is_named_with_the_command(account: Account) -> None:
    assert release(account, "/a", limited=None).status == 0
    account.failing.write_text("Note")
    assert release(account, "/a", "/b", limited="/b", note="b").status == 1
    account.failing.write_text("Stage")
    stopped = release(account, "/a", limited=None)
    assert stopped.status == 1
    assert "continue-update-rollback --stack-name larder-prod" in stopped.text, stopped.text
    assert "--resources-to-skip Stage" in stopped.text


def test_a_throttled_deployment_says_that_nothing_is_wrong_with_it(account: Account) -> None:
    assert account.deploy().status == 0
    add_a_resource(account)
    account.failing.write_text(THROTTLED)
    failed = account.deploy()
    assert (failed.status, "Nothing is wrong with the deployment" in failed.text) == (1, True)
    assert account.deploy().status == 0
