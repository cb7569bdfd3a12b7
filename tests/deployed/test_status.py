"""`larder status` on a deployed stack: each test breaks one thing, and sees the row, the advice and the exit status."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
import time_machine
from click.testing import CliRunner

from larder_cli.deploy.release import DESCRIPTION, PLAIN
from larder_cli.main import cli
from larder_cli.status.background import HOURLY, ON_UPLOAD
from larder_cli.status.permissions import ACTIONS
from larder_cli.status.protection import PROTECTED
from local.cloudformation import read_template
from local.template import template_path
from tests.deployed.stack import Stack, packed
from tests.emulator.aws_behaviour import ANY_TIME, FAIL_AT
from tests.emulator.process import Emulator, emulator
from tests.local.stub_service import eventually

RESOURCES = read_template(template_path())["Resources"]
FUNCTIONS = sum(resource["Type"] == "AWS::Serverless::Function" for resource in RESOURCES.values())

pytestmark = pytest.mark.e2e

ADDRESS = "ops@example.com"
USER = "observer"
NEVER_DENIED = "sts:GetCallerIdentity"


@dataclass(frozen=True)
class Looked:
    """What `larder status` printed."""

    status: int
    text: str

    @property
    def rows(self) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = json.loads(self.text)
        return rows

    def of(self, check: str) -> list[tuple[str, str]]:
        """The level and the text of each row of a check."""
        return [(row["level"], row["found"]) for row in self.rows if row["check"] == check]

    def advice(self, check: str) -> str:
        return "\n".join(row["advice"] for row in self.rows if row["check"] == check)


def look(
    at: Emulator,
    *arguments: str | Path,
    name: str = "larder",
    environ: Mapping[str, str] | None = None,
    as_json: bool = True,
) -> Looked:
    words = ["--stack", name, "status", *map(str, arguments), *(["--json"] if as_json else [])]
    variables = {**at.variables, **(environ or {})}
    done = CliRunner().invoke(cli, words, env=variables, prog_name="larder")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return Looked(done.exit_code, done.stdout if done.stdout or not done.exit_code else done.stderr)


def put_metric(stack: Stack, namespace: str, name: str, value: float, **dimensions: str) -> None:
    stack.emulator.client("cloudwatch").put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Value": value,
                "Timestamp": datetime.now(UTC) - timedelta(minutes=1),
                "Dimensions": [{"Name": key, "Value": one} for key, one in dimensions.items()],
            }
        ],
    )


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that makes a resource fail."""
    return tmp_path_factory.mktemp("failing") / "resource"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, failing: Path) -> Iterator[Stack]:
    """A stack without a problem."""
    folder = tmp_path_factory.mktemp("status")
    with emulator(folder / "emulator", {FAIL_AT: str(failing), ANY_TIME: "1"}) as running:
        stack = Stack(running, packed(folder / "packed"))
        stack.deploy({"AlarmEmail": ADDRESS})
        confirm(stack)
        for table in PROTECTED:
            # The emulator's CloudFormation leaves it out.
            recover(stack, table, on=True)
        yield stack


def confirm(stack: Stack) -> None:
    """Open the link that AWS sends to the address of the alarms."""
    sns = stack.emulator.client("sns")
    sns.confirm_subscription(TopicArn=stack.physical("AlarmMail"), Token=ADDRESS)


def recover(stack: Stack, table: str, *, on: bool) -> None:
    stack.emulator.client("dynamodb").update_continuous_backups(
        TableName=stack.physical(table), PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": on}
    )


# ------------------------------------------------------------------------------------------- healthy


def test_a_healthy_stack_has_no_warning(stack: Stack) -> None:
    looked = look(stack.emulator, "--release", stack.folder, "--drift")
    assert looked.status == 0
    assert [row for row in looked.rows if row["level"] != "ok"] == []
    assert looked.of("version")[0][1].endswith(f"; all {FUNCTIONS} functions and 2 layers run its code")
    assert "UPDATE_COMPLETE, started " in looked.of("stack")[0][1]
    assert looked.of("data") == [("ok", "5 tables protected, 4 of them recoverable")]
    assert looked.of("queues") == [("ok", "4 empty")]
    assert looked.of("alarms") == [("ok", "9, none active")]


def test_people_get_lines_without_colours_in_a_pipe(stack: Stack) -> None:
    looked = look(stack.emulator, "--release", stack.folder, as_json=False)
    first, *lines = looked.text.splitlines()
    assert first == "Account 000000000000, region us-east-1, stack larder"
    assert "ok       queues       4 empty" in lines
    assert lines[-2:] == [
        "note     drift        not checked, because it takes minutes",
        "                      do: larder --stack larder status --drift",
    ]
    assert "\x1b" not in looked.text


# ------------------------------------------------------------------------------------------- version


@contextmanager
def other_code(stack: Stack, function: str) -> Iterator[None]:
    """A context with other code in a function. At its end, the command of docs/operations.md puts the code back."""
    archive = io.BytesIO()
    with ZipFile(archive, "w") as zipped:
        zipped.writestr("changed.py", "changed = True")
    client = stack.emulator.client("lambda")
    client.update_function_code(FunctionName=stack.physical(function), ZipFile=archive.getvalue())
    yield
    parameters = {
        parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack.described()["Parameters"]
    }
    (released,) = stack.folder.glob("functions-*.zip")
    client.update_function_code(
        FunctionName=stack.physical(function),
        S3Bucket=parameters["CodeBucket"],
        S3Key=parameters["CodePrefix"] + released.name,
    )


def test_code_that_was_changed_by_hand_is_named(stack: Stack) -> None:
    with other_code(stack, "PutArtifact"):
        looked = look(stack.emulator, "--release", stack.folder)
    assert looked.status == 1
    ((level, found),) = looked.of("version")
    assert level == "problem"
    assert found.endswith(f"; 1 of {FUNCTIONS} functions do not run its code: PutArtifact")
    assert "Restore the code of functions" in looked.advice("version")
    assert look(stack.emulator, "--release", stack.folder).of("version")[0][0] == "ok"


def test_another_layer_is_other_code(stack: Stack) -> None:
    client, function = stack.emulator.client("lambda"), stack.physical("FetchArtifact")
    layers = [layer["Arn"] for layer in client.get_function_configuration(FunctionName=function)["Layers"]]
    client.update_function_configuration(FunctionName=function, Layers=[])
    looked = look(stack.emulator, "--release", stack.folder)
    client.update_function_configuration(FunctionName=function, Layers=layers)
    assert (looked.status, looked.of("version")[0][0]) == (1, "problem")
    assert looked.of("version")[0][1].endswith("do not run its code: FetchArtifact")


def test_a_layer_that_is_gone_is_other_code(stack: Stack) -> None:
    client, function = stack.emulator.client("lambda"), stack.physical("SweepExpiredKeys")
    made = client.get_function_configuration(FunctionName=function)
    layers = [layer["Arn"] for layer in made["Layers"]]
    (archive,) = stack.folder.glob("jwt-layer-*.zip")
    content = {"ZipFile": archive.read_bytes()}
    other = client.publish_layer_version(LayerName="other", Content=content)
    client.update_function_configuration(FunctionName=function, Layers=[other["LayerVersionArn"]])
    client.delete_layer_version(LayerName="other", VersionNumber=other["Version"])
    looked = look(stack.emulator, "--release", stack.folder)
    client.update_function_configuration(FunctionName=function, Layers=layers)
    assert (looked.status, looked.of("version")[0][0]) == (1, "problem")
    assert looked.of("version")[0][1].endswith("do not run its code: SweepExpiredKeys")


def test_without_the_release_of_this_version_the_code_is_not_compared(stack: Stack, tmp_path: Path) -> None:
    ((level, found),) = look(stack.emulator).of("version")
    assert (level, found.endswith("because this command has no release")) == ("note", True)
    other = tmp_path / "other"
    other.mkdir()
    description = json.loads((stack.folder / DESCRIPTION).read_text())
    (other / DESCRIPTION).write_text(json.dumps({**description, "version": "9.9.9"}))
    looked = look(stack.emulator, "--release", other)
    ((level, found),) = looked.of("version")
    assert (level, found.endswith("has the release 9.9.9")) == ("note", True)
    assert "--release" in looked.advice("version")
    damaged = shutil.copytree(stack.folder, tmp_path / "damaged")
    (damaged / PLAIN).write_text("{}")
    ((level, found),) = look(stack.emulator, "--release", damaged).of("version")
    assert (level, f"{PLAIN} does not have its checksum" in found) == ("note", True)


# -------------------------------------------------------------------------------------------- stack


def test_a_stack_that_can_be_deleted_is_a_warning(stack: Stack) -> None:
    client = stack.emulator.client("cloudformation")
    client.update_termination_protection(StackName="larder", EnableTerminationProtection=False)
    looked = look(stack.emulator)
    client.update_termination_protection(StackName="larder", EnableTerminationProtection=True)
    assert (looked.status, looked.of("stack")[0][0]) == (0, "warning")
    assert "although ProtectData=true" in looked.of("stack")[0][1]
    assert "--enable-termination-protection --stack-name larder" in looked.advice("stack")


def test_a_table_without_protection_or_recovery_is_a_warning(stack: Stack) -> None:
    client, table = stack.emulator.client("dynamodb"), stack.physical("TeamsTable")
    client.update_table(TableName=table, DeletionProtectionEnabled=False)
    recover(stack, "AuditTable", on=False)
    looked = look(stack.emulator)
    client.update_table(TableName=table, DeletionProtectionEnabled=True)
    recover(stack, "AuditTable", on=True)
    assert looked.status == 0
    assert looked.of("data") == [
        ("warning", "TeamsTable can be deleted by mistake, although ProtectData=true"),
        ("warning", "AuditTable cannot be restored to an earlier time, although ProtectData=true"),
    ]
    assert f"update-table --table-name {table} --deletion-protection-enabled" in looked.advice("data")
    assert "PointInTimeRecoveryEnabled=true" in looked.advice("data")


def ends(at: Emulator, name: str, status: str) -> None:
    """Wait until the stack has this status."""
    client = at.client("cloudformation")
    eventually(lambda: client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == status, 60)


def change(stack: Stack, *, until: str = "UPDATE_COMPLETE", **options: str) -> None:
    """Update the stack with these options, without `larder upgrade`."""
    client = stack.emulator.client("cloudformation")
    declared = stack.template()["Parameters"]
    client.update_stack(
        StackName="larder",
        UsePreviousTemplate=True,
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[
            {"ParameterKey": name, "ParameterValue": options[name]}
            if name in options
            else {"ParameterKey": name, "UsePreviousValue": True}
            for name in declared
        ],
    )
    ends(stack.emulator, "larder", until)


def upgrade(stack: Stack, *arguments: str) -> None:
    """The command that the advice names, with answers for it."""
    given = ("--config", stack.folder / "none.toml", "--release", stack.folder, "--yes")
    done = stack.larder("--stack", "larder", "upgrade", *arguments, *given)
    assert done.status == 0, done.text


def test_a_creation_that_ended_before_its_data_was_protected_is_a_warning(stack: Stack) -> None:
    change(stack, ProtectData="false")
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("data") == [("warning", "the creation ended before the tables were protected")]
    assert "`larder --stack larder upgrade` protects them" in looked.advice("data")
    upgrade(stack)
    assert [look(stack.emulator).of(check)[0][0] for check in ("stack", "data")] == ["ok", "ok"]


def test_a_trial_is_a_note(stack: Stack) -> None:
    client = stack.emulator.client("cloudformation")
    change(stack, ProtectData="false")
    client.update_termination_protection(StackName="larder", EnableTerminationProtection=False)
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("data")[0][0] == "note"
    assert "larder --stack larder upgrade --set ProtectData=true" in looked.advice("data")
    assert looked.of("stack")[0][1].endswith("; not protected from deletion")
    upgrade(stack, "--set", "ProtectData=true")
    assert [look(stack.emulator).of(check)[0][0] for check in ("stack", "data")] == ["ok", "ok"]


def test_an_update_that_failed_is_a_warning(stack: Stack, failing: Path) -> None:
    failing.write_text("AccessLogGroup")
    change(stack, until="UPDATE_ROLLBACK_COMPLETE", LogRetentionDays="30")
    looked = look(stack.emulator)
    assert (looked.status, looked.of("stack")[0][0]) == (0, "warning")
    assert "the last update failed, and everything is as before" in looked.of("stack")[0][1]
    assert "larder --stack larder upgrade" in looked.advice("stack")
    change(stack, LogRetentionDays="60")
    assert look(stack.emulator).of("stack")[0][0] == "ok"


# ------------------------------------------------------------------------------------------- alarms


def test_alarms_that_nobody_gets_are_a_problem(stack: Stack) -> None:
    sns, topic = stack.emulator.client("sns"), stack.physical("AlarmMail")
    (mine,) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    sns.unsubscribe(SubscriptionArn=mine["SubscriptionArn"])
    looked = look(stack.emulator)
    assert looked.status == 1
    assert looked.of("alarm mail") == [("problem", "nobody subscribes to the alarms, so none arrives")]
    assert f"aws sns subscribe --topic-arn {topic}" in looked.advice("alarm mail")
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=ADDRESS)
    looked = look(stack.emulator)
    assert looked.status == 1
    assert looked.of("alarm mail") == [("problem", f"{ADDRESS} has not confirmed, so no alarm arrives")]
    assert "open the link" in looked.advice("alarm mail")
    confirm(stack)
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint="second@example.com")
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("alarm mail") == [("warning", "second@example.com has not confirmed")]
    sns.confirm_subscription(TopicArn=topic, Token="second@example.com")
    assert look(stack.emulator).of("alarm mail") == [("ok", "2 confirmed")]


def test_active_alarms_are_problems_and_silent_ones_warnings(stack: Stack) -> None:
    client = stack.emulator.client("cloudwatch")
    active, silent = stack.physical("HitsLost"), stack.physical("DeadLetters")
    client.set_alarm_state(AlarmName=active, StateValue="ALARM", StateReason="a test")
    client.disable_alarm_actions(AlarmNames=[silent])
    looked, lines = look(stack.emulator), look(stack.emulator, as_json=False)
    client.set_alarm_state(AlarmName=active, StateValue="OK", StateReason="a test")
    client.enable_alarm_actions(AlarmNames=[silent])
    assert looked.status == 1
    assert set(looked.of("alarms")) == {
        ("problem", "HitsLost is active"),
        ("warning", "DeadLetters notifies nobody: its actions are off"),
    }
    assert "docs/operations.md, HitsLost" in looked.advice("alarms")
    assert re.search("do: https?://[^/ ]+/docs/operations#hitslost\n", lines.text)
    assert f"aws cloudwatch enable-alarm-actions --alarm-names {silent}" in looked.advice("alarms")


def test_an_alarm_that_is_gone_is_a_warning(stack: Stack) -> None:
    client, name = stack.emulator.client("cloudwatch"), stack.physical("ApiSlow")
    (alarm,) = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    client.delete_alarms(AlarmNames=[name])
    looked = look(stack.emulator)
    kept = ("Namespace", "MetricName", "ExtendedStatistic", "Period", "EvaluationPeriods")
    client.put_metric_alarm(AlarmName=name, **{key: alarm[key] for key in (*kept, "Threshold", "ComparisonOperator")})
    assert looked.status == 0
    assert looked.of("alarms") == [("warning", "ApiSlow is deleted")]
    assert "docs/operations.md, Differences from the template" in looked.advice("alarms")


# --------------------------------------------------------------------------------------- background


def test_a_message_in_a_queue_is_a_warning(stack: Stack) -> None:
    sqs, queue = stack.emulator.client("sqs"), stack.physical("HourlyFailures")
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    looked = look(stack.emulator)
    sqs.purge_queue(QueueUrl=queue)
    assert looked.status == 0
    assert looked.of("queues") == [("warning", "HourlyFailures holds 1 message")]
    assert "docs/operations.md, DeadLetters" in looked.advice("queues")


@pytest.mark.parametrize(("function", "check"), [("SweepExpiredKeys", "sweeps"), (ON_UPLOAD, "uploads")])
def test_a_rule_that_is_off_is_a_problem(stack: Stack, function: str, check: str) -> None:
    events, rule = stack.emulator.client("events"), stack.physical(function * 2)
    events.disable_rule(Name=rule)
    looked = look(stack.emulator)
    events.enable_rule(Name=rule)
    assert (looked.status, looked.of(check)[0][0]) == (1, "problem")
    assert looked.of(check)[0][1].endswith("its rule is off")
    assert f"aws events enable-rule --name {rule}" in looked.advice(check)


def test_runs_of_the_hourly_functions_are_counted_and_their_failures_warned_of(stack: Stack) -> None:
    function = stack.physical("SweepDeletedUsers")
    stack.emulator.client("lambda").invoke(FunctionName=function, Payload=b"{}")
    assert look(stack.emulator).of("sweeps")[0][1].startswith("1 of 4 ran within two hours")
    put_metric(stack, "AWS/Lambda", "Invocations", 3, FunctionName=function)
    put_metric(stack, "AWS/Lambda", "Errors", 2, FunctionName=function)
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("sweeps") == [("warning", "SweepDeletedUsers failed 2 of 4 times within two hours")]
    assert "docs/operations.md, DeadLetters" in looked.advice("sweeps")


def test_functions_that_have_not_run_for_two_hours_are_a_problem(stack: Stack) -> None:
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=3)):
        looked = look(stack.emulator)
    assert looked.status == 1
    assert looked.of("sweeps") == [("problem", f"{function} has not run for two hours") for function in HOURLY]
    assert "docs/operations.md, DeadLetters" in looked.advice("sweeps")


def test_a_rule_that_is_gone_is_a_problem(stack: Stack) -> None:
    events, rule = stack.emulator.client("events"), stack.physical("SweepArtifacts" * 2)
    schedule = events.describe_rule(Name=rule)["ScheduleExpression"]
    targets = events.list_targets_by_rule(Rule=rule)["Targets"]
    events.remove_targets(Rule=rule, Ids=[target["Id"] for target in targets])
    events.delete_rule(Name=rule)
    looked = look(stack.emulator)
    events.put_rule(Name=rule, ScheduleExpression=schedule)
    events.put_targets(Rule=rule, Targets=targets)
    assert looked.status == 1
    assert ("problem", "SweepArtifacts is not started: its rule is off") in looked.of("sweeps")
    assert f"the rule {rule} is deleted" in looked.advice("sweeps")


def test_events_of_uploads_are_counted_and_lost_ones_warned_of(stack: Stack) -> None:
    rule = {"RuleName": stack.physical(ON_UPLOAD * 2)}
    function = {"FunctionName": stack.physical(ON_UPLOAD)}
    put_metric(stack, "AWS/Events", "MatchedEvents", 1_204, **rule)
    looked = look(stack.emulator)
    assert (looked.status, looked.of("uploads")) == (
        1,
        [("problem", "1,204 events in 24 hours, and none reached CommitUpload")],
    )
    put_metric(stack, "AWS/Events", "Invocations", 1_204, **rule)
    put_metric(stack, "AWS/Lambda", "AsyncEventAge", 3_000, **function)
    found = "1,204 events in 24 hours, all handled, the longest wait was 3.0 s"
    assert look(stack.emulator).of("uploads") == [("ok", found)]
    put_metric(stack, "AWS/Events", "FailedInvocations", 1, **rule)
    put_metric(stack, "AWS/Lambda", "AsyncEventsDropped", 2, **function)
    put_metric(stack, "AWS/Lambda", "Errors", 1, **function)
    put_metric(stack, "AWS/Lambda", "AsyncEventAge", 720_000, **function)
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("uploads") == [
        ("warning", "3 events in 24 hours did not reach CommitUpload"),
        ("warning", "CommitUpload failed 1 time in 24 hours"),
        ("warning", "an event waited 12 min 0 s for CommitUpload"),
    ]
    assert "docs/operations.md, DeadLetters" in looked.advice("uploads")


# ----------------------------------------------------------------------------------------- capacity


def test_functions_that_others_have_reserved_are_a_problem(stack: Stack) -> None:
    client, function = stack.emulator.client("lambda"), stack.physical("PutArtifact")
    allowed = client.get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=allowed - 50)
    looked = look(stack.emulator)
    client.delete_function_concurrency(FunctionName=function)
    assert (looked.status, looked.of("concurrency")[0][0]) == (1, "problem")
    assert f"{allowed} functions at once, 50 not reserved" in looked.of("concurrency")[0][1]
    assert "request-service-quota-increase" in looked.advice("concurrency")


def test_a_peak_near_the_limit_is_a_warning(stack: Stack) -> None:
    put_metric(stack, "AWS/Lambda", "ConcurrentExecutions", 61)
    looked = look(stack.emulator)
    assert looked.of("concurrency")[0][0] == "ok"
    assert looked.of("concurrency")[0][1].endswith("the most in 24 hours was 61")
    client = stack.emulator.client("lambda")
    allowed = client.get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    put_metric(stack, "AWS/Lambda", "ConcurrentExecutions", allowed - 1)
    looked = look(stack.emulator)
    assert (looked.status, looked.of("concurrency")[0][0]) == (0, "warning")


def test_conflicts_of_writes_are_counted_and_no_warning(stack: Stack) -> None:
    for table, number in (("ArtifactsTable", 3), ("TeamsTable", 4)):
        put_metric(stack, "AWS/DynamoDB", "TransactionConflict", number, TableName=stack.physical(table))
    assert look(stack.emulator).of("throttles") == [("ok", "none in 24 hours, and no 5xx; 7 conflicts of writes")]


def test_what_aws_refused_is_a_warning_that_names_it(stack: Stack) -> None:
    for function, number in (("PutArtifact", 2), ("Preflight", 10)):
        put_metric(stack, "AWS/Lambda", "Throttles", number, FunctionName=stack.physical(function))
    keys = {"TableName": stack.physical("ApiKeysTable")}
    put_metric(stack, "AWS/DynamoDB", "WriteThrottleEvents", 4, **keys)
    put_metric(stack, "AWS/DynamoDB", "WriteThrottleEvents", 1, **keys, GlobalSecondaryIndexName="by_user")
    put_metric(stack, "Larder/larder", "RefusedRequests", 3)
    put_metric(stack, "AWS/ApiGateway", "5xx", 1, ApiId=stack.physical("HttpApi"))
    looked = look(stack.emulator)
    assert looked.status == 0
    assert looked.of("throttles") == [
        ("warning", f"in 24 hours, {found}")
        for found in (
            "functions that Lambda did not start: Preflight 10, PutArtifact 2",
            "requests that DynamoDB refused: ApiKeysTable 4, ApiKeysTable/by_user 1",
            "requests of builds with 429 or without a token: 3",
            "replies of the API with 5xx: 1",
        )
    ]
    for heading in ("ApiFailing", "HitsLost"):
        assert f"docs/operations.md, {heading}" in looked.advice("throttles")


# --------------------------------------------------------------------------------------------- drift


def test_drift_names_the_resource_and_the_property(stack: Stack) -> None:
    sqs, queue = stack.emulator.client("sqs"), stack.physical("HourlyFailures")
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MessageRetentionPeriod": "60"})
    logs, group = stack.emulator.client("logs"), stack.physical("UsageLogGroup")
    logs.delete_log_group(logGroupName=group)
    looked = look(stack.emulator, "--drift")
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MessageRetentionPeriod": "1209600"})
    logs.create_log_group(logGroupName=group)
    assert looked.status == 0
    assert looked.of("drift") == [
        ("warning", "HourlyFailures: MessageRetentionPeriod is 60, not 1209600"),
        ("warning", "UsageLogGroup is deleted"),
    ]
    assert "docs/operations.md, Differences from the template" in looked.advice("drift")


# --------------------------------------------------------------------------------------- permissions


@pytest.fixture(scope="module")
def observer(stack: Stack) -> tuple[dict[str, str], Callable[[str], None]]:
    """The credentials of a user with the documented actions, and a function that denies one of them."""
    iam = stack.emulator.client("iam")
    iam.create_user(UserName=USER)

    def allow(denied: str = "ec2:RunInstances") -> None:
        statements = [
            {"Effect": "Allow", "Action": sorted(ACTIONS.values()), "Resource": "*"},
            {"Effect": "Deny", "Action": denied, "Resource": "*"},
        ]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.put_user_policy(UserName=USER, PolicyName="status", PolicyDocument=document)

    allow()
    key = iam.create_access_key(UserName=USER)["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}, allow


def test_the_documented_permissions_suffice_and_none_is_left_over(
    stack: Stack, observer: tuple[dict[str, str], Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    environ, _ = observer
    called: set[str] = set()
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", _noting(called))
    looked = look(stack.emulator, "--release", stack.folder, "--drift", environ=environ)
    assert [row for row in looked.rows if "not checked" in row["found"]] == []
    assert called - {NEVER_DENIED.partition(":")[2]} == ACTIONS.keys()


def _noting(called: set[str]) -> Callable[..., Any]:
    from botocore.client import BaseClient

    call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def noting(client: Any, operation: str, parameters: Any) -> Any:
        called.add(operation)
        return call(client, operation, parameters)

    return noting


def test_without_any_one_permission_a_note_names_it_and_the_others_are_checked(
    stack: Stack, observer: tuple[dict[str, str], Callable[[str], None]]
) -> None:
    environ, deny = observer
    for action in ACTIONS.values():
        deny(action)
        looked = look(stack.emulator, "--release", stack.folder, "--drift", environ=environ)
        if action in ("cloudformation:DescribeStacks", "cloudformation:ListStackResources"):
            # Without them, there is nothing to check.
            assert looked.status == 1
            assert action in looked.text
            continue
        notes = {row["check"]: row for row in looked.rows if row["level"] == "note"}
        assert notes, action
        for note in notes.values():
            assert note["found"] == f"not checked: you lack {action}"
            assert note["advice"].startswith(f"allow {action} (docs/operator-cli.md, ")
        checks = {row["check"] for row in looked.rows}
        assert len(checks) == 11
        assert len(notes) <= 5, action


# -------------------------------------------------------------------------------------- other states


SMALL: dict[str, Any] = {
    "Description": "Larder: small.",
    "Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
}
REFUSED = {
    "Description": "Larder: refused.",
    "Resources": {"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {}}},
}


def test_a_stack_whose_creation_failed_has_one_row(stack: Stack) -> None:
    client = stack.emulator.client("cloudformation")
    client.create_stack(StackName="failed", TemplateBody=json.dumps(REFUSED))
    ends(stack.emulator, "failed", "ROLLBACK_COMPLETE")
    looked = look(stack.emulator, name="failed")
    assert (looked.status, len(looked.rows)) == (1, 1)
    assert "its creation failed, and it holds no data" in looked.of("stack")[0][1]
    assert "larder install --stack failed" in looked.advice("stack")


def test_a_stack_that_was_only_planned_has_one_row(stack: Stack) -> None:
    client = stack.emulator.client("cloudformation")
    client.create_change_set(
        StackName="planned", ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=json.dumps(SMALL)
    )
    looked = look(stack.emulator, name="planned")
    assert (looked.status, len(looked.rows)) == (1, 1)
    assert "larder install --stack planned" in looked.advice("stack")


def test_no_stack_is_an_error(stack: Stack) -> None:
    looked = look(stack.emulator, name="absent")
    assert looked.status == 1
    assert "there is no stack absent in us-east-1" in looked.text


def test_a_new_account_runs_too_few_functions_and_missing_resources_hide_nothing(tmp_path: Path) -> None:
    with emulator(tmp_path / "emulator", {"LAMBDA_ACCOUNT_CONCURRENCY": "10"}) as running:
        client = running.client("cloudformation")
        client.create_stack(StackName="small", TemplateBody=json.dumps(SMALL))
        ends(running, "small", "CREATE_COMPLETE")
        looked = look(running, name="small")
    assert looked.status == 1
    assert looked.of("concurrency")[0][0] == "problem"
    assert looked.of("concurrency")[0][1].startswith("10 functions at once")
    assert "request-service-quota-increase" in looked.advice("concurrency")
    assert looked.of("sweeps") == [("note", "not checked: the stack has no SweepArtifacts")]
    assert looked.of("throttles") == [("note", "not checked: the stack has no HttpApi")]


def test_follow_waits_for_the_end_of_an_operation(stack: Stack) -> None:
    wait = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "60", "Count": 1},
    }
    client = stack.emulator.client("cloudformation")
    template = {**SMALL, "Resources": {**SMALL["Resources"], "Signal": wait}}
    client.create_stack(StackName="busy", TemplateBody=json.dumps(template))
    looked = look(stack.emulator, name="busy")
    assert looked.of("stack")[0][0] == "note"
    assert "larder --stack busy status --follow" in looked.advice("stack")
    program = Path(sys.executable).with_name("larder")
    with subprocess.Popen(
        [program, "--stack", "busy", "status", "--follow"],
        env={"PATH": os.environ["PATH"], **stack.emulator.variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stderr is not None
        assert re.match(r"  \d+   0:0\d ", following.stderr.readline())
        handle = client.describe_stack_resource(StackName="busy", LogicalResourceId="Handle")
        signal = {"Status": "SUCCESS", "UniqueId": "1", "Reason": "", "Data": ""}
        url = handle["StackResourceDetail"]["PhysicalResourceId"]
        httpx.put(url, content=json.dumps(signal), trust_env=False).raise_for_status()
        output, _ = following.communicate(timeout=60)
    assert "busy is CREATE_COMPLETE." in output
    assert "ok       stack        CREATE_COMPLETE, started " in output


# --------------------------------------------------------------------------------------- the template


def test_the_checks_know_the_resources_of_the_template() -> None:
    scheduled = {
        name
        for name, one in RESOURCES.items()
        for event in one.get("Properties", {}).get("Events", {}).values()
        if event["Type"] == "Schedule" and "WarmSchedule" not in str(event)
    }
    assert set(HOURLY) == scheduled
    protected = {
        name
        for name, one in RESOURCES.items()
        if one["Type"] == "AWS::DynamoDB::Table" and "DeletionProtectionEnabled" in one["Properties"]
    }
    assert set(PROTECTED) == protected
