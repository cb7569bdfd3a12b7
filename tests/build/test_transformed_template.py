"""What SAM makes of the template: the parts that it adds by itself."""

from typing import Any

import pytest

from tests.sam import transformed_resources

pytestmark = pytest.mark.build


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    return transformed_resources()


def test_every_route_uses_payload_format_2(resources: dict[str, Any]) -> None:
    paths = resources["HttpApi"]["Properties"]["Body"]["paths"]
    integrations = [
        method["x-amazon-apigateway-integration"]
        for path in paths.values()
        for method in path.values()
    ]
    assert len(integrations) >= 10
    assert {one["payloadFormatVersion"] for one in integrations} == {"2.0"}
    assert {one["type"] for one in integrations} == {"aws_proxy"}


def test_no_role_holds_more_than_logs_and_traces_from_amazons_policies(
    resources: dict[str, Any],
) -> None:
    roles = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::IAM::Role"]
    assert roles
    foreign = {
        policy.rpartition("/")[2]
        for role in roles
        for policy in role["ManagedPolicyArns"]
        if isinstance(policy, str)
    }
    assert foreign == {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess"}


def test_a_failed_background_run_may_be_written_to_its_queue(resources: dict[str, Any]) -> None:
    for function, queue in [
        ("CommitUpload", "CommitUploadFailures"),
        ("SweepArtifacts", "SweepArtifactsFailures"),
    ]:
        statements = [
            statement
            for policy in resources[f"{function}Role"]["Properties"]["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]
        assert {
            "Effect": "Allow",
            "Action": "sqs:SendMessage",
            "Resource": {"Fn::GetAtt": [queue, "Arn"]},
        } in statements


def test_dead_letter_policies_name_the_rules_that_sam_makes(resources: dict[str, Any]) -> None:
    rules = {name for name, one in resources.items() if one["Type"] == "AWS::Events::Rule"}
    named = {
        one["Properties"]["PolicyDocument"]["Statement"][0]["Condition"]["ArnEquals"][
            "aws:SourceArn"
        ]["Fn::GetAtt"][0]
        for one in resources.values()
        if one["Type"] == "AWS::SQS::QueuePolicy"
    }
    assert named == rules
