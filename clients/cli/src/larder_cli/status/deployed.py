"""The deployed stack that the checks look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click
from botocore.config import Config

from larder import clock
from larder_cli.deploy import stack as stacks
from larder_cli.deploy.account import Account
from larder_cli.deploy.release import Release
from larder_cli.deploy.stack import Stack

FUNCTION = "AWS::Lambda::Function"
TABLE = "AWS::DynamoDB::Table"
QUEUE = "AWS::SQS::Queue"
ALARM = "AWS::CloudWatch::Alarm"

_SERVICES = ("cloudformation", "cloudwatch", "dynamodb", "events", "lambda", "sns", "sqs")
_CONFIG = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the stack. `id` is its physical id."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack, its resources by logical id, and clients by service, which many threads can use.

    `release` is the one to compare with, or None.
    """

    stack: Stack
    region: str
    resources: Mapping[str, Resource]
    clients: Mapping[str, Any]
    now: datetime
    release: Release | None = None

    def ids(self, kind: str) -> dict[str, str]:
        """The physical ids of the resources of this type, by logical id."""
        return {name: one.id for name, one in self.resources.items() if one.type == kind}

    def id(self, name: str) -> str:
        """The physical id of a resource. Raises ClickException if the stack does not have it."""
        if name not in self.resources:
            raise click.ClickException(f"the stack has no {name}")
        return self.resources[name].id

    def option(self, name: str) -> str:
        """The value of a parameter. Empty for one that the deployed version does not have."""
        return (self.stack.parameters or {}).get(name, "")

    def aws(self, command: str) -> str:
        """A command of AWS's own tool for the region of the stack."""
        return f"aws {command} --region {self.region}"

    def upgrade(self, *arguments: str) -> str:
        return " ".join((f"larder --stack {self.stack.name} upgrade", *arguments))


def read_deployed(account: Account, stack: Stack, release: Release | None) -> Deployed:
    clients = {
        name: account.session.client(name, config=_CONFIG)  # type: ignore[call-overload]
        for name in _SERVICES
    }
    resources = {
        resource["LogicalResourceId"]: Resource(
            resource["ResourceType"], resource["PhysicalResourceId"]
        )
        for resource in stacks.resources(clients["cloudformation"], stack.name)
    }
    return Deployed(stack, account.region, resources, clients, clock.now(), release)
