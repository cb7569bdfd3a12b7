"""Every exception to a rule of the template is needed and has a reason."""

import pytest

from tests.permissions import RESOURCES
from tools.check_template import (
    EXCEPTIONS,
    Exemption,
    Finding,
    findings_of,
    read_exemptions,
    stale,
    unexplained,
    where_conditions,
    with_every_resource,
)

QUEUE = Finding("CKV_AWS_27", "Ensure that it is encrypted", "AWS::SQS::Queue.Failures")
TABLE = Finding("CKV_AWS_28", "Ensure that it can be recovered", "AWS::DynamoDB::Table.TeamsTable")
ANY_QUEUE = Exemption("CKV_AWS_27", ("AWS::SQS::Queue.*",), "It is.")
USAGE_ALONE = Exemption("CKV_AWS_28", ("AWS::DynamoDB::Table.UsageTable",), "Of no use for long.")


def test_an_exemption_covers_only_its_resources_and_its_rule() -> None:
    assert unexplained([QUEUE, TABLE], [ANY_QUEUE, USAGE_ALONE]) == [TABLE]
    assert unexplained([QUEUE, TABLE], []) == [QUEUE, TABLE]
    every_rule_but_this = Exemption("CKV_AWS_27", ("*",), "Whatever it is.")
    assert unexplained([TABLE], [every_rule_but_this]) == [TABLE]


def test_an_exemption_that_covers_nothing_is_an_error() -> None:
    assert stale([QUEUE], [ANY_QUEUE, USAGE_ALONE]) == [
        "CKV_AWS_28 AWS::DynamoDB::Table.UsageTable"
    ]


def test_a_report_of_checkov_is_parsed() -> None:
    failed = {"check_id": TABLE.check, "check_name": TABLE.rule, "resource": TABLE.resource}
    summary = {"passed": 3, "parsing_errors": 0}
    assert findings_of({"summary": summary, "results": {"failed_checks": [failed]}}) == [TABLE]


def test_checkov_gets_each_branch_of_a_condition() -> None:
    nothing = {"Ref": "AWS::NoValue"}
    written = {
        "Key": {"Fn::If": ["HasKey", {"Ref": "Key"}, nothing]},
        "Actions": [{"Fn::If": ["HasTopic", {"Fn::If": ["IsMail", "mail", "sns"]}, nothing]}],
    }
    assert where_conditions(written, True) == {"Key": {"Ref": "Key"}, "Actions": ["mail"]}
    assert where_conditions(written, False) == {"Actions": []}


def test_checkov_gets_resources_whose_condition_is_false_by_default() -> None:
    policy = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    written = {
        "Parameters": {"Edge": {"Default": "false"}},
        "Resources": {"Edge": {"Type": "T", "Condition": "HasEdge", "Properties": policy}},
    }
    assert with_every_resource(written) == {
        "Parameters": {"Edge": {"Default": "false"}},
        "Resources": {"Edge": {"Type": "T", "Properties": policy}},
    }


@pytest.mark.parametrize(
    "summary", [{"passed": 0, "parsing_errors": 0}, {"passed": 3, "parsing_errors": 1}]
)
def test_a_template_that_checkov_cannot_parse_is_an_error(
    summary: dict[str, int],
) -> None:
    with pytest.raises(SystemExit):
        findings_of({"summary": summary, "results": {"failed_checks": []}})


def test_every_exception_has_a_reason_and_names_existing_resources() -> None:
    exemptions = read_exemptions(EXCEPTIONS.read_text())
    checks = [one.check for one in exemptions]
    assert len(checks) == len(set(checks))
    for one in exemptions:
        assert len(one.reason) > 50
        for resource in one.resources:
            _, _, logical_id = resource.rpartition(".")
            assert logical_id == "*" or logical_id in RESOURCES
