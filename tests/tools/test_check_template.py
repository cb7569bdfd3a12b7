"""checkov gets every resource, and both branches of every condition."""

from tools.check_template import for_checkov, where_conditions

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
