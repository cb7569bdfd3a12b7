"""The stack in CloudFormation: what state it is in, and what to do before a deployment can change it."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import click
from botocore.exceptions import ClientError

from larder_cli.deploy.advice import route_commands, unknown_routes
from larder_cli.target import DESCRIPTION

_NEVER_CREATED = {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"}
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.3, 5.0
_LEFT_LIMITS = (
    "The stage of the API still has limits for routes that the restored version lacks. If the version that you deploy "
    "lacks them as well, remove them first:"
)
_SKIP = """Mend what stops the rollback, and run the same command again. If you cannot, leave the resources as they are:

  aws cloudformation continue-update-rollback --stack-name {} --region {} --resources-to-skip {}

What follows: docs/install.md, If something fails."""


class State(Enum):
    """What a deployment can do with the stack."""

    NEW = "new"
    REMAINS = "the remains of a creation that failed"
    READY = "update"
    STUCK = "an update whose rollback failed"
    BUSY = "busy"
    HALF_DELETED = "half deleted"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack by name. `status` is CloudFormation's; None if there is no stack."""

    name: str
    status: str | None = None
    parameters: Mapping[str, str] | None = None
    outputs: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    protected: bool = False
    since: datetime | None = None
    """When the last operation began."""
    created: datetime | None = None
    description: str = ""
    """That of its template."""

    @property
    def is_larders(self) -> bool:
        """Whether it has been deployed from a template of Larder, of any version."""
        return self.description.startswith(DESCRIPTION)

    @property
    def is_new(self) -> bool:
        """Whether it has never been complete, so that it holds no data."""
        return self.state in (State.NEW, State.REMAINS)

    @property
    def can_continue(self) -> bool:
        """Whether it is a creation that has failed and kept what it had created."""
        return self.state is State.REMAINS and "ROLLBACK" not in str(self.status)

    @property
    def state(self) -> State:
        if self.status is None or self.status == "REVIEW_IN_PROGRESS":
            return State.NEW
        if self.status.endswith("_IN_PROGRESS"):
            return State.BUSY
        if self.status in _NEVER_CREATED or (self.status == "UPDATE_FAILED" and not self.outputs):
            return State.REMAINS
        if self.status == "UPDATE_ROLLBACK_FAILED":
            return State.STUCK
        if self.status == "DELETE_FAILED":
            return State.HALF_DELETED
        return State.READY


def find(cloudformation: Any, name: str) -> Stack:
    """The stack as it is now."""
    try:
        (found,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return Stack(name)
    parameters = {
        parameter["ParameterKey"]: parameter.get("ParameterValue", "")
        for parameter in found.get("Parameters", [])
    }
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
    return Stack(
        name,
        found["StackStatus"],
        parameters,
        outputs,
        {tag["Key"]: tag["Value"] for tag in found.get("Tags", [])},
        protected=bool(found.get("EnableTerminationProtection")),
        since=found.get("LastUpdatedTime") or found["CreationTime"],
        created=found["CreationTime"],
        description=found.get("Description", ""),
    )


def delete_remains(cloudformation: Any, dynamodb: Any, name: str) -> None:
    """Delete a stack whose creation failed. Nothing has ever been stored in it.

    Raises ClickException if CloudFormation cannot.
    """
    set_protection(cloudformation, name, on=False)
    for table in _physical_ids(cloudformation, name, "AWS::DynamoDB::Table"):
        # A protected table of a deployment with another tool would stop the deletion.
        try:
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        except dynamodb.exceptions.ResourceNotFoundException:
            continue
    cloudformation.delete_stack(StackName=name)
    wait(cloudformation, name, until=None)


def finish_rollback(cloudformation: Any, name: str, region: str) -> str:
    """Continue the rollback of an update. Returns what is left to do, which may be nothing.

    A stage with limits for routes that the API no longer has stops each rollback. It is left as it is: the next
    deployment writes it. Raises ClickException if CloudFormation cannot finish.
    """
    cloudformation.continue_update_rollback(StackName=name)
    try:
        wait(cloudformation, name, until="UPDATE_ROLLBACK_COMPLETE")
    except click.ClickException as error:
        failed = _stopped_rollback(cloudformation, name)
        routes = unknown_routes(failed.values())
        commands = route_commands(routes, api=api_id(cloudformation, name), region=region)
        if not all(unknown_routes([reason]) for reason in failed.values()) or not failed:
            reasons = [f"{logical_id}: {reason}" for logical_id, reason in failed.items()]
            skipped = " ".join(failed)
            raise click.ClickException(
                "\n".join([error.message, *reasons, *commands, _SKIP.format(name, region, skipped)])
            ) from error
        cloudformation.continue_update_rollback(StackName=name, ResourcesToSkip=[*failed])
        wait(cloudformation, name, until="UPDATE_ROLLBACK_COMPLETE")
        return "\n".join([_LEFT_LIMITS, *commands])
    return ""


def api_id(cloudformation: Any, name: str) -> str:
    """The id of the stack's HTTP API, for commands that people run."""
    return next(_physical_ids(cloudformation, name, "AWS::ApiGatewayV2::Api"), "API_ID")


def _stopped_rollback(cloudformation: Any, name: str) -> dict[str, str]:
    """Which resources the last rollback could not restore and why, by logical id."""
    failed: dict[str, str] = {}
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
    for event in (event for page in pages for event in page["StackEvents"]):
        if event["LogicalResourceId"] == name:
            if event["ResourceStatus"] == "UPDATE_ROLLBACK_IN_PROGRESS":
                break
        elif event["ResourceStatus"].endswith("_FAILED"):
            failed.setdefault(event["LogicalResourceId"], event.get("ResourceStatusReason", ""))
    return failed


def failures(cloudformation: Any, name: str) -> list[str]:
    """Which resources failed in the last creation or update and why, newest first, from the last 1,000 events."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(
        StackName=name, PaginationConfig={"MaxItems": 1_000}
    )
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        events = [event for page in pages for event in page["StackEvents"]]
    except ClientError:
        # The operation failed before there was a stack.
        return []
    began = stack.get("LastUpdatedTime") or stack["CreationTime"]
    failed = [
        event
        for event in events
        if event["Timestamp"] >= began
        and event["ResourceStatus"].endswith("_FAILED")
        and event.get("ResourceStatusReason")
        and "cancelled" not in event["ResourceStatusReason"]
    ]
    # The reason of the stack itself only lists the resources that have one.
    of_resources = [event for event in failed if event["LogicalResourceId"] != name]
    return [
        f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in of_resources or failed
    ]


def set_protection(cloudformation: Any, name: str, *, on: bool) -> None:
    """Make CloudFormation refuse to delete the stack, or allow it."""
    cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=on)


def resources(cloudformation: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """The resources that exist, as ListStackResources describes them."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    for summary in (summary for page in pages for summary in page["StackResourceSummaries"]):
        if summary.get("PhysicalResourceId") and summary["ResourceStatus"] != "DELETE_COMPLETE":
            yield summary


def _physical_ids(cloudformation: Any, name: str, kind: str) -> Iterator[str]:
    for resource in resources(cloudformation, name):
        if resource["ResourceType"] == kind:
            yield resource["PhysicalResourceId"]


def wait(cloudformation: Any, name: str, *, until: str | None) -> None:
    """Wait for the end of an operation. `until` is the status of success, None for a deleted stack.

    Raises ClickException if it ends with another status.
    """
    stack = _settled(cloudformation, name)
    if stack.status != until:
        raise _failure(cloudformation, stack)


def wait_until_ready(cloudformation: Any, name: str) -> None:
    """The same for whichever operation goes on, if any."""
    stack = _settled(cloudformation, name)
    if stack.state is not State.READY:
        raise _failure(cloudformation, stack)


def _settled(cloudformation: Any, name: str) -> Stack:
    pauses = pauses_s()
    while (stack := find(cloudformation, name)).state is State.BUSY:
        time.sleep(next(pauses))
    return stack


def _failure(cloudformation: Any, stack: Stack) -> click.ClickException:
    reasons = failures(cloudformation, stack.name)
    return click.ClickException(
        "\n".join([*reasons, f"CloudFormation could not finish: {stack.name} is {stack.status}."])
    )


def pauses_s() -> Iterator[float]:
    """Between questions to CloudFormation: short at first, because some operations take a second."""
    began = time.monotonic()
    while True:
        yield min(_LONGEST_PAUSE_S, _SHORTEST_PAUSE_S + (time.monotonic() - began) / 20)
