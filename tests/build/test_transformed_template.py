"""The parts that SAM adds to the template."""

import json
import subprocess
from typing import Any

import pytest

from larder_cli.deploy.changes import KEPT
from tests.permissions import RESOURCES, Grant, granted, grants
from tests.sam import ROOT, transformed_resources
from tests.variables import MOST_BYTES, longest_variables, measured, variables_of

pytestmark = pytest.mark.build

AMAZON = "arn:${AWS::Partition}:iam::aws:policy"


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    return transformed_resources()


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one.get("Properties", {}) for name, one in resources.items() if one["Type"] == kind}


def test_the_stack_has_room_for_more_resources(resources: dict[str, Any]) -> None:
    """CloudFormation takes 500. docs/decisions/resources.md says what to do about more."""
    assert len(resources) < 440


def test_every_function_has_the_settings_of_globals(resources: dict[str, Any]) -> None:
    functions = of_type(resources, "AWS::Lambda::Function")
    assert len(functions) > 40
    for function in functions.values():
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == "python3.13"
        assert function["TracingConfig"] == {"Mode": {"Ref": "Tracing"}}
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
        assert 0 < function["Timeout"] <= 900


def test_every_role_has_the_boundary_and_the_path(resources: dict[str, Any]) -> None:
    roles = of_type(resources, "AWS::IAM::Role").values()
    assert len(roles) > 40
    for role in roles:
        for setting, parameter in (("PermissionsBoundary", "PermissionsBoundary"), ("Path", "RolePath")):
            assert role[setting] == {"Fn::If": [f"Has{parameter}", {"Ref": parameter}, {"Ref": "AWS::NoValue"}]}


def test_the_longest_variables_of_every_function_fit(resources: dict[str, Any]) -> None:
    for name, function in of_type(resources, "AWS::Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        assert measured(longest_variables(variables)) <= MOST_BYTES, name
        assert longest_variables(variables) == longest_variables(variables_of(name))


def test_every_function_has_its_own_role(resources: dict[str, Any]) -> None:
    functions = of_type(resources, "AWS::Lambda::Function")
    roles = [function["Role"]["Fn::GetAtt"] for function in functions.values()]
    assert sorted(role for role, _ in roles) == sorted(of_type(resources, "AWS::IAM::Role"))


def allowed(resources: dict[str, Any], function: str) -> set[Grant]:
    """What the role that SAM creates for a function allows, in a stack with the edge."""
    role = resources[f"{function}Role"]["Properties"]
    documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
    for arn in role["ManagedPolicyArns"]:
        policy = arn["Fn::If"][1] if "Fn::If" in arn else arn
        if "Ref" in policy:
            documents.append(resources[policy["Ref"]]["Properties"]["PolicyDocument"])
    return {
        grant
        for document in documents
        for one in document["Statement"]
        for statement in [one["Fn::If"][1] if "Fn::If" in one else one]
        for grant in granted([statement])
    }


@pytest.mark.parametrize(
    "function", [name for name, one in RESOURCES.items() if "Handler" in one.get("Properties", {})]
)
def test_a_role_allows_the_policies_of_the_template_and_reporting_failures(
    resources: dict[str, Any], function: str
) -> None:
    queues = {grant for grant in allowed(resources, function) - grants(function) if grant[0] == "sqs:SendMessage"}
    assert allowed(resources, function) == grants(function) | queues
    background = RESOURCES[function]["Properties"].get("EventInvokeConfig", {})
    assert len(queues) == ("DestinationConfig" in background)


def test_every_permission_to_invoke_names_its_source(resources: dict[str, Any]) -> None:
    for permission in of_type(resources, "AWS::Lambda::Permission").values():
        assert permission["Action"] == "lambda:InvokeFunction"
        assert permission["Principal"] in ("apigateway.amazonaws.com", "events.amazonaws.com")
        assert permission["SourceArn"]


def test_the_apis_own_address_can_be_disabled(resources: dict[str, Any]) -> None:
    (server,) = resources["HttpApi"]["Properties"]["Body"]["servers"]
    assert server["x-amazon-apigateway-endpoint-configuration"] == {
        "disableExecuteApiEndpoint": {"Fn::If": ["HasOnlyDomain", True, False]}
    }


def test_every_route_uses_payload_format_2(resources: dict[str, Any]) -> None:
    paths = resources["HttpApi"]["Properties"]["Body"]["paths"]
    integrations = [method["x-amazon-apigateway-integration"] for path in paths.values() for method in path.values()]
    assert len(integrations) >= 10
    assert {integration["payloadFormatVersion"] for integration in integrations} == {"2.0"}
    assert {integration["type"] for integration in integrations} == {"aws_proxy"}


def test_amazons_policies_only_allow_logs_and_traces_and_in_a_vpc_its_interfaces(resources: dict[str, Any]) -> None:
    roles = [resource["Properties"] for resource in resources.values() if resource["Type"] == "AWS::IAM::Role"]
    assert roles
    network, logs, traces = (
        {"Fn::Sub": f"{AMAZON}/{name}"}
        for name in (
            "service-role/AWSLambdaVPCAccessExecutionRole",
            "service-role/AWSLambdaBasicExecutionRole",
            "AWSXrayWriteOnlyAccess",
        )
    )
    for role in roles:
        amazons = [policy for policy in role["ManagedPolicyArns"] if AMAZON in json.dumps(policy)]
        assert amazons == [{"Fn::If": ["InVpc", network, logs]}, traces]


def test_a_role_allows_sending_failed_background_runs_to_the_queue(resources: dict[str, Any]) -> None:
    configured = of_type(resources, "AWS::Lambda::EventInvokeConfig").values()
    # That of KeepWarm only turns retries off.
    reporting = [own for own in configured if own["DestinationConfig"]]
    assert len(configured) == len(reporting) + 1 >= 6
    for own in reporting:
        function = own["FunctionName"]["Ref"]
        queue = own["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"]
        statements = [
            statement
            for policy in resources[f"{function}Role"]["Properties"]["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]
        grant = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": {"Fn::GetAtt": queue}}
        assert grant in statements


def test_dead_letter_policies_name_the_rules_that_sam_creates(resources: dict[str, Any]) -> None:
    rules = {
        name
        for name, one in of_type(resources, "AWS::Events::Rule").items()
        if any("DeadLetterConfig" in target for target in one["Targets"])
    }
    named = [
        arn["Fn::GetAtt"][0]
        for policy in of_type(resources, "AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        for arn in as_list(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
    ]
    assert sorted(named) == sorted(rules)


REPLACING = """
import json, sys
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", sys.argv[1]).schema
print(json.dumps([schema.get(name, []) for name in ("createOnlyProperties", "conditionalCreateOnlyProperties")]))
"""


@pytest.mark.parametrize("kind", [kind for kind in KEPT if "Serverless" not in kind])
def test_the_check_of_upgrades_knows_every_property_that_replaces_data(kind: str) -> None:
    """CloudFormation's own list, which cfn-lint brings."""
    python = ROOT / ".tools" / "sam" / "bin" / "python"
    done = subprocess.run([python, "-c", REPLACING, kind], capture_output=True, text=True, timeout=60, check=True)
    always, sometimes = json.loads(done.stdout)
    assert always
    assert {path.removeprefix("/properties/") for path in always + sometimes} <= set(KEPT[kind])


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
