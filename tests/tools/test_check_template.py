"""checkov gets every resource, and both branches of every condition."""

import pytest

from larder_cli.deploy.release import GOVERNMENT, NO_BUDGETS, PLAIN, template_name
from tools.check_template import for_checkov, where_conditions, wrong_templates

NOTHING = {"Ref": "AWS::NoValue"}


def test_checkov_gets_each_branch_of_a_condition() -> None:
    written = {
        "Key": {"Fn::If": ["HasKey", {"Ref": "Key"}, NOTHING]},
        "Actions": [{"Fn::If": ["HasTopic", {"Fn::If": ["IsMail", "mail", "sns"]}, NOTHING]}],
    }
    assert where_conditions(written, True) == {"Key": {"Ref": "Key"}, "Actions": ["mail"]}
    assert where_conditions(written, False) == {"Actions": []}


def test_checkov_gets_resources_whose_condition_is_false_by_default() -> None:
    policy = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    written = {
        "Parameters": {"Edge": {"Default": "false"}},
        "Resources": {"Edge": {"Type": "T", "Condition": "HasEdge", "Properties": policy}},
    }
    assert for_checkov(written, True) == {
        "Parameters": {"Edge": {"Default": "false"}},
        "Resources": {"Edge": {"Type": "T", "Properties": policy}},
    }


def test_checkov_gets_the_variables_of_one_function() -> None:
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {}}}
    written = {"Resources": {"One": function, "Other": function}}
    chosen = for_checkov(written, True)["Resources"]
    assert [one["Properties"] for one in chosen.values()] == [{"Environment": {}}, {}]


def test_checkov_gets_one_path_of_the_api() -> None:
    body = {"openapi": "3.0.1", "paths": {"/one": {}, "/other": {}}}
    written = {"Resources": {"Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": body}}}}
    (chosen,) = for_checkov(written, True)["Resources"].values()
    assert chosen["Properties"]["Body"] == {"openapi": "3.0.1", "paths": {"/one": {}}}
    assert list(body["paths"]) == ["/one", "/other"]


@pytest.mark.parametrize(
    ("region", "partition", "name"),
    [
        ("eu-central-1", "aws", PLAIN),
        ("eu-north-1", "aws", NO_BUDGETS),
        ("xx-new-1", "aws", NO_BUDGETS),
        ("us-gov-west-1", "aws-us-gov", GOVERNMENT),
        ("cn-north-1", "aws-cn", GOVERNMENT),
    ],
)
def test_each_region_gets_a_template(region: str, partition: str, name: str) -> None:
    assert template_name(region, partition) == name


BUDGET, EDGE, TABLE = "AWS::Budgets::Budget", "AWS::CloudFront::Distribution", "AWS::DynamoDB::Table"
SMALL = {
    "Resources": {
        "MonthlyBudget": {"Type": BUDGET, "Condition": "HasBudget"},
        "EdgeDistribution": {"Type": EDGE, "Condition": "HasEdge"},
        "Table": {"Type": TABLE},
    },
    "Outputs": {},
    "Conditions": {"HasBudget": {}, "HasEdge": {}},
}


@pytest.mark.parametrize(
    ("region", "lacked", "wrong"),
    [
        ("eu-central-1", [], []),
        ("eu-central-1", [BUDGET], [f"eu-central-1 has no {BUDGET}, which {PLAIN} needs"]),
        ("eu-north-1", [BUDGET], []),
        ("eu-north-1", [], [f"eu-north-1 has {BUDGET} now"]),
        ("eu-north-1", [BUDGET, EDGE], [f"eu-north-1 has no {EDGE}, which {NO_BUDGETS} needs"]),
        ("us-gov-west-1", [BUDGET, EDGE], []),
        ("us-gov-west-1", [TABLE], [f"us-gov-west-1 has no {TABLE}, which {GOVERNMENT} needs"]),
        ("cn-north-1", [EDGE], []),
    ],
)
def test_a_region_with_the_wrong_template_is_named(region: str, lacked: list[str], wrong: list[str]) -> None:
    found = list(wrong_templates(SMALL, {region: lacked}))
    assert len(found) == len(wrong)
    assert all(line.startswith(begin) for line, begin in zip(found, wrong, strict=True))
