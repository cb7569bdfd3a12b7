"""The stack in CloudFormation: what state it is in, and what to do before `sam deploy` can change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click
from botocore.exceptions import ClientError, WaiterError

_NEVER_CREATED = {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"}
_PAUSE_S = 5


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
    protected: bool = False

    @property
    def state(self) -> State:
        if self.status is None or self.status == "REVIEW_IN_PROGRESS":
            return State.NEW
        if self.status.endswith("_IN_PROGRESS"):
            return State.BUSY
        if self.status in _NEVER_CREATED:
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
        one["ParameterKey"]: one.get("ParameterValue", "") for one in found.get("Parameters", [])
    }
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
    return Stack(
        name,
        found["StackStatus"],
        parameters,
        outputs,
        protected=bool(found.get("EnableTerminationProtection")),
    )


def delete_remains(cloudformation: Any, dynamodb: Any, name: str) -> None:
    """Delete a stack whose creation failed. Nothing has ever been stored in it.

    Raises ClickException if CloudFormation cannot.
    """
    set_protection(cloudformation, name, on=False)
    for table in _tables(cloudformation, name):
        # A protected table of a deployment with `sam deploy` alone would stop the deletion.
        try:
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        except dynamodb.exceptions.ResourceNotFoundException:
            continue
    cloudformation.delete_stack(StackName=name)
    _wait(cloudformation, "stack_delete_complete", name)


def finish_rollback(cloudformation: Any, name: str) -> None:
    """Continue the rollback of an update. Raises ClickException if CloudFormation cannot."""
    cloudformation.continue_update_rollback(StackName=name)
    _wait(cloudformation, "stack_rollback_complete", name)


def failures(cloudformation: Any, name: str) -> list[str]:
    """Which resources failed in the last creation or update and why, newest first, from the last 1,000 events."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(
        StackName=name, PaginationConfig={"MaxItems": 1_000}
    )
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        events = [one for page in pages for one in page["StackEvents"]]
    except ClientError:
        # The operation failed before there was a stack.
        return []
    began = stack.get("LastUpdatedTime") or stack["CreationTime"]
    return [
        f"{one['LogicalResourceId']}: {one['ResourceStatusReason']}"
        for one in events
        if one["Timestamp"] >= began
        and one["ResourceStatus"].endswith("_FAILED")
        and one.get("ResourceStatusReason")
        and "cancelled" not in one["ResourceStatusReason"]
    ]


def set_protection(cloudformation: Any, name: str, *, on: bool) -> None:
    """Make CloudFormation refuse to delete the stack, or allow it."""
    cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=on)


def _tables(cloudformation: Any, name: str) -> list[str]:
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    return [
        one["PhysicalResourceId"]
        for page in pages
        for one in page["StackResourceSummaries"]
        if one["ResourceType"] == "AWS::DynamoDB::Table"
        and one.get("PhysicalResourceId")
        and one["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def _wait(cloudformation: Any, waiter: str, name: str) -> None:
    try:
        cloudformation.get_waiter(waiter).wait(
            StackName=name, WaiterConfig={"Delay": _PAUSE_S, "MaxAttempts": 360}
        )
    except WaiterError as error:
        raise click.ClickException(
            f"CloudFormation could not finish: {error}. The events of the stack {name} say which resource refused."
        ) from error
