"""Choosing the target, and errors when it cannot be reached."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from larder import aws
from larder.settings import Settings, environment_name, settings
from larder_cli.main import cli
from local.template import resource_name
from tests.requests import Cloud

from .conftest import OUTPUTS, PARAMETERS, Larder, change_cloud_json, write_cloud_json
from .fake_aws import FakeAws


@pytest.fixture
def nothing_of_aws(own_environment: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any AWS configuration."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        own_environment.delenv(name)
    own_environment.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    own_environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    own_environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return own_environment


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ------------------------------------------------------------------------------------ which one


def test_without_a_target_it_says_how_to_choose_one(own_environment: pytest.MonkeyPatch) -> None:
    refusal = Larder().refusal("teams", "list", status=2)
    for expected in ("--stack NAME", "LARDER_STACK", "--local DATA", "LARDER_LOCAL"):
        assert expected in refusal


def test_two_targets_are_rejected(own_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = ("--stack", "larder", "--local", str(tmp_path))
    assert "both" in Larder(target).refusal("teams", "list", status=2)
    own_environment.setenv("LARDER_STACK", "larder")
    own_environment.setenv("LARDER_LOCAL", str(tmp_path))
    assert "both" in Larder().refusal("teams", "list", status=2)


def test_the_environment_names_the_target(
    aws_in_memory: None, data_folder: Path, own_environment: pytest.MonkeyPatch
) -> None:
    own_environment.setenv("LARDER_LOCAL", str(data_folder))
    assert Larder().json("teams", "list") == []


def test_what_larder_use_chooses_is_the_target_until_something_else_is_named(
    aws_in_memory: None, data_folder: Path, own_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Path(os.environ["HOME"])
    assert "larder use NAME" in Larder()("use").stdout
    assert (
        Larder()("use", "--local", str(data_folder)).stdout == f"Commands work on the local cloud on {data_folder}.\n"
    )
    (file,) = home.rglob("use.json")
    assert file.stat().st_mode & 0o777 == 0o600

    listed = Larder()("teams", "list", "--json")
    assert listed.stderr == f"Working on the local cloud on {data_folder} (larder use).\n"
    assert json.loads(listed.stdout) == []
    assert "no local cloud is running" in Larder(("--local", str(tmp_path / "x"))).refusal("teams", "list")
    Larder()("use", "--none")
    assert "choose a deployment" in Larder().refusal("teams", "list", status=2)


def test_larder_use_stores_no_deployment_that_is_not_there(own_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no local cloud is running" in Larder().refusal("use", "--local", str(tmp_path))
    assert Larder().json("use") == {}


def test_the_chosen_stack_has_a_region_and_is_not_deployed(
    aws_in_memory: None, stack: FakeAws, own_environment: pytest.MonkeyPatch
) -> None:
    own_environment.setenv("AWS_REGION", "us-east-1")
    Larder()("use", "larder", "--region", "eu-central-1")
    assert "Working on the stack larder in eu-central-1" in Larder()("teams", "list").stderr
    assert Larder().json("use") == {"stack": "larder", "local": None, "region": "eu-central-1", "profile": None}
    assert "Working on" not in Larder()("options", "--help").output


def test_local_option_overrides_the_stack_variable(larder: Larder, own_environment: pytest.MonkeyPatch) -> None:
    own_environment.setenv("LARDER_STACK", "larder")
    assert larder.json("teams", "list") == []


def test_stack_option_overrides_the_local_variable(
    aws_in_memory: None, stack: FakeAws, own_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own_environment.setenv("LARDER_LOCAL", str(tmp_path))
    assert Larder(("--stack", "larder")).json("teams", "list") == []


# ---------------------------------------------------------------------------------- local cloud


@pytest.mark.parametrize("missing", ["folder", "cloud.json"])
def test_a_folder_without_a_running_cloud(own_environment: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    data = tmp_path / "absent" if missing == "folder" else tmp_path
    refusal = Larder(("--local", str(data))).refusal("teams", "list")
    assert refusal.startswith(f"no local cloud is running on {data}: start it with `make serve`")


def test_a_cloud_whose_process_is_dead(data_folder: Path, api_url: str) -> None:
    write_cloud_json(data_folder, {"pid": dead_pid(), "api_url": api_url, "environment": {}})
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "no local cloud is running on" in refusal


def test_a_cloud_that_does_not_answer(data_folder: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    write_cloud_json(data_folder, {"pid": os.getpid(), "api_url": url, "environment": {}})
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "no local cloud is running on" in refusal


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x", "api_url": ""}'])
def test_a_damaged_cloud_json(data_folder: Path, text: str) -> None:
    (data_folder / "cloud.json").write_text(text)
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "cloud.json is damaged" in refusal


def test_a_cloud_json_without_the_environment(data_folder: Path, api_url: str) -> None:
    (data_folder / "cloud.json").write_text(json.dumps({"pid": os.getpid(), "api_url": api_url}))
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "cloud.json is damaged" in refusal


def test_a_cloud_of_another_version(data_folder: Path) -> None:
    change_cloud_json(data_folder, LARDER_TEAMS_TABLE="")
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "another version" in refusal
    assert "LARDER_TEAMS_TABLE" in refusal


def test_the_users_own_aws_configuration_is_ignored(larder: Larder, own_environment: pytest.MonkeyPatch) -> None:
    own_environment.setenv("AWS_PROFILE", "of-another-account")
    own_environment.setenv("AWS_SESSION_TOKEN", "of-another-account")
    own_environment.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    own_environment.setenv("LARDER_RETENTION_DAYS", "no number")
    assert larder.json("teams", "list") == []
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"} & {*os.environ}


def test_an_unreachable_store_is_reported_in_one_line(data_folder: Path) -> None:
    gone = f"http://127.0.0.1:{closed_port()}"
    change_cloud_json(data_folder, AWS_ENDPOINT_URL_DYNAMODB=gone)
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert refusal.startswith("AWS did not answer in time")
    assert gone in refusal


def test_a_missing_table_is_reported_in_one_line(larder: Larder, data_folder: Path) -> None:
    change_cloud_json(data_folder, LARDER_TEAMS_TABLE="no-such-table")
    refusal = larder.refusal("teams", "list")
    assert refusal.startswith("AWS refused: ")
    assert "a table, the bucket or the signing secret does not exist" in refusal


def test_a_missing_bucket_is_reported_in_one_line(larder: Larder, data_folder: Path) -> None:
    change_cloud_json(data_folder, LARDER_ARTIFACTS_BUCKET="no-such-bucket")
    assert "(NoSuchBucket)" in larder.refusal("rebuild-index")


def test_a_denied_call_links_to_the_permissions(data_folder: Path, fake_aws: FakeAws) -> None:
    fake_aws.refuses_in_json(400, "AccessDeniedException", "User: ada is not authorized\nto perform: dynamodb:Scan")
    change_cloud_json(data_folder, AWS_ENDPOINT_URL_DYNAMODB=fake_aws.url)
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert "not authorized to perform: dynamodb:Scan (AccessDeniedException)" in refusal
    assert "docs/operator-cli.md" in refusal


def test_an_unexpected_aws_error_shows_its_code(data_folder: Path, fake_aws: FakeAws) -> None:
    fake_aws.refuses_in_json(400, "SomethingNewException", "No.")
    change_cloud_json(data_folder, AWS_ENDPOINT_URL_DYNAMODB=fake_aws.url)
    refusal = Larder(("--local", str(data_folder))).refusal("teams", "list")
    assert refusal == "AWS refused: No (SomethingNewException)"


# ---------------------------------------------------------------------------------------- stack


def test_tables_come_from_the_stacks_outputs(aws_in_memory: None, stack: FakeAws) -> None:
    made = Larder(("--stack", "acme-cache")).json(*("users", "create", "--email", "ada@acme.example", "--name", "Ada"))
    assert [request["StackName"] for request in stack.requests] == [["acme-cache"]]
    assert settings().identity_table == resource_name("IdentityTable")
    assert made["email"] == "ada@acme.example"


def test_every_setting_comes_from_the_stack(aws_in_memory: None, stack: FakeAws) -> None:
    different = PARAMETERS | {"RetentionDays": "7", "DefaultQuotaBytes": "123"}
    stack.holds_stack(OUTPUTS, different)
    Larder(("--stack", "larder")).json("teams", "list")
    assert (settings().retention_days, settings().default_quota_bytes) == (7, 123)
    unset = [option for option in Settings.__dataclass_fields__ if environment_name(option) not in os.environ]
    assert unset == []


def test_the_stacks_default_quota_is_shown(aws_in_memory: None, stack: FakeAws, cloud: Cloud) -> None:
    stack.holds_stack(OUTPUTS, PARAMETERS | {"DefaultQuotaBytes": "50000000000"})
    assert "50.0 GB" in Larder(("--stack", "larder"))("teams", "show", "acme").stdout


def test_variables_of_another_deployment_are_ignored(
    aws_in_memory: None, stack: FakeAws, own_environment: pytest.MonkeyPatch
) -> None:
    own_environment.setenv("LARDER_TEAMS_TABLE", "of-another-deployment")
    own_environment.setenv("LARDER_RETENTION_DAYS", "no number")
    assert Larder(("--stack", "larder")).json("teams", "list") == []


def test_a_stack_of_another_program_is_rejected(stack: FakeAws) -> None:
    stack.holds_stack(OUTPUTS, PARAMETERS, description="A wiki.")
    refusal = Larder(("--stack", "other")).refusal("teams", "list")
    assert refusal == "the stack other is not a Larder deployment: its description does not begin with 'Larder:'"


def test_an_older_stack_is_refused_only_by_commands_that_need_a_newer_one(aws_in_memory: None, stack: FakeAws) -> None:
    newer = {"OutboxTable", "CommitFunction", "RemovalFunction"}
    outputs = {name: value for name, value in OUTPUTS.items() if name not in newer}
    parameters = {name: value for name, value in PARAMETERS.items() if name != "MaxEventsPerHour"}
    stack.holds_stack(outputs, parameters)
    older = Larder(("--stack", "older"))
    assert older.json("teams", "list") == []
    assert settings().max_events_per_hour == int(PARAMETERS["MaxEventsPerHour"])
    assert older.refusal("outbox", "list") == (
        "this command needs a newer version than that of the stack older: LARDER_OUTBOX_TABLE is not set: Name of the "
        "table that keeps mail when there is no sender. Upgrade it with `larder --stack older upgrade`"
    )


def test_an_unknown_stack(stack: FakeAws) -> None:
    stack.refuses(400, "ValidationError", "Stack with id nobody does not exist")
    refusal = Larder(("--stack", "nobody", "--region", "eu-west-1")).refusal("teams", "list")
    assert refusal.startswith("there is no stack nobody in eu-west-1")


@pytest.mark.parametrize(
    ("code", "next_step"),
    [("AccessDenied", "docs/operator-cli.md"), ("ExpiredToken", "sign in"), ("InvalidClientTokenId", "sign in")],
)
def test_an_aws_error_says_what_to_do_next(stack: FakeAws, code: str, next_step: str) -> None:
    stack.refuses(403, code, "The credentials are not good enough.")
    refusal = Larder(("--stack", "larder")).refusal("teams", "list")
    assert f"({code})" in refusal
    assert next_step in refusal


def test_an_unreachable_endpoint(stack: FakeAws, own_environment: pytest.MonkeyPatch) -> None:
    gone = f"http://127.0.0.1:{closed_port()}"
    own_environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", gone)
    refusal = Larder(("--stack", "larder")).refusal("teams", "list")
    assert refusal.startswith("AWS cannot be reached: ")
    assert "check the network" in refusal


def test_no_credentials(nothing_of_aws: pytest.MonkeyPatch) -> None:
    refusal = Larder(("--stack", "larder", "--region", "eu-west-1")).refusal("teams", "list")
    assert refusal.startswith("no AWS credentials were found: sign in")
    assert "--profile" in refusal


def test_no_region(nothing_of_aws: pytest.MonkeyPatch) -> None:
    refusal = Larder(("--stack", "larder")).refusal("teams", "list", status=2)
    assert "--region" in refusal


def test_an_unknown_profile(nothing_of_aws: pytest.MonkeyPatch) -> None:
    refusal = Larder(("--stack", "larder", "--profile", "nobody")).refusal("teams", "list")
    assert refusal.startswith("the AWS profile does not exist")


def test_a_profile_sets_the_credentials_and_the_region(
    nothing_of_aws: pytest.MonkeyPatch, fake_aws: FakeAws, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[profile ops]\nregion = ap-south-1\n")
    (tmp_path / "credentials").write_text("[ops]\naws_access_key_id = KEYOFOPS\naws_secret_access_key = secret\n")
    nothing_of_aws.setenv("AWS_ACCESS_KEY_ID", "KEYOFENVIRONMENT")
    nothing_of_aws.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    nothing_of_aws.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", fake_aws.url)
    fake_aws.refuses(400, "ValidationError", "Stack with id larder does not exist")
    refusal = Larder(("--stack", "larder", "--profile", "ops")).refusal("teams", "list")
    assert "there is no stack larder in ap-south-1" in refusal
    (authorization,) = fake_aws.authorizations
    assert "Credential=KEYOFOPS/" in authorization
    assert "/ap-south-1/cloudformation/" in authorization


def test_an_unexpected_error_shows_its_traceback(larder: Larder, data_folder: Path, aws_in_memory: None) -> None:
    """An item that no version writes is a bug, which needs a traceback to repair."""
    claim = {"pk": "email#eve@acme.example", "sk": "user"}
    aws.dynamodb().put_item(TableName=settings().identity_table, Item=aws.serialize(claim))
    result = CliRunner().invoke(cli, ["--local", str(data_folder), "users", "show", "eve@acme.example"])
    assert isinstance(result.exception, KeyError)


def test_a_refusal_of_a_deployment_command_is_one_line(own_environment: pytest.MonkeyPatch, fake_aws: FakeAws) -> None:
    with FakeAws.running() as identity:
        identity.body = (
            b"<GetCallerIdentityResponse><GetCallerIdentityResult><Account>000000000000</Account>"
            b"<Arn>arn:aws:iam::000000000000:root</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>"
        )
        own_environment.setenv("AWS_ENDPOINT_URL_STS", identity.url)
        own_environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", fake_aws.url)
        fake_aws.refuses(403, "AccessDenied", "You may not perform cloudformation:DescribeStacks")
        refusal = Larder().refusal("options", "--stack", "larder", "--region", "eu-central-1")
    assert refusal.startswith("AWS refused: You may not perform cloudformation:DescribeStacks (AccessDenied)")
    assert "docs/operator-cli.md" in refusal
