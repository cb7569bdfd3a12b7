"""`make deploy` before it calls AWS. tests/deployed/test_make_deploy.py deploys into an emulator."""

import re
import shlex
from typing import Any
from unittest.mock import Mock

import boto3
import click
import pytest
from botocore.stub import Stubber
from click.testing import CliRunner

from larder_cli.deploy.account import Account, capacity, check_roles, warm_instances
from larder_cli.deploy.advice import advice
from larder_cli.deploy.flow import check_name
from larder_cli.deploy.options import Change, all_values, changes, check_together
from larder_cli.deploy.region import chosen_region
from larder_cli.deploy.stack import Stack, State
from local.cloudformation import read_template
from tests.permissions import TEMPLATE
from tools.deploy.command import deploy
from tools.release.package import ROOT

DECLARED: dict[str, dict[str, Any]] = {
    "Level": {"Default": "INFO"},
    "Days": {"Default": 30, "Type": "Number", "MinValue": 1, "MaxValue": 3650},
    "Protect": {"Default": True, "AllowedValues": ["true", "false"]},
    "Prefix": {"Default": "", "MaxLength": 3, "AllowedPattern": "[a-z]*"},
}


def region(
    environ: dict[str, str] | None = None,
    *,
    profile: str | None = None,
    given: str | None = None,
    configured: str | None = None,
) -> str:
    return chosen_region(
        environ or {}, profile=profile, given=given, configured=configured, configured_in="samconfig.toml"
    )


@pytest.mark.parametrize(
    ("environ", "profile", "configured"),
    [
        ({"AWS_REGION": "eu-west-1"}, None, None),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, None, None),
        ({}, "eu-west-1", None),
        ({}, None, "eu-west-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1", "eu-west-1"),
    ],
)
def test_every_place_can_name_the_region(environ: dict[str, str], profile: str | None, configured: str | None) -> None:
    assert region(environ, profile=profile, configured=configured) == "eu-west-1"


def test_two_regions_are_refused_with_their_sources() -> None:
    with pytest.raises(click.UsageError) as refused:
        region({"AWS_REGION": "eu-west-1"}, profile="us-west-2")
    assert "AWS_REGION says eu-west-1, the AWS profile says us-west-2" in refused.value.message
    assert region({"AWS_REGION": "eu-west-1"}, profile="us-west-2", given="us-west-2") == "us-west-2"


def test_no_region_is_refused_with_the_line_to_paste() -> None:
    with pytest.raises(click.UsageError, match="export AWS_REGION="):
        region({"AWS_REGION": ""})


def test_a_parameter_without_a_value_gets_its_default() -> None:
    assert all_values(DECLARED, {"Level": ""}) == {"Level": "", "Days": "30", "Protect": "true", "Prefix": ""}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Lvl": "x"}, "Larder has no option Lvl. Did you mean Level?"),
        ({"Unlike": "x"}, "Larder has no option Unlike."),
        ({"Days": "x"}, "Days=x: must be a number"),
        ({"Days": "-1"}, "Days=-1: must be at least 1"),
        ({"Protect": "yes"}, "Protect=yes: must be one of true, false"),
        ({"Prefix": "a b"}, "Prefix=a b: must match [a-z]*"),
        ({"Prefix": "abcd"}, "Prefix=abcd: must have at most 3 characters"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(click.ClickException) as refused:
        all_values(DECLARED, given)
    assert refused.value.message == message


SUBNETS, GROUPS, BOTH = "subnet-0123abcd", "sg-0123abcd", "Lambda takes both or none."
SECRET = "x" * 43 + "="


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, None),
        ({"SubnetIds": SUBNETS, "SecurityGroupIds": GROUPS}, None),
        ({"SubnetIds": SUBNETS}, f"SubnetIds needs SecurityGroupIds: {BOTH}"),
        ({"SecurityGroupIds": GROUPS}, f"SecurityGroupIds needs SubnetIds: {BOTH}"),
        ({"AllowedNetworks": "203.0.113.0/24,2001:db8::/32"}, None),
        ({"TrustedProxyHops": "1"}, None),
        ({"AllowedNetworks": "203.0.113.0/24", "TrustedProxyHops": "1", "ProxySecretHash": SECRET}, None),
        ({"AllowedNetworks": "203.0.113.0/24", "TrustedProxyHops": "1"}, "AllowedNetworks with TrustedProxyHops needs"),
        (
            {"AllowedNetworks": "203.0.113.5/24"},
            "AllowedNetworks=203.0.113.5/24: must begin a network. Write 203.0.113.0/24",
        ),
        (
            {"AllowedNetworks": "2001:db8::1/32"},
            "AllowedNetworks=2001:db8::1/32: must begin a network. Write 2001:db8::/32",
        ),
        ({"AllowedNetworks": "203.0.113.5"}, "AllowedNetworks=203.0.113.5: must be networks such as"),
        ({"DualStack": "true"}, "DualStack needs DomainName"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given: dict[str, str], message: str | None) -> None:
    try:
        check_together(TEMPLATE["Rules"], all_values(TEMPLATE["Parameters"], given))
    except click.ClickException as error:
        refused: str | None = error.message
    else:
        refused = None
    assert refused == message or (message and refused and refused.startswith(message))


def test_changes_include_parameters_that_come_and_go() -> None:
    before = {"Gone": "x", "Level": "DEBUG", "Days": "30"}
    assert changes(before, all_values(DECLARED, {})) == [
        Change("Level", "DEBUG", "INFO"),
        Change("Protect", None, "true"),
        Change("Prefix", None, ""),
        Change("Gone", "x", None),
    ]


def test_every_parameter_of_the_template_has_a_default() -> None:
    declared = read_template(ROOT / "template.yaml")["Parameters"]
    assert all_values(declared, {}).keys() == declared.keys()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (None, State.NEW),
        ("REVIEW_IN_PROGRESS", State.NEW),
        ("CREATE_COMPLETE", State.READY),
        ("UPDATE_COMPLETE", State.READY),
        ("UPDATE_ROLLBACK_COMPLETE", State.READY),
        ("CREATE_IN_PROGRESS", State.BUSY),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", State.BUSY),
        ("DELETE_IN_PROGRESS", State.BUSY),
        ("ROLLBACK_COMPLETE", State.REMAINS),
        ("ROLLBACK_FAILED", State.REMAINS),
        ("CREATE_FAILED", State.REMAINS),
        ("UPDATE_FAILED", State.REMAINS),  # without outputs: it was never complete
        ("UPDATE_ROLLBACK_FAILED", State.STUCK),
        ("DELETE_FAILED", State.HALF_DELETED),
    ],
)
def test_what_a_deployment_can_do_with_a_stack(status: str | None, state: State) -> None:
    assert Stack("larder", status).state is state


def test_an_update_that_failed_is_no_creation() -> None:
    assert Stack("larder", "UPDATE_FAILED", outputs={"Version": "1.2.3"}).state is State.READY


@pytest.mark.parametrize(
    ("longest", "values", "is_new", "words"),
    [
        (45, {}, False, "more than 45 characters. Choose a shorter one, or set NamePrefix"),
        (40, {"Edge": "true"}, False, "more than 40 characters, the limit with Edge=true"),
        (24, {"Edge": "true"}, True, "more than 24 characters, the limit for new stacks"),
        (60, {"Edge": "true", "NamePrefix": "larder"}, True, "more than 60 characters"),
    ],
)
def test_the_name_of_a_stack_has_a_longest_length(
    longest: int, values: dict[str, str], is_new: bool, words: str
) -> None:
    check_name("s" * longest, values, is_new=is_new)
    with pytest.raises(click.UsageError, match=words):
        check_name("s" * (longest + 1), values, is_new=is_new)


def test_an_unknown_environment_is_refused_before_any_call() -> None:
    done = CliRunner().invoke(deploy, ["--env", "staging"])
    assert (done.exit_code, 'samconfig.toml has no environment "staging"' in done.output) == (2, True)


# The help ----------------------------------------------------------------------------------------


def test_the_options_in_the_examples_are_accepted() -> None:
    declared = read_template(ROOT / "template.yaml")["Parameters"]
    shown = re.findall(r"--parameter-overrides (\w+)=(\w+)", deploy.epilog or "")
    assert shown
    for name, value in shown:
        assert value in declared[name]["AllowedValues"]


# Advice ------------------------------------------------------------------------------------------


def test_advice_names_the_limits_to_remove() -> None:
    reason = "Stage: Unable to find Route by key GET /a/{b} within the provided RouteSettings (404)"
    lines = advice([reason, reason, "other"], api="a1", region="eu-central-1")
    (command,) = [line for line in lines if "aws " in line]
    assert shlex.split(command)[-1] == "GET /a/{b}"
    assert "--api-id a1 --stage-name '$default'" in command
    assert advice(["other"], api="a1", region="eu-central-1") == []


@pytest.mark.parametrize(
    "reason",
    [
        "Rate exceeded (Service: Iam, Status Code: 400)",
        "Resource handler returned message: Rate exceeded (HandlerErrorCode: Throttling)",
        "Too Many Requests (Service: ApiGatewayV2, Status Code: 429)",
    ],
)
def test_advice_about_too_many_requests(reason: str) -> None:
    (line,) = advice([f"GetOk: {reason}"], api="", region="eu-central-1")
    assert "Nothing is wrong" in line


@pytest.mark.parametrize(
    ("given", "units"),
    [
        ({}, ("28000", "14000")),
        ({"ThrottlingRate": "7000"}, ("28000", "14000")),
        ({"ThrottlingRate": "100"}, ("12000", "4000")),
        ({"ThrottlingRate": "9000"}, ("36000", "18000")),
        ({"ThrottlingRate": "30000"}, ("40000", "40000")),
        ({"ThrottlingRate": "9000", "TableReadUnits": "5"}, ("5", "18000")),
    ],
)
def test_the_limits_of_the_tables_follow_the_rate(given: dict[str, str], units: tuple[str, str]) -> None:
    values = all_values(TEMPLATE["Parameters"], given)
    assert (values["TableReadUnits"], values["TableWriteUnits"]) == units


@pytest.mark.parametrize(
    ("given", "concurrency", "said"),
    [
        ({}, 1000, []),
        ({}, 100, ["350 functions"]),
        ({"ThrottlingRate": "21000"}, 2000, ["API Gateway takes 10,000"]),
        ({"TableWriteUnits": "50000"}, 1000, ["40,000 units"]),
        ({"TableReadUnits": "12000"}, 1000, ["28,000 would follow"]),
        ({"WarmInstances": "10"}, 1000, []),
        ({"WarmInstances": "50", "ThrottlingRate": "4000"}, 400, ["Set at most 40"]),
    ],
)
def test_a_plan_says_what_the_quotas_do_not_allow(given: dict[str, str], concurrency: int, said: list[str]) -> None:
    first, *rest = capacity(all_values(TEMPLATE["Parameters"], given), concurrency)
    assert f"the account runs {concurrency:,}" in first
    assert len(rest) == len(said)
    assert all(words in line for words, line in zip(said, rest, strict=True))


@pytest.mark.parametrize(
    ("roles", "policies", "refused"),
    [
        ((3, 6), (0, 2), None),
        ((4, 6), (0, 2), "4 of at most 6 roles, and the stack needs 3 more"),
        ((3, 6), (1, 2), "1 of at most 2 managed policies, and the stack needs 2 more"),
    ],
)
def test_an_account_without_room_for_roles_or_policies_is_refused(
    roles: tuple[int, int], policies: tuple[int, int], refused: str | None
) -> None:
    session = boto3.Session("testing", "testing", region_name="eu-central-1")
    clients = {name: session.client(name) for name in ("iam", "cloudformation")}
    account = Account(Mock(client=clients.__getitem__), "1", "arn", "eu-central-1", "larder")
    resources = {f"Role{number}": {"Type": "AWS::IAM::Role"} for number in range(3)}
    resources |= {f"Policy{number}": {"Type": "AWS::IAM::ManagedPolicy"} for number in range(2)}
    resources |= {"KeyPolicy": {"Type": "AWS::IAM::ManagedPolicy", "Condition": "HasKmsKey"}}
    summary = dict(zip(("Roles", "RolesQuota", "Policies", "PoliciesQuota"), (*roles, *policies), strict=True))
    with Stubber(clients["iam"]) as iam, Stubber(clients["cloudformation"]) as cloudformation:
        cloudformation.add_client_error("describe_stacks", "ValidationError")
        iam.add_response("get_account_summary", {"SummaryMap": summary})
        if refused is None:
            assert len(list(check_roles(account, {"Resources": resources}))) == 2
            return
        with pytest.raises(click.ClickException, match=refused) as error:
            list(check_roles(account, {"Resources": resources}))
    assert "request-service-quota-increase --service-code iam" in error.value.message


def test_without_the_permission_roles_are_not_checked() -> None:
    session = boto3.Session("testing", "testing", region_name="eu-central-1")
    clients = {name: session.client(name) for name in ("iam", "cloudformation")}
    account = Account(Mock(client=clients.__getitem__), "1", "arn", "eu-central-1", "larder")
    with Stubber(clients["iam"]) as iam, Stubber(clients["cloudformation"]) as cloudformation:
        cloudformation.add_client_error("describe_stacks", "ValidationError")
        iam.add_client_error("get_account_summary", "AccessDenied")
        (line,) = check_roles(account, {"Resources": {"Role": {"Type": "AWS::IAM::Role"}}})
    assert "Allow iam:GetAccountSummary" in line


@pytest.mark.parametrize(("warm", "lines"), [("0", 0), ("10", 1)])
def test_an_account_that_runs_few_functions_has_none_to_keep_warm(warm: str, lines: int) -> None:
    assert len(list(warm_instances({"WarmInstances": warm}, None))) == lines
