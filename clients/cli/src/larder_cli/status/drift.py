"""What was changed in resources of the stack by hand."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from larder_cli.deploy.stack import pauses_s
from larder_cli.status.deployed import Deployed
from larder_cli.status.rows import Level, Row

_LONGEST_S = 900.0
_ADVICE = "docs/operations.md, Differences from the template"


def not_asked(deployed: Deployed) -> Iterator[Row]:
    yield Row(
        "drift",
        Level.NOTE,
        "not checked, because it takes minutes",
        f"larder --stack {deployed.stack.name} status --drift",
    )


def drift(deployed: Deployed, *, longest_s: float = _LONGEST_S) -> Iterator[Row]:
    """Raises ClickException if CloudFormation does not end in time."""
    cloudformation, stack = deployed.clients["cloudformation"], deployed.stack.name
    asked = cloudformation.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]
    until, pauses = time.monotonic() + longest_s, pauses_s()
    while True:
        found = cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=asked)
        if found["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        if time.monotonic() > until:
            raise click.ClickException(
                f"CloudFormation has not compared all resources in {longest_s / 60:.0f} minutes"
            )
        time.sleep(next(pauses))
    drifted = _drifted(cloudformation, stack)
    for one in sorted(drifted, key=lambda resource: str(resource["LogicalResourceId"])):
        name = one["LogicalResourceId"]
        if one["StackResourceDriftStatus"] == "DELETED":
            yield Row("drift", Level.WARNING, f"{name} is deleted", _ADVICE)
        for difference in one.get("PropertyDifferences", []):
            path = difference["PropertyPath"].removeprefix("/")
            yield Row(
                "drift",
                Level.WARNING,
                f"{name}: {path} is {difference['ActualValue']}, not {difference['ExpectedValue']}",
                _ADVICE,
            )
    if found["DetectionStatus"] == "DETECTION_FAILED":
        reason = found.get("DetectionStatusReason", "without a reason")
        advice = "allow what it names: detection reads each resource with your permissions"
        yield Row("drift", Level.NOTE, f"not all resources were compared: {reason}", advice)
    elif not drifted:
        yield Row("drift", Level.OK, "all resources are as the template says")


def _drifted(cloudformation: Any, stack: str) -> list[Mapping[str, Any]]:
    """The resources that differ. boto3 has no paginator for them."""
    found: list[Mapping[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        page = cloudformation.describe_stack_resource_drifts(
            StackName=stack, StackResourceDriftStatusFilters=["MODIFIED", "DELETED"], **token
        )
        found += page["StackResourceDrifts"]
        if "NextToken" not in page:
            return found
        token = {"NextToken": page["NextToken"]}
