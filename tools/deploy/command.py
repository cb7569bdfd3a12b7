"""The command `make deploy`."""

import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import click
from botocore.exceptions import BotoCoreError, ClientError

from larder_cli.commands import examples
from larder_cli.output import print_table
from local.cloudformation import read_template
from tools.deploy import bucket as buckets
from tools.deploy import stack as stacks
from tools.deploy.advice import advice
from tools.deploy.parameters import Change, all_values, changes, read_overrides, write_for_sam
from tools.deploy.region import chosen_region
from tools.deploy.stack import Stack, State

ROOT = Path(__file__).resolve().parents[2]
SAM = ROOT / ".tools" / "sam" / "bin"
PARAMETERS = Path(".aws-sam") / "parameters.yaml"
MINIMUM_CONCURRENCY = 100
"""Functions at once. A turbo with `--preflight` has ten requests open; a new account often allows ten functions."""
LONGEST_NAME = 45
"""Characters of a stack's name. Names of functions begin with it, and have at most 64."""
LONGEST_NAME_WITH_EDGE = 40
"""The same for names in CloudFront, which have the region, too."""
LONGEST_NEW_NAME = 24
"""The same for new stacks, as in the deployer's policies. It bounds the variables of the functions."""
PROTECT = "ProtectData"
EDGE = "Edge"
BUCKET = "ExistingBucket"
KEY = "KmsKeyArn"
_OVERRIDES = "--parameter-overrides"
_AGAIN = (
    "The deployment failed. Correct what is named above, then run the same command again: it cleans up first. "
    "docs/operations.md lists the common reasons."
)


@dataclass(frozen=True, slots=True)
class Target:
    """The account, region and stack of a deployment."""

    session: boto3.Session
    account: str
    region: str
    stack: str

    def client(self, service: str) -> Any:
        return self.session.client(service)  # type: ignore[call-overload]

    def look(self) -> Stack:
        return stacks.find(self.client("cloudformation"), self.stack)

    @property
    def partition(self) -> str:
        return self.session.get_partition_for_region(self.region)

    def bucket(self, name: str) -> buckets.Bucket:
        return buckets.Bucket(self.client("s3"), name, self.account, self.region, self.partition)


class _Deploy(click.Command):
    """Takes several values after one `--parameter-overrides`, as SAM does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        follows = False
        for one in args:
            if follows and not one.startswith("-"):
                spread += [_OVERRIDES, one]
            elif one != _OVERRIDES:
                spread.append(one)
            follows = one == _OVERRIDES or (follows and not one.startswith("-"))
        return super().parse_args(ctx, spread)


@click.command(
    "deploy",
    cls=_Deploy,
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "make deploy",
        "make deploy ENV=prod",
        'make deploy ENV=prod ARGS="--no-confirm-changeset"',
        'make deploy ARGS="--parameter-overrides Tracing=Active"',
    ),
)
@click.option("--env", "environment", default="default", help="The section of samconfig.toml.")
@click.option("--region", metavar="NAME", help="The region, whatever the environment says.")
@click.option(
    "--stack-name", metavar="NAME", help="The stack, in place of the one in samconfig.toml."
)
@click.option(
    _OVERRIDES,
    "overrides",
    metavar="NAME=VALUE",
    multiple=True,
    help="An option for this deployment alone, in addition to those in samconfig.toml.",
)
@click.option(
    "--no-confirm-changeset",
    "unattended",
    is_flag=True,
    help="Ask nothing, for deployments from CI.",
)
@click.option(
    "--accept-low-concurrency",
    is_flag=True,
    help="Deploy although the account allows too few functions at once for a build.",
)
@click.option(
    "--accept-stored-artifacts",
    is_flag=True,
    help="Take an ExistingBucket that has artifacts already. No other stack may use them.",
)
@click.option(
    "--built",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Deploy this package (`make package`), in place of building first.",
)
@click.argument("sam_arguments", nargs=-1, type=click.UNPROCESSED)
def deploy(
    environment: str,
    region: str | None,
    stack_name: str | None,
    overrides: tuple[str, ...],
    unattended: bool,
    accept_low_concurrency: bool,
    accept_stored_artifacts: bool,
    folder: Path | None,
    sam_arguments: tuple[str, ...],
) -> None:
    """Deploy Larder to your AWS account with the settings of samconfig.toml.

    Prints account and region, and which options change. A new stack is protected once it is complete. A deployment
    that failed is cleaned up by the next one. Other arguments go to `sam deploy`.
    """
    place = folder or ROOT
    configured = _configuration(place, environment)
    name = stack_name or str(configured["stack_name"])
    check_name(name, LONGEST_NAME)
    target = _target(configured, region, name)
    if not accept_low_concurrency:
        _check_concurrency(target)
    declared = read_template(place / "template.yaml")["Parameters"]
    given = read_overrides(
        [configured.get("parameter_overrides") or [], *overrides], sam_python=SAM / "python"
    )
    values = all_values(declared, given)
    if values.get(EDGE) == "true":
        check_name(name, LONGEST_NAME_WITH_EDGE)
    if values.get(BUCKET):
        _check_bucket(target, values, accept_stored_artifacts)
    stack = _made_ready(target, unattended)
    is_new = stack.state is State.NEW
    if is_new:
        check_name(name, LONGEST_NEW_NAME)
    _show_changes(stack, values, declared)
    build = ["make", "--no-print-directory", "build", f"ENV={environment}"]
    if folder is None and not _run(build, ROOT):
        raise click.ClickException("the build failed, and nothing was deployed")

    def run_sam(values: Mapping[str, str], *arguments: str) -> None:
        write_for_sam(values, place / PARAMETERS)
        succeeded = _run(
            [
                str(SAM / "sam"), "deploy",
                "--config-env", environment,
                "--region", target.region,
                "--stack-name", target.stack,
                "--parameter-overrides", f"file://{PARAMETERS}",
                *(["--no-confirm-changeset"] if unattended else []),
                *arguments,
                *sam_arguments,
            ],
            place,
        )  # fmt: skip
        if not succeeded:
            cloudformation = target.client("cloudformation")
            reasons = stacks.failures(cloudformation, target.stack)
            api = stacks.api_id(cloudformation, target.stack) if reasons else ""
            more = advice(reasons, api=api, region=target.region)
            raise click.ClickException("\n".join([*reasons, *more, _AGAIN]))

    protects = values[PROTECT] == "true"
    # DynamoDB refuses to delete a protected table, so the rollback of a creation that fails would fail as well.
    waiting = stacks.open_change_sets(target.client("cloudformation"), target.stack)
    run_sam({**values, PROTECT: "false"} if is_new and protects else values)
    deployed = target.look()
    if stacks.open_change_sets(target.client("cloudformation"), target.stack) - waiting:
        click.echo("\nNothing was deployed. The stack is as it was.")
        return
    if is_new and protects:
        click.echo("\nThe stack is complete. Protecting its data.\n")
        run_sam(values, "--no-confirm-changeset")
    if protects != deployed.protected:
        stacks.set_protection(target.client("cloudformation"), target.stack, on=protects)
    deployed = target.look()
    _show_next(target, deployed, is_new=is_new)
    _show_what_the_edge_needs(deployed, values)


def check_name(stack: str, longest: int) -> None:
    if len(stack) > longest:
        reasons = {
            LONGEST_NAME_WITH_EDGE: ", the limit with Edge=true",
            LONGEST_NEW_NAME: ", the limit for new stacks",
        }
        reason = reasons.get(longest, "")
        raise click.UsageError(f"the stack name {stack} has more than {longest} characters{reason}")


def _configuration(place: Path, environment: str) -> dict[str, Any]:
    sections = tomllib.loads((place / "samconfig.toml").read_text())
    try:
        parameters: dict[str, Any] = sections[environment]["deploy"]["parameters"]
    except KeyError:
        raise click.UsageError(f'samconfig.toml has no environment "{environment}"') from None
    return parameters


def _target(configured: Mapping[str, Any], region: str | None, stack: str) -> Target:
    profile_name = configured.get("profile")
    try:
        profile = botocore.session.Session(profile=profile_name).get_scoped_config()
        chosen = chosen_region(
            os.environ,
            profile=profile.get("region"),
            given=region,
            configured=configured.get("region"),
        )
        session = boto3.Session(profile_name=profile_name, region_name=chosen)
        account = session.client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(
            f"AWS does not accept your credentials: {error}. `aws sts get-caller-identity` has to succeed."
        ) from error
    click.echo(f"Account {account}, region {chosen}, stack {stack}")
    return Target(session, account, chosen, stack)


def _check_concurrency(target: Target) -> None:
    try:
        limit = target.client("lambda").get_account_settings()["AccountLimit"]
    except ClientError as error:
        raise click.ClickException(
            f"cannot read how many functions the account may run at once: {error}. Allow lambda:GetAccountSettings, or "
            "add --accept-low-concurrency."
        ) from error
    allowed = limit["ConcurrentExecutions"]
    if allowed < MINIMUM_CONCURRENCY:
        raise click.ClickException(
            f"the account runs at most {allowed} functions at once in {target.region}, as new accounts do. One build "
            f"needs more, and would see errors. Ask AWS for 1,000, which costs nothing:\n\n"
            "  aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 "
            f"--desired-value 1000 --region {target.region}\n\n"
            "Deploy once it is granted. To deploy now, for a trial with few requests, add "
            'ARGS="--accept-low-concurrency".'
        )


def _check_bucket(target: Target, values: Mapping[str, str], takes_used: bool) -> None:
    name = values[BUCKET]
    is_used = (target.look().parameters or {}).get(BUCKET) == name
    buckets.check(target.bucket(name), values, is_used=is_used, takes_used=takes_used)


def _made_ready(target: Target, unattended: bool) -> Stack:
    """The stack, once it can be created or updated."""
    stack = target.look()
    cloudformation = target.client("cloudformation")
    if stack.state is State.BUSY:
        raise click.ClickException(
            f"the stack {stack.name} is {stack.status}: another deployment is running. Try again when it has ended."
        )
    if stack.state is State.HALF_DELETED:
        raise click.ClickException(
            f"the stack {stack.name} is half deleted ({stack.status}). Finish that first: "
            f"sam delete --stack-name {stack.name} --region {target.region}"
        )
    if stack.state is State.REMAINS:
        click.echo(
            f"The creation of {stack.name} failed before ({stack.status}). It holds no data."
        )
        if not unattended:
            click.confirm("Delete what is left of it, and start again?", abort=True)
        stacks.delete_remains(cloudformation, target.client("dynamodb"), stack.name)
        return target.look()
    if stack.state is State.STUCK:
        click.echo(
            f"The last update of {stack.name} failed, and so did its rollback. Finishing it."
        )
        if left := stacks.finish_rollback(cloudformation, stack.name, target.region):
            click.echo(left)
        return target.look()
    return stack


def _show_changes(
    stack: Stack, values: Mapping[str, str], declared: Mapping[str, Mapping[str, Any]]
) -> None:
    if stack.state is State.NEW:
        defaults = all_values(declared, {})
        shown = [Change(one.name, None, one.after) for one in changes(defaults, values)]
        click.echo("A new stack. Options that differ from their default:")
    else:
        shown = changes(stack.parameters or {}, values)
        click.echo("An update. Options that change:")
    rows = [
        {"option": one.name, "before": _shown(one.before), "after": _shown(one.after)}
        for one in shown
    ]
    print_table(rows, ("option", "before", "after"), empty="none", as_json=False)


def _shown(value: str | None) -> str:
    return "-" if value is None else value or '""'


def _run(command: list[str], folder: Path) -> bool:
    """Run a program in the terminal. Returns whether it succeeded."""
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


def _show_next(target: Target, stack: Stack, *, is_new: bool) -> None:
    url = (stack.outputs or {}).get("ApiUrl", "https://...")
    larder = f".venv/bin/larder --stack {target.stack}"
    if target.region != os.environ.get("AWS_REGION"):
        larder = f"AWS_REGION={target.region} {larder}"
    click.echo(f"\nLarder is at {url}\n")
    if is_new:
        click.echo("Next:\n")
        click.echo(f'  {larder} users create --email you@example.com --name "Your Name"')
        click.echo(f"  {larder} teams create --name Acme --slug acme --owner you@example.com")
        click.echo(f"  {larder} keys create --user you@example.com --team acme --name ci")
        click.echo("\nThen check it, with the key that the last one prints:\n")
    else:
        click.echo("Check it, with one of your keys:\n")
    click.echo(f"  make smoke URL={url} KEY=... STACK={target.stack}")


def _show_what_the_edge_needs(stack: Stack, values: Mapping[str, str]) -> None:
    """The policies that belong to other people. `larder edge enable` tests whether they let the edge in."""
    distribution = (stack.outputs or {}).get("EdgeDistribution")
    owners = [name for name in (BUCKET, KEY) if values.get(name)]
    if distribution and owners:
        click.echo(
            f"\nBefore you switch the edge on, the policy of {' and of '.join(owners)} needs the statement of "
            f"docs/edge.md for the distribution {distribution}."
        )
