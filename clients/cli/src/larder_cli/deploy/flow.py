"""Deploy a release to a stack: check, clean up, upload, change set, execute, protect. It uses no terminal and no files
of its own: what is deployed is the truth, so the same call continues after a process that ended at any point.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import quote

import click
from botocore.exceptions import ClientError

from larder_cli.deploy import stack as stacks
from larder_cli.deploy import uploads
from larder_cli.deploy.account import Account
from larder_cli.deploy.advice import advice, is_throttled
from larder_cli.deploy.changes import (
    ResourceChange,
    kept_resources,
    losses,
    problems,
    read_changes,
)
from larder_cli.deploy.code_bucket import PLANS, PREFIX
from larder_cli.deploy.options import BUCKET, EDGE, NAME_PREFIX, PROTECT
from larder_cli.deploy.release import PLACE, File, Release
from larder_cli.deploy.stack import Stack, State

LONGEST_NAME = 45
"""Characters of a stack's name. Names of functions begin with it, and have at most 64."""
LONGEST_NAME_WITH_EDGE = 40
"""The same for names in CloudFront, which have the region, too."""
LONGEST_NEW_NAME = 24
"""The same for new stacks, as in the deployer's policies. It bounds the variables of the functions."""
LONGEST_NAME_WITH_PREFIX = 60
"""The same with NamePrefix, where only the variables of the functions have the stack's name."""

_MADE_BY = "Made by "
_PLAN = "plan-"
_NEWEST_PLANS = 20
"""Change sets of plans that are left, in case others are planning at the moment. CloudFormation limits their number."""
_NOTHING_CHANGES = ("didn't contain changes", "No updates are to be performed")
_ABSENT = ("ValidationError", "ChangeSetNotFound", "ChangeSetNotFoundException")
"""The error codes for a change set or stack that is not there."""
_TRIES = 3
"""How often a creation continues although the time before has created nothing."""
_AGAIN = (
    "The deployment failed. Correct what is named above, then run the same command again: it cleans up first. "
    "Common reasons: docs/install.md, If something fails."
)


class Watch(Protocol):
    """What a flow reports to its caller."""

    def say(self, *lines: str) -> None:
        """Lines for the person."""

    def confirm(self, question: str) -> bool:
        """Ask. An unattended deployment answers yes."""

    def progress(self, resources: list[Mapping[str, Any]], changes: int) -> None:
        """The resources that have changed so far, of this many, as `ListStackResources` returns them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A change set that has been read. `name` is None if nothing changes."""

    name: str | None
    changes: list[ResourceChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A release, the values of all parameters, and the stack to deploy to."""

    account: Account
    release: Release
    values: Mapping[str, str]
    code_bucket: str
    tags: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None
    is_plan: bool = False
    """A plan keeps what it uploads and makes apart, so that a role can be limited to plans: no deployment uses it."""
    plan_id: str = field(default_factory=lambda: secrets.token_hex(4))
    """Several pull requests can plan the same at once."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The version of each uploaded file in the bucket, by the file's name. CloudFormation reads these."""

    @property
    def prefix(self) -> str:
        """What the keys of uploads begin with. Deployers of other stacks cannot write there."""
        return f"{PLANS if self.is_plan else PREFIX}{self.account.stack}/"

    @property
    def protects(self) -> bool:
        return self.values[PROTECT] == "true"

    @property
    def parameters(self) -> dict[str, str]:
        place = (self.code_bucket, f"{PREFIX}{self.account.stack}/")
        return {**self.values, **dict(zip(PLACE, place, strict=True))}

    def version_values(self, stack: Stack) -> dict[str, str]:
        """The parameters that name the versions of archives. A plan uploads none, and names those that are deployed."""
        deployed = stack.parameters or {}
        return {
            name: self.versions.get(archive, deployed.get(name, ""))
            for name, archive in self.release.version_parameters.items()
        }

    def label(self, step: str) -> str:
        """The name of a change set. That of a deployment is the same for the same release and options."""
        said = json.dumps([self.parameters, dict(self.tags)], sort_keys=True)
        version = self.release.version.replace(".", "-")
        step = f"{_PLAN}{self.plan_id}-{step}" if self.is_plan else step
        return f"larder-{version}-{step}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"


def check_name(stack: str, values: Mapping[str, str], *, is_new: bool = False) -> None:
    """Raise UsageError if AWS refuses names of resources that begin with the stack's."""
    limits = [(LONGEST_NAME, "")]
    if values.get(EDGE) == "true":
        limits.append((LONGEST_NAME_WITH_EDGE, f", the limit with {EDGE}=true"))
    if is_new:
        limits.append((LONGEST_NEW_NAME, ", the limit for new stacks"))
    if values.get(NAME_PREFIX):
        limits = [(LONGEST_NAME_WITH_PREFIX, "")]
    for longest, reason in sorted(limits):
        if len(stack) > longest:
            more = (
                "" if values.get(NAME_PREFIX) else f". Choose a shorter one, or set {NAME_PREFIX}"
            )
            raise click.UsageError(
                f"the stack name {stack} has more than {longest} characters{reason}{more}"
            )


def made_ready(account: Account, watch: Watch) -> Stack:
    """The stack, once it can be created or updated: what a failed operation left is cleaned up."""
    stack = account.find_stack()
    cloudformation = account.cloudformation
    if stack.state is State.HALF_DELETED:
        raise click.ClickException(
            f"the stack {stack.name} is half deleted ({stack.status}). Finish that first: "
            f"larder uninstall --stack {stack.name}"
        )
    if stack.state is State.REMAINS:
        if stack.can_continue and is_throttled(stacks.failures(cloudformation, stack.name)):
            watch.say(f"The creation of {stack.name} has stopped, because AWS throttled it.")
            return stack
        watch.say(f"The creation of {stack.name} failed before ({stack.status}). It holds no data.")
        if not watch.confirm("Delete what is left of it, and start again?"):
            raise click.Abort
        stacks.delete_remains(cloudformation, account.client("dynamodb"), stack.name)
        return account.find_stack()
    if stack.state is State.STUCK:
        watch.say(f"The last update of {stack.name} failed, and so did its rollback. Finishing it.")
        if left := stacks.finish_rollback(cloudformation, stack.name, account.region):
            watch.say(left)
        return account.find_stack()
    return stack


def upload(deployment: Deployment, files: list[File]) -> tuple[Deployment, int]:
    """Upload what the bucket does not have yet. Returns the deployment of exactly these versions, and the bytes sent.

    Raises ClickException if the bucket has another file under a key of the release, or keeps no versions.
    """
    s3 = deployment.account.client("s3")
    sent, versions = 0, dict[str, str]()
    for file in files:
        place = {
            "Bucket": deployment.code_bucket,
            "Key": deployment.prefix + _key(file),
            "ExpectedBucketOwner": deployment.account.id,
        }
        versions[file.path.name], size = uploads.ensure(s3, place, file.path.read_bytes())
        sent += size
    return replace(deployment, versions=versions), sent


def step_of(deployment: Deployment, stack: Stack) -> str:
    """What the next change set does: "create" for a new stack that is protected afterwards."""
    return "create" if stack.is_new and deployment.protects else "all"


def planned(deployment: Deployment, stack: Stack) -> Plan:
    """Make the change set, and read it. Deletes it and raises ClickException if it would lose data."""
    step = step_of(deployment, stack)
    account, name = deployment.account, deployment.label(step)
    if stack.status is not None:
        _delete_old_plans(account)
    _delete_change_set(account, name)
    _create_change_set(deployment, stack, step)
    made = _described(account, name)
    if made["Status"] == "FAILED":
        reason = made.get("StatusReason", "")
        discard(account, name)
        if any(known in reason for known in _NOTHING_CHANGES):
            return Plan(None)
        raise click.ClickException(f"CloudFormation refuses the change: {reason}")
    changes = read_changes(_all_changes(account, name, made))
    if stack.is_new:
        return Plan(name, changes)
    leaves_bucket = (stack.parameters or {}).get(BUCKET) != deployment.values.get(BUCKET)
    lost = list(losses(changes, leaves_bucket=leaves_bucket))
    if refused := lost or list(_lost_by_template(deployment)):
        discard(account, name)
        listed = "\n".join(f"  {one}" for one in refused)
        raise click.ClickException(
            f"this would lose data:\n{listed}\nNothing has changed. A release must not do this: report it. If an "
            "option does it, set the option as it was."
        )
    return Plan(name, changes)


def discard(account: Account, name: str) -> None:
    """Delete a change set, and with the last one the empty stack of a new name."""
    _delete_change_set(account, name)
    cloudformation, stack = account.cloudformation, account.find_stack()
    if stack.status == "REVIEW_IN_PROGRESS" and not list(_change_sets(account)):
        if stack.protected:
            stacks.set_protection(cloudformation, account.stack, on=False)
        cloudformation.delete_stack(StackName=account.stack)
        stacks.wait(cloudformation, account.stack, until=None)


def _delete_old_plans(account: Account) -> None:
    """Delete the change sets that plans have left: those of processes that died."""
    plans = [
        change_set
        for change_set in _change_sets(account)
        if f"-{_PLAN}" in change_set["ChangeSetName"]
    ]
    plans.sort(key=lambda one: one["CreationTime"], reverse=True)
    for one in plans[_NEWEST_PLANS:]:
        _delete_change_set(account, one["ChangeSetName"])


def _execute(deployment: Deployment, plan: Plan, watch: Watch) -> None:
    """Execute the plan and wait for its end. Raises ClickException with the reasons of a failure."""
    if plan.name is not None:
        _start(deployment.account, plan.name)
        follow(deployment, watch, len(plan.changes))


def _start(account: Account, name: str) -> None:
    """Execute a change set. A creation that fails keeps what it has created, so that it can continue."""
    is_new = account.find_stack().is_new
    try:
        account.cloudformation.execute_change_set(
            StackName=account.stack, ChangeSetName=name, DisableRollback=is_new
        )
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("InvalidChangeSetStatus", "ChangeSetNotFound"):
            raise
        if not _is_executed(account, name):
            raise click.ClickException(busy(account)) from error


def _is_executed(account: Account, name: str) -> bool:
    """Whether this caller has executed the change set: the reply got lost, and boto3 asked again."""
    try:
        made = account.cloudformation.describe_change_set(
            StackName=account.stack, ChangeSetName=name
        )
    except ClientError:
        return False
    is_own = _person(made.get("Description", "")) == _person(account.caller)
    return is_own and str(made["ExecutionStatus"]).startswith("EXECUTE_")


def follow(deployment: Deployment, watch: Watch, changes: int) -> None:
    """Wait for the operation that runs, and continue a creation that AWS throttles. Raises ClickException with the
    reasons of a failure."""
    account = deployment.account
    stack = watched(account, watch, changes)
    created = idle = 0
    while stack.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        reasons = stacks.failures(account.cloudformation, account.stack)
        if stack.can_continue and is_throttled(reasons) and idle < _TRIES:
            before, created = created, len(_done(account, since=None))
            idle = 0 if created > before else idle + 1
            watch.say(
                f"AWS throttled {len(reasons)} of the resources. {created} exist. Continuing."
            )
            time.sleep(2**idle)
            rest = planned(deployment, stack)
            if rest.name is not None:
                _start(account, rest.name)
                stack = watched(account, watch, len(rest.changes))
                continue
        api = stacks.api_id(account.cloudformation, account.stack) if reasons else ""
        more = advice(reasons, api=api, region=account.region)
        raise click.ClickException(
            "\n".join([*reasons, *more, f"{account.stack} is {stack.status}.", _AGAIN])
        )


def watched(account: Account, watch: Watch, changes: int = 0) -> Stack:
    """The stack at the end of the operation that runs, if one does. `changes` is 0 if their number is unknown."""
    pauses = stacks.pauses_s()
    while (stack := account.find_stack()).state is State.BUSY:
        watch.progress(_done(account, since=stack.since), changes)
        time.sleep(next(pauses))
    return stack


def is_own(deployment: Deployment) -> bool:
    """Whether the operation that runs is this deployment, of a process that ended: same release, options and caller."""
    running = _running(deployment.account)
    labels = {deployment.label(step) for step in ("create", "all")}
    return (
        running is not None
        and running["ChangeSetName"] in labels
        and _person(running.get("Description", "")) == _person(deployment.account.caller)
    )


def busy(account: Account) -> str:
    """The sentence about an operation of someone else."""
    stack, running = account.find_stack(), _running(account)
    since = f" since {stack.since:%H:%M} UTC" if stack.since else ""
    who = (running or {}).get("Description", "").removeprefix(_MADE_BY)
    by = f", started by {who}" if who else ""
    return (
        f"{account.stack} is {stack.status}{since}{by}: another deployment is running. "
        f"`larder --stack {account.stack} status --follow` waits for its end."
    )


def deploy(deployment: Deployment, plan: Plan, stack: Stack, watch: Watch) -> None:
    """Execute the plan, and protect a new stack once it is complete."""
    account, cloudformation = deployment.account, deployment.account.cloudformation
    is_new = stack.is_new
    if not deployment.protects and stack.protected:
        stacks.set_protection(cloudformation, account.stack, on=False)
    if is_new and deployment.protects:
        # Termination protection without protected tables marks a stack that is not complete yet (`wants_protection`).
        stacks.set_protection(cloudformation, account.stack, on=True)
    _execute(deployment, plan, watch)
    if is_new and deployment.protects:
        watch.say("The stack is complete. Protecting its data.")
        _execute(deployment, planned(deployment, account.find_stack()), watch)
    elif deployment.protects and not stack.protected:
        stacks.set_protection(cloudformation, account.stack, on=True)


def wants_protection(stack: Stack) -> bool:
    """Whether a creation ended between its two steps: complete, but its data not protected yet."""
    return stack.protected and (stack.parameters or {}).get(PROTECT) == "false"


def _key(file: File) -> str:
    """Archives are named by their content. The template is not."""
    path = file.path
    return path.name if path.suffix == ".zip" else f"{path.stem}-{file.sha256[:16]}{path.suffix}"


def _url(deployment: Deployment, file: File) -> str:
    place = {"Bucket": deployment.code_bucket, "Key": deployment.prefix + _key(file)}
    version = quote(deployment.versions[file.path.name], safe="")
    return f"{uploads.url(deployment.account.client('s3'), place)}?versionId={version}"


def _create_change_set(deployment: Deployment, stack: Stack, step: str) -> None:
    account = deployment.account
    values = {**deployment.parameters, **deployment.version_values(stack)}
    if step == "create":
        values = {**values, PROTECT: "false"}
    template = deployment.release.template_file(account.region, account.partition)
    declared = json.loads(template.path.read_text())["Parameters"]
    try:
        account.cloudformation.create_change_set(
            StackName=account.stack,
            ChangeSetName=deployment.label(step),
            ChangeSetType="CREATE" if stack.state is State.NEW else "UPDATE",
            Description=f"{_MADE_BY}{account.caller}",
            TemplateURL=_url(deployment, template),
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[
                {"ParameterKey": name, "ParameterValue": values[name]} for name in declared
            ],
            Tags=[{"Key": name, "Value": value} for name, value in deployment.tags.items()],
            **({"RoleARN": deployment.role} if deployment.role else {}),
        )
    except ClientError as error:
        # It was deleted just before: the reply got lost, and boto3 asked again.
        if error.response["Error"]["Code"] == "AlreadyExistsException":
            return
        if account.find_stack().state is State.BUSY:
            raise click.ClickException(busy(account)) from None
        raise


def _described(account: Account, name: str) -> dict[str, Any]:
    """The change set, once CloudFormation has made it."""
    pauses = stacks.pauses_s()
    while True:
        made: dict[str, Any] = account.cloudformation.describe_change_set(
            StackName=account.stack, ChangeSetName=name
        )
        if made["Status"] in ("CREATE_COMPLETE", "FAILED"):
            return made
        time.sleep(next(pauses))


def _all_changes(account: Account, name: str, first: Mapping[str, Any]) -> list[Any]:
    changes, token = list(first.get("Changes", [])), first.get("NextToken")
    while token:
        page = account.cloudformation.describe_change_set(
            StackName=account.stack, ChangeSetName=name, NextToken=token
        )
        changes += page.get("Changes", [])
        token = page.get("NextToken")
    return changes


def _lost_by_template(deployment: Deployment) -> Iterator[str]:
    """What the deployed template shows, for changes that a change set does not show."""
    account = deployment.account
    body = account.cloudformation.get_template(StackName=account.stack, TemplateStage="Processed")
    deployed = body["TemplateBody"]
    before = json.loads(deployed) if isinstance(deployed, str) else deployed
    template = deployment.release.template_file(account.region, account.partition)
    after = json.loads(template.path.read_text())
    yield from problems(kept_resources(before), kept_resources(after))


def _delete_change_set(account: Account, name: str) -> None:
    try:
        account.cloudformation.delete_change_set(StackName=account.stack, ChangeSetName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in (
            "ValidationError",
            "ChangeSetNotFound",
            "ChangeSetNotFoundException",
        ):
            raise


def _running(account: Account) -> dict[str, Any] | None:
    """The change set that is being executed."""
    found = (
        change_set
        for change_set in _change_sets(account)
        if change_set["ExecutionStatus"] == "EXECUTE_IN_PROGRESS"
    )
    return next(found, None)


def _change_sets(account: Account) -> Iterator[dict[str, Any]]:
    pages = account.cloudformation.get_paginator("list_change_sets").paginate(
        StackName=account.stack
    )
    yield from (summary for page in pages for summary in page["Summaries"])


def _person(arn: str) -> str:
    """Who made a change set: a user, or a role whatever its session is called."""
    arn = arn.removeprefix(_MADE_BY)
    return arn.rpartition("/")[0] if ":assumed-role/" in arn else arn


def _done(account: Account, *, since: datetime | None) -> list[Mapping[str, Any]]:
    """The resources that are complete, and have changed since then."""
    pages = account.cloudformation.get_paginator("list_stack_resources").paginate(
        StackName=account.stack
    )
    return [
        summary
        for page in pages
        for summary in page["StackResourceSummaries"]
        if summary["ResourceStatus"].endswith("_COMPLETE")
        and (since is None or summary["LastUpdatedTimestamp"] >= since)
    ]
