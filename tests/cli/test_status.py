"""`larder status`: what no emulator does. tests/deployed/test_status.py runs it on a deployed stack."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import click
import pytest
from botocore.stub import Stubber

from larder_cli.deploy.progress import Terminal
from larder_cli.deploy.stack import Stack
from larder_cli.status.alarms import alarm_mail
from larder_cli.status.deployed import Deployed
from larder_cli.status.drift import drift
from larder_cli.status.permissions import ACTIONS
from larder_cli.status.rows import Check, Level, Row, checked

from .conftest import Larder

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "operator-cli.md"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:pager"
ID = "a" * 36


@contextmanager
def stubbed(service: str, **options: str) -> Iterator[tuple[Deployed, Stubber]]:
    """A stack with these options and one client, whose replies the stubber has."""
    session = boto3.session.Session("testing", "testing", region_name="eu-central-1")
    client: Any = session.client(service)  # type: ignore[call-overload]
    with Stubber(client) as stubber:
        stack = Stack("larder", "UPDATE_COMPLETE", parameters=options)
        yield Deployed(stack, "eu-central-1", {}, {service: client}, datetime.now(UTC)), stubber
        stubber.assert_no_pending_responses()


def test_the_documented_permissions_are_those_of_the_calls() -> None:
    _, _, section = REFERENCE.read_text().partition("\n## Permissions in AWS\n")
    (general,) = re.findall(r"every command needs `(\S+)` on the stack", section)
    rows = re.findall(r"^\| `status(?: --drift)?` \| (.+) \|$", section, re.MULTILINE)
    listed = {action for row in rows for action in re.findall(r"`(\w+:\w+)`", row)}
    # CloudFormation calls these two for the caller.
    by_cloudformation = {"cloudformation:DetectStackResourceDrift", "cloudformation:BatchDescribeTypeConfigurations"}
    assert listed | {general} == {*ACTIONS.values(), *by_cloudformation}


def test_a_local_cloud_has_no_status(own_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusal = Larder(("--local", str(tmp_path))).refusal("status", status=2)
    assert "name it with --stack NAME" in refusal


def test_a_check_that_fails_hides_no_other() -> None:
    def broken(_: Deployed) -> Iterator[Row]:
        raise ValueError("a bug")

    def fine(_: Deployed) -> Iterator[Row]:
        yield Row("fine", Level.OK, "found")

    with stubbed("sns") as (deployed, _):
        rows = list(checked([Check("broken", broken), Check("fine", fine)], deployed))
    assert [(row.level, row.found) for row in rows] == [
        (Level.NOTE, "not checked: ValueError: a bug"),
        (Level.OK, "found"),
    ]
    assert "report it" in rows[0].advice


# ------------------------------------------------------------------------------------------- alarms


def test_alarms_in_cloudwatch_alone_are_a_warning_and_none_a_note() -> None:
    with stubbed("sns", Alarms="true", AlarmEmail="", AlarmTopic="") as (deployed, _):
        (row,) = alarm_mail(deployed)
    assert (row.level, row.found) == (Level.WARNING, "alarms only show in CloudWatch")
    assert "larder --stack larder upgrade --set AlarmEmail=" in row.advice
    with stubbed("sns", Alarms="false") as (deployed, _):
        (row,) = alarm_mail(deployed)
    assert (row.level, "--set Alarms=true" in row.advice) == (Level.NOTE, True)


def test_a_topic_of_your_own_needs_a_subscription_of_any_kind() -> None:
    pager = {"SubscriptionArn": f"{TOPIC}:1", "Protocol": "https", "Endpoint": "https://pager"}
    with stubbed("sns", Alarms="true", AlarmTopic=TOPIC) as (deployed, stubber):
        stubber.add_response("list_subscriptions_by_topic", {"Subscriptions": [pager]}, {"TopicArn": TOPIC})
        (row,) = alarm_mail(deployed)
    assert (row.level, row.found) == (Level.OK, "1 confirmed")


# --------------------------------------------------------------------------------------------- drift


def begin(stubber: Stubber, status: str, **more: str) -> None:
    """The replies to a detection that has this status."""
    stubber.add_response("detect_stack_drift", {"StackDriftDetectionId": ID})
    described = {
        "StackId": "larder",
        "StackDriftDetectionId": ID,
        "DetectionStatus": status,
        "Timestamp": datetime.now(UTC),
        **more,
    }
    stubber.add_response("describe_stack_drift_detection_status", described)


def page(*names: str, **more: str) -> dict[str, Any]:
    return {
        "StackResourceDrifts": [
            {
                "StackId": "larder",
                "LogicalResourceId": name,
                "ResourceType": "AWS::SQS::Queue",
                "StackResourceDriftStatus": "DELETED",
                "Timestamp": datetime.now(UTC),
            }
            for name in names
        ],
        **more,
    }


def test_drift_waits_with_a_limit() -> None:
    with stubbed("cloudformation") as (deployed, stubber):
        begin(stubber, "DETECTION_IN_PROGRESS")
        with pytest.raises(click.ClickException, match="has not compared all resources"):
            list(drift(deployed, longest_s=-1))


def test_drift_reads_all_pages_and_says_what_was_not_compared() -> None:
    with stubbed("cloudformation") as (deployed, stubber):
        begin(stubber, "DETECTION_FAILED", DetectionStatusReason="no permission for Key")
        stubber.add_response("describe_stack_resource_drifts", page("Beta", NextToken="next"))
        stubber.add_response("describe_stack_resource_drifts", page("Alpha"))
        rows = list(drift(deployed))
    assert [(row.level, row.found) for row in rows] == [
        (Level.WARNING, "Alpha is deleted"),
        (Level.WARNING, "Beta is deleted"),
        (Level.NOTE, "not all resources were compared: no permission for Key"),
    ]


# ------------------------------------------------------------------------------------------ progress


def test_a_line_after_the_progress_is_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    terminal = Terminal(asks=False, as_json=True)
    terminal.progress([], 0)
    terminal.say("The end.")
    terminal.say("Really.")
    shown = capsys.readouterr().err
    assert [line.strip() for line in shown.splitlines() if line.strip()][1:] == ["The end.", "Really."]
