"""The account, region and stack of a deployment."""

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.session
import click
from botocore.exceptions import BotoCoreError, ClientError

from larder_cli.deploy import stack as stacks
from larder_cli.deploy.existing_bucket import Bucket
from larder_cli.deploy.options import RATE, READS, TABLE_QUOTA, WRITES, units_of
from larder_cli.deploy.region import chosen_region
from larder_cli.deploy.stack import Stack, State
from larder_cli.target import DESCRIPTION

MINIMUM_CONCURRENCY = 100
"""Functions at once. A turbo with preflight has ten requests open; a new account often allows ten functions."""
QUOTA_REQUEST = (
    "service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 "
    "--desired-value 1000"
)
"""The command of AWS's own tool, without a region, that asks for more functions at once."""


@dataclass(frozen=True, slots=True)
class Account:
    """The caller's account in one region, and the stack in it. `caller` is the ARN of the credentials."""

    session: boto3.Session
    id: str
    caller: str
    region: str
    stack: str

    def client(self, service: str) -> Any:
        return self.session.client(service)  # type: ignore[call-overload]

    @property
    def cloudformation(self) -> Any:
        return self.client("cloudformation")

    @property
    def partition(self) -> str:
        return self.session.get_partition_for_region(self.region)

    def find_stack(self) -> Stack:
        """The stack as it is now. Raises ClickException if it is not one of Larder, so that no command changes it."""
        found = stacks.find(self.cloudformation, self.stack)
        # A stack that changes is refused or waited for. CloudFormation may not show its description yet.
        if found.state not in (State.NEW, State.BUSY) and not found.is_larders:
            raise click.ClickException(
                f"{self.stack} in {self.region} is not a stack of Larder: its description does not begin with "
                f"{DESCRIPTION!r}. Nothing has changed. Choose another name with --stack."
            )
        return found

    def existing_stack(self) -> Stack:
        """The stack. Raises ClickException if there is none."""
        found = self.find_stack()
        if found.status is None:
            raise click.ClickException(f"there is no stack {self.stack} in {self.region}")
        return found

    def bucket(self, name: str) -> Bucket:
        return Bucket(self.client("s3"), name, self.id, self.region, self.partition)


def open_account(
    stack: str,
    *,
    region: str | None,
    configured_region: str | None,
    configured_in: str,
    profile: str | None,
    expected: str | None = None,
) -> Account:
    """The account of the caller's credentials. `region` is that of `--region`.

    Raises UsageError without one clear region, and ClickException if AWS refuses the credentials or they belong to
    another account than `expected`.
    """
    try:
        of_profile = botocore.session.Session(profile=profile).get_scoped_config().get("region")
        chosen = chosen_region(
            os.environ,
            profile=of_profile,
            given=region,
            configured=configured_region,
            configured_in=configured_in,
        )
        session = boto3.Session(profile_name=profile, region_name=chosen)
        identity = session.client("sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(
            f"AWS does not accept your credentials: {error}. `aws sts get-caller-identity` has to succeed."
        ) from error
    if expected and identity["Account"] != expected:
        raise click.ClickException(
            f"these credentials belong to the account {identity['Account']}, and {configured_in} names {expected}. "
            "Choose the right ones with --profile or AWS_PROFILE."
        )
    return Account(session, identity["Account"], identity["Arn"], chosen, stack)


API_QUOTA = 10_000
"""Requests a second to all APIs of an account and region that AWS allows without a request."""
WARM = "WarmInstances"
WARM_SHARE = 0.1
"""Of the functions that an account runs at once, those that WarmInstances can take for a moment."""
_REQUEST_S = 0.05
"""How long a function runs for a request of a build, at most on average."""


def warm_instances(values: Mapping[str, str], concurrency: int | None) -> Iterator[str]:
    """Whether WarmInstances take too many of the functions that the account runs at once. None if it runs few."""
    warm = int(values.get(WARM, 0))
    if warm and (concurrency is None or warm > concurrency * WARM_SHARE):
        most = "0" if concurrency is None else f"at most {int(concurrency * WARM_SHARE)}"
        yield (
            f"  quota      {WARM}: {warm} functions run at once for a moment, every few minutes. The account runs too "
            f"few: builds can get 503 in that moment. Set {most}"
        )


def capacity(values: Mapping[str, str], concurrency: int) -> Iterator[str]:
    """What the options ask of the account's quotas, and what of it the account does not allow."""
    if not {RATE, READS, WRITES} <= values.keys():
        # A release of another version.
        return
    rate, reads, writes = (int(values[name]) for name in (RATE, READS, WRITES))
    at_once = math.ceil(rate * _REQUEST_S)
    yield (
        f"  capacity   {rate:,} requests a second to an endpoint of builds: about {at_once:,} functions at once (the "
        f"account runs {concurrency:,}), {reads:,} reads and {writes:,} writes a second of a table"
    )
    if at_once > concurrency:
        yield f"  quota      for {at_once:,} functions at once, ask AWS: aws {QUOTA_REQUEST}"
    if rate > API_QUOTA:
        yield (
            f"  quota      {RATE}: API Gateway takes {API_QUOTA:,} requests a second for all APIs of the account, "
            "unless you have asked AWS for more"
        )
    for name, units in ((READS, reads), (WRITES, writes)):
        if units > TABLE_QUOTA:
            yield (
                f"  quota      {name}: a table has {TABLE_QUOTA:,} units a second, unless you have asked AWS for more"
            )
        elif units < int(units_of(rate)[name]):
            yield f"  quota      {name}: {int(units_of(rate)[name]):,} would follow {RATE}"
    yield from warm_instances(values, concurrency)


def check_concurrency(account: Account) -> int:
    """How many functions the account runs at once. Raises ClickException if these are too few for a build."""
    try:
        limits: Mapping[str, int] = account.client("lambda").get_account_settings()["AccountLimit"]
    except ClientError as error:
        raise click.ClickException(
            f"cannot read how many functions the account may run at once: {error}. Allow lambda:GetAccountSettings, or "
            "add --accept-low-concurrency."
        ) from error
    allowed = limits["ConcurrentExecutions"]
    if allowed < MINIMUM_CONCURRENCY:
        raise click.ClickException(
            f"the account runs at most {allowed} functions at once in {account.region}, as new accounts do. One build "
            f"needs more, and would see errors. Ask AWS for 1,000, which costs nothing:\n\n"
            f"  aws {QUOTA_REQUEST} --region {account.region}\n\n"
            "Deploy once it is granted. To deploy now, for a trial with few requests, add --accept-low-concurrency."
        )
    return allowed


_OF_IAM = {
    "AWS::IAM::Role": ("Roles", "roles", "L-FE177D64"),
    "AWS::IAM::ManagedPolicy": ("Policies", "managed policies", "L-E95E4862"),
}
"""By type: its name in the summary of the account, the words for it, and its quota in Service Quotas."""


def check_roles(account: Account, template: Mapping[str, Any]) -> Iterator[str]:
    """What a new stack adds to the account's roles and policies. Raises ClickException if AWS allows fewer."""
    wanted = Counter(
        one["Type"] for one in template["Resources"].values() if "Condition" not in one
    )
    if not wanted.keys() & _OF_IAM.keys():
        return
    try:
        if account.find_stack().state is State.REMAINS:
            remains = stacks.resources(account.cloudformation, account.stack)
            wanted.subtract(one["ResourceType"] for one in remains)
        summary = account.client("iam").get_account_summary()["SummaryMap"]
    except ClientError as error:
        yield f"  quota      roles and policies: not checked: {error}. Allow iam:GetAccountSummary"
        return
    for kind, (name, words, code) in _OF_IAM.items():
        number = wanted[kind]
        used, quota = summary[name], summary[f"{name}Quota"]
        if used + number > quota:
            raise click.ClickException(
                f"the account has {used:,} of at most {quota:,} {words}, and the stack needs {number:,} more. Delete "
                f"some, or ask AWS for more:\n\n  aws service-quotas request-service-quota-increase --service-code iam "
                f"--quota-code {code} --desired-value {used + number} --region us-east-1"
            )
        yield f"  quota      {words}: {number:,} more, and the account has {used:,} of {quota:,}"
