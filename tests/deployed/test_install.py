"""`larder plan`, `install`, `upgrade`, `uninstall` and `options` of a small release."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from larder_cli.deploy import code_bucket
from local.template import REGION
from tests.deploying import ELSEWHERE, TEMPLATE, Account, empty_account
from tests.local.stub_service import eventually

BUCKET = """  ArtifactsBucket: {Type: AWS::S3::Bucket}
  Secret: {Type: AWS::SecretsManager::Secret, Properties: {GenerateSecretString: {PasswordLength: 64}}}
Outputs:
  Version: {Value: "1.2.3"}
  ReadableSince: {Value: "1.0.0"}
"""
WHOLE = TEMPLATE.replace("Outputs:\n", BUCKET)
"""With a bucket, a secret and a version."""


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with empty_account(tmp_path) as account:
        account.release(WHOLE)
        yield account


def installed(account: Account) -> dict[str, Any]:
    done = account.deploy()
    assert done.status == 0, done.text
    stack = account.stack()
    assert stack is not None
    return stack


def parameters(account: Account) -> dict[str, str]:
    stack = account.stack()
    assert stack is not None
    return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack["Parameters"]}


def change_sets(account: Account) -> list[str]:
    listed = account.client("cloudformation").list_change_sets(StackName="larder-prod")
    return [summary["ChangeSetName"] for summary in listed["Summaries"] if summary["ExecutionStatus"] == "AVAILABLE"]


# Plan -------------------------------------------------------------------------------------------


def test_a_plan_of_a_new_stack_leaves_no_stack(account: Account) -> None:
    done = account.larder("plan")
    assert (done.status, "Nothing has changed." in done.text) == (3, True), done.text
    assert "added      6 resources" in done.text
    assert account.stack() is None


def test_a_plan_names_what_the_upgrade_then_does_and_leaves_no_change_set(account: Account) -> None:
    installed(account)
    more = "  More: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: more}}\nOutputs:"
    without = WHOLE.replace(
        '  WordsNote: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Sub "<${Words}>"}}\n', ""
    ).replace("  Words: {Value: !Ref WordsNote}\n", "")
    account.release(
        without.replace("Outputs:", more).replace('"1.2.3"', '"1.3.0"'),
        version="1.3.0",
        upgrade={"1.2.3": ["Deploy the deployer's template first."], "1.0.0": ["Old."]},
    )
    account.configure(ProtectData="true", Level="DEBUG")
    planned = account.larder("plan")
    assert planned.status == 3, planned.text
    assert "larder-prod is 1.2.3. This is 1.3.0." in planned.text
    assert "step 1     Deploy the deployer's template first." in planned.text
    assert "Old." not in planned.text
    assert "added      1 resource: 1 SSM::Parameter" in planned.text
    assert "removed    WordsNote (SSM::Parameter)" in planned.text
    assert [line.split() for line in planned.text.splitlines() if line.startswith("Level")] == [
        ["Level", "INFO", "DEBUG"]
    ]
    assert change_sets(account) == []
    assert parameters(account)["Level"] == "INFO"
    # The first line is what people read, on standard error.
    _, _, printed = account.larder("plan", "--json").text.partition("\n")
    as_json = json.loads(printed)
    assert {resource["id"] for resource in as_json["resources"] if resource["action"] == "Remove"} == {"WordsNote"}
    assert account.larder("upgrade", "--yes").status == 0
    planned = account.larder("plan")
    assert (planned.status, "Nothing would change." in planned.text) == (0, True), planned.text


def test_a_second_upgrade_changes_and_uploads_nothing(account: Account) -> None:
    installed(account)
    done = account.larder("upgrade", "--yes")
    assert done.status == 0, done.text
    assert "0.0 MB to larder-code-000000000000-us-east-1" in done.text
    assert "Nothing changes: larder-prod is Larder 1.2.3 with these options." in done.text


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("AttributeName: id", "AttributeName: key"), "Table"),
        (("  ArtifactsBucket: {Type: AWS::S3::Bucket}\n", ""), "ArtifactsBucket"),
        (("PasswordLength: 64", "PasswordLength: 32"), "Secret"),
    ],
    ids=["a table that is replaced", "a bucket that is removed", "a new secret"],
)
def test_a_release_that_loses_data_is_refused_and_nobody_can_override_it(
    account: Account, change: tuple[str, str], reason: str
) -> None:
    before = installed(account)
    account.release(WHOLE.replace(*change))
    for arguments in (("plan",), ("upgrade", "--yes"), ("install", "--yes")):
        refused = account.larder(*arguments)
        assert refused.status == 1, refused.text
        assert "this would lose data:" in refused.text
        assert f"  {reason}" in refused.text
    assert account.stack() == before
    assert change_sets(account) == []


def test_another_account_than_that_of_the_file_is_refused(account: Account) -> None:
    config = account.folder / "larder.toml"
    config.write_text(config.read_text().replace("[prod]", '[prod]\naccount = "123456789012"'))
    refused = account.larder("install", "--yes")
    assert refused.status == 1
    assert "belong to the account 000000000000, and" in refused.text
    assert "names 123456789012" in refused.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("Words=a!b", "Words=a!b: must match"),
        ("RetentionDays=many", "RetentionDays=many: must be a number"),
        ("ProtectData=yes", "ProtectData=yes: must be one of true, false"),
        ("Wrods=x", "Larder has no option Wrods. Did you mean Words?"),
        ("Words", "--set Words: write NAME=VALUE"),
    ],
)
def test_an_option_out_of_bounds_is_refused_before_any_call(account: Account, given: str, message: str) -> None:
    refused = account.larder("install", "--yes", "--set", given, environ={})
    assert refused.status in (1, 2)
    assert message in refused.text


def test_a_damaged_file_is_refused_before_any_call(account: Account) -> None:
    with (account.folder / "larder.template.json").open("a") as template:
        template.write(" ")
    refused = account.larder("install", "--yes", environ={})
    assert refused.status == 1
    assert "larder.template.json does not have its checksum" in refused.text


def test_a_bucket_for_the_code_of_another_region_or_account_is_refused(account: Account) -> None:
    account.client("s3", ELSEWHERE).create_bucket(
        Bucket="acme-elsewhere", CreateBucketConfiguration={"LocationConstraint": ELSEWHERE}
    )
    refused = account.larder("install", "--yes", "--code-bucket", "acme-elsewhere")
    assert refused.status == 1, refused.text
    assert f"acme-elsewhere is in {ELSEWHERE}, and the stack in {REGION}" in refused.text
    refused = account.larder("plan", "--code-bucket", "acme-nowhere")
    assert "code-bucket: there is no bucket acme-nowhere" in refused.text
    theirs = boto3.session.Session("111111111111", "testing", region_name=REGION)
    theirs.client("s3", endpoint_url=account.emulator.url).create_bucket(Bucket="acme-theirs")
    refused = account.larder("install", "--yes", "--code-bucket", "acme-theirs")
    assert refused.status == 1, refused.text
    assert "It has to belong to the account 000000000000" in refused.text
    assert account.stack() is None


def test_the_edge_is_refused_in_govcloud_which_has_no_cloudfront(account: Account) -> None:
    region = "us-gov-west-1"
    for command in (("plan",), ("install", "--yes")):
        refused = account.larder(*command, "--set", "Edge=true", environ={"AWS_REGION": region})
        assert refused.status == 2, refused.text
        assert "Edge=true: the partition aws-us-gov has no CloudFront" in refused.text
    assert account.stack(region) is None


def test_an_unknown_setting_or_environment_of_the_file_is_refused(account: Account) -> None:
    config = account.folder / "larder.toml"
    assert "It has: prod" in account.larder("install", "--env", "staging").text
    config.write_text(config.read_text().replace("stack =", "stak ="))
    assert "[prod] has no setting stak. Did you mean stack?" in account.larder("install").text


def test_a_stack_of_something_else_is_neither_changed_nor_deleted(account: Account) -> None:
    client = account.client("cloudformation")
    theirs = {"Description": "Payments.", "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    client.create_stack(StackName="larder-prod", TemplateBody=json.dumps(theirs), EnableTerminationProtection=True)
    client.get_waiter("stack_create_complete").wait(StackName="larder-prod")
    before = account.stack()
    for arguments in (("install", "--yes"), ("upgrade", "--yes"), ("plan",)):
        refused = account.larder(*arguments)
        assert refused.status == 1, refused.text
        assert "larder-prod in us-east-1 is not a stack of Larder" in refused.text
    refused = uninstall(account, "--confirm", "larder-prod")
    assert (refused.status, "is not a stack of Larder" in refused.text) == (1, True), refused.text
    assert account.stack() == before
    assert change_sets(account) == []
    assert account.client("s3").list_buckets()["Buckets"] == []


def test_another_file_under_a_key_of_the_release_is_refused(account: Account) -> None:
    installed(account)
    s3 = account.client("s3")
    bucket = "larder-code-000000000000-us-east-1"
    (template,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert template["Key"].startswith("larder/larder-prod/larder.template-")
    theirs = WHOLE.replace("Outputs:", "  Topic: {Type: AWS::SNS::Topic}\nOutputs:", 1)
    s3.put_object(Bucket=bucket, Key=template["Key"], Body=theirs.encode(), ChecksumAlgorithm="SHA256")
    refused = account.larder("upgrade", "--yes", "--set", "Level=DEBUG")
    assert refused.status == 1, refused.text
    assert f"s3://{bucket}/{template['Key']} is not the file of this release" in refused.text
    assert change_sets(account) == []
    assert account.note("Level") == "INFO"


def test_the_bucket_of_an_older_version_is_brought_up_to_date(account: Account) -> None:
    older = json.loads(json.dumps(code_bucket.TEMPLATE))
    del older["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]
    del older["Outputs"]["Edition"]
    client = account.client("cloudformation")
    client.create_stack(StackName="larder-code", TemplateBody=json.dumps(older))
    client.get_waiter("stack_create_complete").wait(StackName="larder-code")
    installed(account)
    # The emulator changes no bucket that is there.
    (stack,) = client.describe_stacks(StackName="larder-code")["Stacks"]
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    template = client.get_template(StackName="larder-code")["TemplateBody"]
    assert (json.loads(template) if isinstance(template, str) else template) == code_bucket.TEMPLATE


def test_upgrade_needs_a_stack(account: Account) -> None:
    refused = account.larder("upgrade", "--yes")
    assert (refused.status, "`larder install` creates it" in refused.text) == (1, True)


# Versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "arguments", "message"),
    [
        ("1.1.0", (), "To go back, add --downgrade."),
        ("1.1.0", ("--downgrade",), None),
        ("0.9.0", ("--downgrade",), "The oldest version that reads it is 1.0.0."),
    ],
)
def test_going_back_is_asked_for_and_ends_where_the_data_cannot_be_read(
    account: Account, version: str, arguments: tuple[str, ...], message: str | None
) -> None:
    installed(account)
    account.release(WHOLE.replace('"1.2.3"', f'"{version}"'), version=version)
    # The emulator sees no change in an output alone.
    done = account.larder("upgrade", "--yes", "--set", "Level=DEBUG", *arguments)
    if message is None:
        assert done.status == 0, done.text
        assert account.output("Version") == version
    else:
        assert (done.status, message in done.text) == (1, True), done.text
        assert account.output("Version") == "1.2.3"


# Options ----------------------------------------------------------------------------------------


def test_without_a_file_options_stay_and_new_ones_get_their_default(account: Account) -> None:
    account.configure(ProtectData="true", Level="DEBUG")
    installed(account)
    (account.folder / "larder.toml").unlink()
    account.release(WHOLE.replace("Parameters:\n", 'Parameters:\n  New: {Type: String, Default: "n"}\n'))
    done = account.larder("upgrade", "--yes", "--stack", "larder-prod", "--set", "Words=line")
    assert done.status == 0, done.text
    assert "Options follow what is deployed" in done.text
    deployed = parameters(account)
    assert [deployed[name] for name in ("Level", "New", "Words", "ProtectData")] == ["DEBUG", "n", "line", "true"]


def test_without_a_file_the_code_goes_where_the_stack_has_it(account: Account) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="acme-code")
    refused = account.larder("install", "--yes", "--code-bucket", "acme-code")
    assert (refused.status, "acme-code keeps no versions" in refused.text) == (1, True)
    s3.put_bucket_versioning(Bucket="acme-code", VersioningConfiguration={"Status": "Enabled"})
    assert account.larder("install", "--yes", "--code-bucket", "acme-code").status == 0
    (account.folder / "larder.toml").unlink()
    done = account.larder("upgrade", "--yes", "--stack", "larder-prod", "--set", "Level=DEBUG")
    assert (done.status, "MB to acme-code" in done.text) == (0, True), done.text
    buckets = {bucket["Name"] for bucket in account.client("s3").list_buckets()["Buckets"]}
    assert not [bucket for bucket in buckets if bucket.startswith("larder-code-")]


def test_a_new_stack_without_a_file_has_the_options_of_the_environment(account: Account) -> None:
    (account.folder / "larder.toml").unlink()
    done = account.larder("install", "--yes", "--env", "prod")
    assert done.status == 0, done.text
    assert account.is_protected()


def test_options_writes_a_file_that_changes_nothing(account: Account) -> None:
    words = 'say "it is" \\d \U0001f468\u200d\U0001f469'
    account.configure(ProtectData="true", Words=words)
    installed(account)
    program = Path(sys.executable).with_name("larder")
    given = ("--stack", "larder-prod", "--release", account.folder)
    written = account.run([program, "options", *given])
    section = tomllib.loads(written.text)["prod"]
    assert section["options"] == {"Words": words}
    assert (section["stack"], section["account"]) == ("larder-prod", "000000000000")
    (account.folder / "larder.toml").write_text(written.text)
    done = account.larder("upgrade", "--yes")
    assert "Nothing changes" in done.text, done.text


# Processes that die, and two at once ------------------------------------------------------------


def begin(account: Account, *arguments: str) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).with_name("larder")
    given = ("--config", account.folder / "larder.toml", "--release", account.folder, "--yes")
    return subprocess.Popen(
        [program, "install", *given, *arguments],
        env=account.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize("after_calls", range(1, 22, 2))
def test_after_a_process_that_died_at_any_call_the_same_command_ends_right(account: Account, after_calls: int) -> None:
    dying = [sys.executable, "-m", "tests.deployed.dying", str(after_calls), "install", "--yes"]
    given = ("--config", account.folder / "larder.toml", "--release", account.folder)
    killed = account.run([*dying, *given])
    assert killed.status in (0, -9), killed.text
    # CloudFormation continues without the process.
    done = account.deploy()
    assert done.status == 0, done.text
    assert account.is_protected()
    assert (account.stack() or {})["EnableTerminationProtection"]
    assert change_sets(account) == []


@pytest.mark.parametrize("call", [*range(11, 25)])
def test_a_lost_reply_ends_no_installation(account: Account, call: int) -> None:
    """boto3 sends the call again. Those that make or execute a change set cannot be repeated."""
    losing = [sys.executable, "-m", "tests.deployed.dying", str(call), "install", "--yes"]
    given = ("--config", account.folder / "larder.toml", "--release", account.folder)
    done = account.run([*losing, *given], environ={"AWS_REGION": REGION, "LOST": "1"})
    assert done.status == 0, done.text
    assert account.is_protected()
    assert (account.stack() or {})["EnableTerminationProtection"]


def test_a_creation_that_died_before_its_data_was_protected_is_protected_without_a_file(account: Account) -> None:
    installed(account)
    client = account.client("cloudformation")
    (account.folder / "larder.toml").unlink()
    template = (account.folder / "larder.template.json").read_text()
    unprotected = {**parameters(account), "ProtectData": "false"}
    client.update_stack(
        StackName="larder-prod",
        TemplateBody=template,
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in unprotected.items()],
    )
    client.get_waiter("stack_update_complete").wait(
        StackName="larder-prod", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    assert not account.is_protected()
    done = account.larder("upgrade", "--yes", "--stack", "larder-prod")
    assert done.status == 0, done.text
    assert account.is_protected()


WAITING = """  Handle: {Type: AWS::CloudFormation::WaitConditionHandle}
  Signal:
    Type: AWS::CloudFormation::WaitCondition
    Properties: {Handle: !Ref Handle, Timeout: "60", Count: 1}
Outputs:
"""
"""An update that goes on until `end_wait`."""


def end_wait(account: Account) -> None:
    handle = account.client("cloudformation").describe_stack_resource(
        StackName="larder-prod", LogicalResourceId="Handle"
    )
    signal = {"Status": "SUCCESS", "UniqueId": "1", "Reason": "", "Data": ""}
    url = handle["StackResourceDetail"]["PhysicalResourceId"]
    httpx.put(url, content=json.dumps(signal), trust_env=False).raise_for_status()


def test_of_two_at_once_one_is_refused_and_says_who_is_running(account: Account) -> None:
    installed(account)
    account.release(WHOLE.replace("Outputs:\n", WAITING))
    with begin(account) as first:
        eventually(lambda: "UPDATE_IN_PROGRESS" in str(account.stack()), 30)
        second = account.larder("upgrade", "--yes", "--set", "Level=DEBUG")
        end_wait(account)
        output, _ = first.communicate(timeout=120)
    assert first.returncode == 0, output
    assert second.status == 1, second.text
    assert "started by arn:aws:iam::000000000000:root: another deployment is running" in second.text


def test_two_stacks_installed_at_once_in_a_new_account_share_the_bucket_of_code(account: Account) -> None:
    with begin(account) as first, begin(account, "--stack", "larder-staging") as second:
        outputs = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs


def test_a_plan_leaves_the_change_set_of_another(account: Account) -> None:
    """Of another pull request, say, that plans the same."""
    installed(account)
    change = ("--set", "Level=DEBUG")
    given = ("--config", account.folder / "larder.toml", "--release", account.folder)
    # It dies when its change set is there.
    account.run([sys.executable, "-m", "tests.deployed.dying", "12", "plan", *given, *change])
    (other,) = change_sets(account)
    assert account.larder("plan", *change).status == 3
    assert change_sets(account) == [other]


def test_change_sets_that_plans_have_left_are_deleted_but_for_the_newest(account: Account) -> None:
    installed(account)
    client = account.client("cloudformation")
    names = [f"larder-1-2-3-plan-{number}" for number in range(22)]
    for name in (*names, "of-somebody-else"):
        client.create_change_set(
            StackName="larder-prod",
            ChangeSetName=name,
            TemplateBody='{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}',
        )
    assert account.larder("plan", "--set", "Level=DEBUG").status == 3
    left = set(change_sets(account))
    assert "of-somebody-else" in left
    assert len(left & set(names)) == 20


def test_a_plan_leaves_an_installation_that_waits_for_its_answer(account: Account) -> None:
    client = account.client("cloudformation")
    client.create_change_set(
        StackName="larder-prod",
        ChangeSetName="larder-1-2-3-create-x",
        ChangeSetType="CREATE",
        TemplateBody='{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}',
    )
    assert account.larder("plan").status == 3
    assert (account.stack() or {})["StackStatus"] == "REVIEW_IN_PROGRESS"


def test_the_same_command_follows_what_a_process_that_died_has_started(account: Account) -> None:
    installed(account)
    account.release(WHOLE.replace("Outputs:\n", WAITING))
    with begin(account) as first:
        eventually(lambda: "UPDATE_IN_PROGRESS" in str(account.stack()), 30)
        first.kill()
    with begin(account) as second:
        assert second.stdout is not None
        assert any(b"Following it." in line for line in second.stdout)
        end_wait(account)
        output, _ = second.communicate(timeout=120)
    assert second.returncode == 0, output


# Uninstall --------------------------------------------------------------------------------------


def uninstall(account: Account, *arguments: str, answers: str | None = None) -> Any:
    program = Path(sys.executable).with_name("larder")
    command = [str(program), "uninstall", "--stack", "larder-prod", *arguments]
    return account.run(command, answers=answers)


def test_uninstall_needs_the_right_name_and_keeps_artifacts(account: Account) -> None:
    installed(account)
    resources = account.client("cloudformation").describe_stack_resource(
        StackName="larder-prod", LogicalResourceId="ArtifactsBucket"
    )
    bucket = resources["StackResourceDetail"]["PhysicalResourceId"]
    account.client("s3").put_object(Bucket=bucket, Key="artifacts/a", Body=b"a")
    refused = uninstall(account, answers="larder\n")
    assert (refused.status, "not the name of the stack" in refused.text) == (1, True)
    assert account.is_protected()
    done = uninstall(account, "--backup", answers="larder-prod\n")
    assert done.status == 0, done.text
    assert f"kept       the bucket {bucket}" in done.text
    assert "Backup of Table: arn:aws:dynamodb:" in done.text
    assert account.stack() is None
    assert account.client("dynamodb").list_tables()["TableNames"] == []
    listed = account.client("s3").list_objects_v2(Bucket=bucket)
    assert [entry["Key"] for entry in listed["Contents"]] == ["artifacts/a"]


def test_uninstall_deletes_artifacts_only_if_it_is_told_to(account: Account) -> None:
    installed(account)
    resources = account.client("cloudformation").describe_stack_resource(
        StackName="larder-prod", LogicalResourceId="ArtifactsBucket"
    )
    bucket = resources["StackResourceDetail"]["PhysicalResourceId"]
    account.client("s3").put_object(Bucket=bucket, Key="artifacts/a", Body=b"a")
    done = uninstall(account, "--delete-artifacts", "--confirm", "larder-prod")
    assert done.status == 0, done.text
    assert account.stack() is None
    assert bucket not in {one["Name"] for one in account.client("s3").list_buckets()["Buckets"]}


def test_uninstall_refuses_a_stack_that_is_updated_since_it_asked(account: Account) -> None:
    installed(account)
    account.release(WHOLE.replace("Outputs:\n", WAITING))
    program = Path(sys.executable).with_name("larder")
    asking = subprocess.Popen(
        [program, "uninstall", "--stack", "larder-prod"],
        env=account.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert asking.stdout is not None
    shown = b""
    while b"to delete it" not in shown:
        shown += asking.stdout.read(1)
    with begin(account) as update:
        eventually(lambda: "UPDATE_IN_PROGRESS" in str(account.stack()), 30)
        output, _ = asking.communicate(b"larder-prod\n", timeout=60)
        assert (asking.returncode, b"another deployment is running" in output) == (1, True), output
        assert account.is_protected()
        assert (account.stack() or {})["EnableTerminationProtection"]
        end_wait(account)
        update.communicate(timeout=120)
