"""`make check` refuses a template with which an upgrade from the last release would lose data, or fail."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from larder_cli.deploy.changes import problems
from tools.data_resources import data_resources, last_upgrades, recording, stopped_upgrades
from tools.release.package import ROOT

BY_USER = {
    "IndexName": "by_user",
    "KeySchema": [{"AttributeName": "user", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
TEMPLATE: dict[str, Any] = {
    "Parameters": {"Name": {"Default": ""}, "Own": {"Default": True}},
    "Conditions": {
        "Named": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Name"}, ""]}]},
        "Owned": {"Fn::Equals": [{"Ref": "Own"}, "true"]},
        "OwnedAndNamed": {"Fn::And": [{"Condition": "Owned"}, {"Condition": "Named"}]},
        "OwnedOrNamed": {"Fn::Or": [{"Condition": "Owned"}, {"Condition": "Named"}]},
    },
    "Resources": {
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": "id", "AttributeType": "S"},
                    {"AttributeName": "user", "AttributeType": "S"},
                ],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "GlobalSecondaryIndexes": [BY_USER],
            },
        },
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Secret": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {"GenerateSecretString": {"PasswordLength": 64}},
        },
        "Api": {"Type": "AWS::Serverless::HttpApi"},
        "Queue": {"Type": "AWS::SQS::Queue"},
    },
}


def index(name: str, **other: Any) -> dict[str, Any]:
    return {**BY_USER, "IndexName": name, **other}


def found(logical_id: str, **changes: Any) -> list[str]:
    """The problems of an upgrade from TEMPLATE that changes these properties."""
    template = copy.deepcopy(TEMPLATE)
    template["Resources"][logical_id].setdefault("Properties", {}).update(changes)
    return upgraded(template)


def upgraded(template: dict[str, Any]) -> list[str]:
    return list(problems(data_resources(TEMPLATE), data_resources(template)))


@pytest.mark.parametrize("logical_id", ["Table", "Bucket", "Secret", "Api"])
def test_a_resource_is_not_deleted_renamed_or_given_another_type(logical_id: str) -> None:
    template = copy.deepcopy(TEMPLATE)
    resource = template["Resources"].pop(logical_id)
    missing = [f"{logical_id} is missing: CloudFormation would delete it with its data"]
    assert upgraded(template) == missing
    template["Resources"][f"{logical_id}2"] = resource
    assert upgraded(template) == missing
    template["Resources"][logical_id] = {**resource, "Type": "AWS::SQS::Queue"}
    assert upgraded(template) == missing
    template["Resources"][logical_id] = {**resource, "Type": "AWS::DynamoDB::GlobalTable"}
    assert upgraded(template) == missing


@pytest.mark.parametrize(
    ("logical_id", "name", "value"),
    [
        ("Table", "TableName", "things"),
        ("Table", "KeySchema", [{"AttributeName": "user", "KeyType": "HASH"}]),
        ("Table", "LocalSecondaryIndexes", [index("by_age")]),
        ("Table", "ImportSourceSpecification", {"InputFormat": "CSV"}),
        ("Bucket", "BucketName", {"Fn::Sub": "things-${AWS::Region}"}),
        ("Bucket", "BucketNamePrefix", "things"),
        ("Bucket", "BucketNamespace", "account-regional"),
        ("Secret", "Name", "things"),
        ("Secret", "GenerateSecretString", {"PasswordLength": 65}),
    ],
)
def test_a_property_that_replaces_its_resource_does_not_change(logical_id: str, name: str, value: Any) -> None:
    assert found(logical_id, **{name: value}) == [f"{logical_id} has another {name}: CloudFormation would replace it"]


def test_an_attribute_keeps_its_type() -> None:
    (problem,) = found("Table", AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}])
    assert problem.startswith("Table changes the attribute id, which CloudFormation refuses")


@pytest.mark.parametrize(
    "changed", [{"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}, {"Projection": {"ProjectionType": "ALL"}}]
)
def test_an_index_keeps_its_key_and_projection(changed: dict[str, Any]) -> None:
    (problem,) = found("Table", GlobalSecondaryIndexes=[index("by_user", **changed)])
    assert problem.startswith("Table changes the index by_user, which CloudFormation refuses")


@pytest.mark.parametrize(
    "indexes",
    [[index("by_user"), index("by_team"), index("by_age")], [index("by_team")]],
    ids=["two added", "one added, one removed"],
)
def test_only_one_index_of_a_table_is_added_or_removed(indexes: list[dict[str, Any]]) -> None:
    (problem,) = found("Table", GlobalSecondaryIndexes=indexes)
    assert problem.startswith("Table gets or loses 2 indexes (by_")
    assert "by_team" in problem


@pytest.mark.parametrize(
    ("logical_id", "changes"),
    [
        ("Table", {"GlobalSecondaryIndexes": [index("by_team"), index("by_user")]}),
        ("Table", {"GlobalSecondaryIndexes": []}),
        ("Table", {"GlobalSecondaryIndexes": [{**BY_USER, "OnDemandThroughput": {}}]}),
        ("Table", {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}),
        ("Table", {"BillingMode": "PROVISIONED"}),
        ("Bucket", {"VersioningConfiguration": {"Status": "Enabled"}}),
        ("Secret", {"Description": "Signs cookies."}),
        ("Queue", {"QueueName": "things"}),
    ],
)
def test_other_changes_are_accepted(logical_id: str, changes: dict[str, Any]) -> None:
    assert found(logical_id, **changes) == []


def test_a_new_table_can_have_several_indexes() -> None:
    table = copy.deepcopy(TEMPLATE["Resources"]["Table"])
    table["Properties"]["GlobalSecondaryIndexes"] = [index("by_user"), index("by_team")]
    assert upgraded({**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Other": table}}) == []


@pytest.mark.parametrize(
    ("condition", "kept"), [("Owned", True), ("OwnedOrNamed", True), ("Named", False), ("OwnedAndNamed", False)]
)
def test_an_option_can_replace_a_resource_if_it_is_off_by_default(condition: str, kept: bool) -> None:
    template = copy.deepcopy(TEMPLATE)
    template["Resources"]["Bucket"]["Condition"] = condition
    assert (upgraded(template) == []) is kept
    named = {"Fn::If": [condition, {"Ref": "AWS::NoValue"}, {"Ref": "Name"}]}
    assert (found("Bucket", BucketName=named) == []) is kept


def test_the_last_two_releases_and_the_template_are_compared(tmp_path: Path) -> None:
    recording(tmp_path, "1").parent.mkdir(parents=True)
    for version in ("0.9.0", "0.10.0", "0.8.1"):
        recording(tmp_path, version).write_text(json.dumps({version: {}}))
    (tmp_path / "template.yaml").write_text(json.dumps(TEMPLATE))
    first, second = last_upgrades(tmp_path)
    assert first == ("from 0.9.0 to 0.10.0", {"0.9.0": {}}, {"0.10.0": {}})
    assert second == ("from 0.10.0 to template.yaml", {"0.10.0": {}}, data_resources(TEMPLATE))


def api(*routes: str, limits: tuple[str, ...] = ()) -> dict[str, Any]:
    """A template whose API has these routes and these limits."""
    events = {
        str(number): {"Type": "HttpApi", "Properties": {"Method": method, "Path": path}}
        for number, (method, path) in enumerate(route.split() for route in routes)
    }
    return {
        "Resources": {
            "Function": {"Type": "AWS::Serverless::Function", "Properties": {"Events": events}},
            "Api": {"Type": "AWS::Serverless::HttpApi", "Properties": {"RouteSettings": {key: {} for key in limits}}},
        }
    }


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([api("GET /a"), api("GET /a", "GET /b", limits=("GET /a",))], None),
        ([api("GET /a", limits=("GET /a",)), api("GET /a")], None),
        ([api("GET /a"), api("GET /a", "GET /b", limits=("GET /b",))], "the new route GET /b"),
        ([api("GET /a", "GET /b", limits=("GET /b",)), api("GET /a")], "lacks the route GET /b"),
        # The stage keeps the limits that the second leaves out.
        (
            [api("GET /a", "GET /b", limits=("GET /b",)), api("GET /a", "GET /b"), api("GET /a")],
            "from 1.0.0 to template.yaml: Api lacks the route GET /b",
        ),
        # Going back is possible to the release before.
        ([api("GET /a"), api("GET /a", "GET /b"), api("GET /b", limits=("GET /b",))], None),
    ],
)
def test_only_routes_of_both_releases_have_limits_of_their_own(
    tmp_path: Path, steps: list[dict[str, Any]], problem: str | None
) -> None:
    recording(tmp_path, "1").parent.mkdir(parents=True)
    *released, last = steps
    for number, template in enumerate(released, start=1):
        path = recording(tmp_path, f"{number}.0.0")
        path.write_text(json.dumps(data_resources(template)))
    (tmp_path / "template.yaml").write_text(json.dumps(last))
    found = list(stopped_upgrades(tmp_path))
    assert len(found) == (problem is not None)
    assert not problem or problem in found[0]


def test_an_upgrade_and_the_way_back_change_no_limit_of_an_unknown_route() -> None:
    assert list(stopped_upgrades(ROOT)) == []
    recorded = json.loads(recording(ROOT, "0.1.0").read_text())["HttpApi"]
    assert "PUT /v8/artifacts/{hash}" in recorded["Routes"]


def test_an_upgrade_from_the_last_release_keeps_all_data() -> None:
    upgrades = list(last_upgrades(ROOT))
    assert upgrades
    for upgrade, before, now in upgrades:
        assert len(before) >= 11
        assert list(problems(before, now)) == [], upgrade
