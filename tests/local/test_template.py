"""Reading templates, including the repository's own."""

from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from local.cloudformation import TemplateError
from local.template import load_template
from tests.local.stub_service import write_service


def write(folder: Path, resources: str) -> Path:
    path = folder / "template.yaml"
    path.write_text(f"Parameters: {{Size: {{Default: 7}}}}\nResources:\n{resources}")
    return path


def test_reads_every_trigger_of_the_repositorys_own_template() -> None:
    template = load_template()
    routes = {(route.method, route.path): route.function.handler for route in template.routes}
    assert routes["PUT", "/v8/artifacts/{hash}"] == "artifacts.put_artifact.handler"
    assert routes["OPTIONS", "/v8/artifacts/events"] == "artifacts.preflight.handler"
    assert [rule.function.logical_id for rule in template.event_rules] == ["CommitUpload"]
    assert [(s.function.logical_id, s.every) for s in template.schedules] == [
        ("SweepArtifacts", timedelta(hours=1)),
        ("SweepExpiredKeys", timedelta(hours=1)),
        ("SweepDeletedUsers", timedelta(hours=1)),
        ("SweepDeletedTeams", timedelta(hours=1)),
    ]
    assert template.environment["LARDER_ARTIFACTS_BUCKET"] == template.buckets[0]
    assert {table.ttl_attribute for table in template.tables} == {"expires_at", None}


def test_table_definitions_fit_create_table() -> None:
    definitions = [table.create_table for table in load_template().tables]
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        for definition in definitions:
            client.create_table(**definition)
        names = client.list_tables()["TableNames"]
    assert sorted(names) == sorted(definition["TableName"] for definition in definitions)


def test_an_environment_variable_overrides_the_template(tmp_path: Path) -> None:
    path = write_service(tmp_path)
    assert load_template(path).environment["LARDER_GREETING"] == "hello"
    assert load_template(path, {"LARDER_GREETING": "x"}).environment["LARDER_GREETING"] == "x"


def test_names_of_tables_and_functions_cannot_be_overridden() -> None:
    environ = {
        "LARDER_IDENTITY_TABLE": "a-deployed-table",
        "LARDER_EMAIL_FUNCTION": "a-deployed-function",
        "LARDER_RETENTION_DAYS": "3",
    }
    environment = load_template(environ=environ).environment
    assert environment["LARDER_IDENTITY_TABLE"] == "larder-identity-table"
    assert environment["LARDER_EMAIL_FUNCTION"] == "larder-send-account-email"
    assert environment["LARDER_RETENTION_DAYS"] == "3"


def test_resolves_references_and_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
  F:
    Type: AWS::Serverless::Function
    Properties:
      Handler: a.handler
      Environment:
        Variables:
          SIZE: !Ref Size
          TEXT: !Sub "${Size}-${AWS::Region}-${!Literal}"
          JOINED: !Join ["/", [a, !Ref Size]]
          SWITCH: true
""",
    )
    assert load_template(path).environment == {
        "SIZE": "7",
        "TEXT": "7-us-east-1-${Literal}",
        "JOINED": "a/7",
        "SWITCH": "true",
    }


@pytest.mark.parametrize(
    ("variable", "complaint"), [("!Ref Nobody", "Nobody"), ("!ImportValue other", "does not support Fn::ImportValue")]
)
def test_names_unsupported_functions_and_references(tmp_path: Path, variable: str, complaint: str) -> None:
    path = write(
        tmp_path,
        f"""
  F:
    Type: AWS::Serverless::Function
    Properties: {{Handler: a.handler, Environment: {{Variables: {{X: {variable}}}}}}}
""",
    )
    with pytest.raises(TemplateError, match=complaint):
        load_template(path)


def test_rejects_a_template_that_is_missing_or_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="cannot read"):
        load_template(tmp_path / "nowhere.yaml")
    (tmp_path / "broken.yaml").write_text("a: [")
    with pytest.raises(TemplateError, match="not valid YAML"):
        load_template(tmp_path / "broken.yaml")
