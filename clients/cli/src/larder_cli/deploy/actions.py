"""What `larder install`, `plan`, `upgrade`, `uninstall` and `options` do."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from larder_cli.deploy import code_bucket, existing_bucket, flow, removal
from larder_cli.deploy.account import (
    Account,
    capacity,
    check_concurrency,
    check_roles,
    open_account,
    warm_instances,
)
from larder_cli.deploy.changes import ResourceChange, in_words
from larder_cli.deploy.flow import Deployment
from larder_cli.deploy.options import (
    BUCKET,
    BUDGET,
    EDGE,
    KEY,
    PROTECT,
    Change,
    Environment,
    all_values,
    as_toml,
    changes,
    check_together,
    default_of,
    kept_values,
    read_environment,
    read_settings,
)
from larder_cli.deploy.progress import Terminal
from larder_cli.deploy.release import PLACE, Release, has_budgets, open_release, version_key
from larder_cli.deploy.stack import Stack, State
from larder_cli.output import echo, print_json, print_table

STACK = "larder"
"""The stack, unless it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asks for."""

    stack: str | None
    environment: str | None
    config: Path
    settings: tuple[str, ...]
    folder: Path | None
    code_bucket: str | None
    role: str | None
    region: str | None
    profile: str | None
    accept_low_concurrency: bool
    accept_stored_artifacts: bool
    downgrade: bool


def deploy(wanted: Wanted, terminal: Terminal, *, is_upgrade: bool) -> None:
    deployment, stack, is_from_file = _prepared(wanted, terminal, is_upgrade=is_upgrade)
    deploy_release(deployment, stack, terminal, is_from_file=is_from_file)


def plan(wanted: Wanted, *, details: bool, as_json: bool) -> bool:
    """Print what a deployment would change, and return whether it would change anything."""
    terminal = Terminal(asks=False, as_json=as_json)
    deployment, stack, is_from_file = _prepared(wanted, terminal, is_plan=True)
    template = deployment.release.template_file(
        deployment.account.region, deployment.account.partition
    )
    deployment, _ = flow.upload(deployment, [template])
    made = flow.planned(deployment, stack)
    if made.name is not None:
        flow.discard(deployment.account, made.name)
    shown = _option_changes(deployment.release, stack, deployment.values)
    if as_json:
        print_json(
            {
                "stack": stack.name,
                "deployed": _deployed_version(stack),
                "release": deployment.release.version,
                "options": [
                    {"option": one.name, "before": one.before, "after": one.after} for one in shown
                ],
                "resources": [
                    {
                        "action": change.action,
                        "id": change.id,
                        "type": change.type,
                        "replaced": change.replaced,
                    }
                    for change in made.changes
                ],
            }
        )
    else:
        _show_plan(
            deployment, stack, terminal, made.changes, shown, details, is_from_file=is_from_file
        )
    return made.name is not None


def uninstall(
    wanted: Wanted, *, backup: bool, delete_artifacts: bool, confirm: str | None, as_json: bool
) -> None:
    terminal = Terminal(asks=False, as_json=as_json)
    account = _account(wanted, Environment(), terminal)
    found = account.existing_stack()
    if found.state is State.BUSY:
        raise click.ClickException(flow.busy(account))
    terminal.say(*removal.contents(account, delete_artifacts=delete_artifacts))
    typed = confirm or click.prompt(f"Type {account.stack} to delete it", err=as_json)
    if typed != account.stack:
        raise click.ClickException("that is not the name of the stack. Nothing was deleted.")
    removal.remove(account, terminal, backup=backup, delete_artifacts=delete_artifacts)
    terminal.say(f"{account.stack} is deleted.")
    if as_json:
        print_json({"deleted": account.stack})


def print_options(wanted: Wanted, *, as_json: bool) -> None:
    """Print a larder.toml with the options of a stack that differ from their default."""
    account = _account(wanted, Environment())
    stack = account.existing_stack()
    declared = open_release(wanted.folder).options
    kept = kept_values(declared, stack.parameters or {})
    changed = {name: value for name, value in kept.items() if value != default_of(declared[name])}
    if as_json:
        print_json(changed)
        return
    settings = {"stack": account.stack, "account": account.id, "region": account.region}
    bucket = (stack.parameters or {}).get(PLACE[0])
    if bucket and bucket != code_bucket.own_bucket(account):
        settings["code-bucket"] = bucket
    echo(*as_toml(wanted.environment or "prod", settings, changed).splitlines())


def deploy_release(
    deployment: Deployment, stack: Stack, terminal: Terminal, *, is_from_file: bool
) -> None:
    """Upload, show what changes, ask, and deploy. `make deploy` calls it, too."""
    release, account = deployment.release, deployment.account
    is_new = stack.is_new
    files = [release.template_file(account.region, account.partition), *release.archives]
    deployment, sent = flow.upload(deployment, files)
    terminal.say(f"  code       {sent / 1e6:,.1f} MB to {deployment.code_bucket}")
    made = flow.planned(deployment, stack)
    shown = _option_changes(release, stack, deployment.values)
    _show_options(terminal, shown, is_new=is_new, is_from_file=is_from_file)
    if made.name is None:
        flow.deploy(deployment, made, stack, terminal)
        terminal.say(
            f"Nothing changes: {stack.name} is Larder {release.version} with these options."
        )
    else:
        if is_new:
            terminal.say(f"{len(made.changes)} resources.")
        else:
            terminal.say(*(f"  {line}" for line in in_words(made.changes)))
        if not terminal.confirm("Create it?" if is_new else "Deploy it?"):
            flow.discard(account, made.name)
            terminal.say("Nothing was deployed. The stack is as it was.")
            return
        flow.deploy(deployment, made, stack, terminal)
    deployed = account.find_stack()
    if terminal.as_json:
        outputs = deployed.outputs or {}
        print_json(
            {
                "stack": stack.name,
                "region": account.region,
                "version": release.version,
                "url": outputs.get("ApiUrl"),
                "changed": made.name is not None,
            }
        )
    elif made.name is not None:
        _show_next(account, deployed, is_new=is_new)
        _show_what_the_edge_needs(deployed, deployment.values)


def _prepared(
    wanted: Wanted,
    terminal: Terminal,
    *,
    is_upgrade: bool = False,
    is_plan: bool = False,
) -> tuple[Deployment, Stack, bool]:
    """The deployment, once everything that can be checked without a change is checked. Also the stack, and whether the
    options come from a file."""
    release = open_release(wanted.folder)
    release.check()
    environment = read_environment(wanted.config, wanted.environment)
    is_from_file = environment.options is not None
    declared = release.options
    given = read_settings(wanted.settings)
    all_values(declared, {**(environment.options or {}), **given})
    account = _account(wanted, environment, terminal, release)
    stack = account.find_stack()
    if is_upgrade and stack.is_new:
        raise click.ClickException(
            f"there is no stack {account.stack} in {account.region}: `larder install` creates it"
        )
    _check_version(release, stack, allows_downgrade=wanted.downgrade)
    options = environment.options if is_from_file else _without_file(wanted, release, stack)
    values = all_values(declared, {**(options or {}), **given})
    deployment = Deployment(
        account,
        release,
        values,
        _code_bucket(wanted, environment, stack) or code_bucket.own_bucket(account),
        environment.tags or (stack.tags or {} if not is_from_file else {}),
        wanted.role or environment.role,
        is_plan,
    )
    stack = checked(
        deployment,
        terminal,
        accepts_low_concurrency=wanted.accept_low_concurrency,
        accepts_stored_artifacts=wanted.accept_stored_artifacts,
        is_plan=is_plan,
    )
    return deployment, stack, is_from_file


def checked(
    deployment: Deployment,
    terminal: Terminal,
    *,
    accepts_low_concurrency: bool,
    accepts_stored_artifacts: bool,
    is_plan: bool = False,
) -> Stack:
    """The stack, once it can be changed. Raises before the first change if something stops the deployment."""
    account, values = deployment.account, deployment.values
    check_together(deployment.release.rules, values)
    stack = account.find_stack()
    is_new = stack.is_new
    flow.check_name(account.stack, values, is_new=is_new)
    if account.partition != "aws" and values.get(EDGE) == "true":
        raise click.UsageError(f"{EDGE}=true: the partition {account.partition} has no CloudFront")
    if values.get(BUDGET, "0") != "0" and not has_budgets(account.region, account.partition):
        raise click.UsageError(
            f"{BUDGET}={values[BUDGET]}: CloudFormation has no budgets in {account.region}. Leave the option out, and "
            "create a budget of the account with `aws budgets create-budget`"
        )
    if accepts_low_concurrency:
        terminal.say(*warm_instances(values, None))
    else:
        terminal.say(*capacity(values, check_concurrency(account)))
    if is_new:
        terminal.say(*check_roles(account, deployment.release.template))
    if name := values.get(BUCKET):
        is_used = (stack.parameters or {}).get(BUCKET) == name
        existing_bucket.check(
            account.bucket(name), values, is_used=is_used, takes_used=accepts_stored_artifacts
        )
    is_own = deployment.code_bucket == code_bucket.own_bucket(account)
    if not is_own:
        code_bucket.check(account, deployment.code_bucket)
    if stack.state is State.BUSY:
        if is_plan or not flow.is_own(deployment):
            raise click.ClickException(flow.busy(account))
        terminal.say("An earlier run of this command has started this deployment. Following it.")
        flow.follow(deployment, terminal, 0)
    if is_plan and stack.state in (State.REMAINS, State.STUCK, State.HALF_DELETED):
        raise click.ClickException(
            f"{stack.name} is {stack.status}. `larder install` or `larder upgrade` cleans it up first."
        )
    stack = flow.made_ready(account, terminal)
    if is_own and code_bucket.create_if_absent(account, deployment.tags):
        terminal.say(f"Created {deployment.code_bucket}, which keeps the code of releases.")
    return stack


def _code_bucket(wanted: Wanted, environment: Environment, stack: Stack) -> str | None:
    """The bucket that is named, or without a larder.toml the one that the stack uses already."""
    deployed = (stack.parameters or {}).get(PLACE[0]) if environment.options is None else None
    return wanted.code_bucket or environment.code_bucket or deployed


def _account(
    wanted: Wanted,
    environment: Environment,
    terminal: Terminal | None = None,
    release: Release | None = None,
) -> Account:
    stack = wanted.stack or environment.stack or _stack_of(wanted.environment)
    account = open_account(
        stack,
        region=wanted.region,
        configured_region=environment.region,
        configured_in=str(wanted.config),
        profile=wanted.profile or environment.profile,
        expected=environment.account,
    )
    if terminal is not None:
        larder = f"Larder {release.version}: account" if release else "Account"
        terminal.say(f"{larder} {account.id}, region {account.region}, stack {account.stack}")
    return account


def _stack_of(environment: str | None) -> str:
    """The name of the stack, unless it is given: larder, or larder-prod with `--env prod`."""
    return STACK if environment in (None, "default") else f"{STACK}-{environment}"


def _check_version(release: Release, stack: Stack, *, allows_downgrade: bool) -> None:
    deployed = _deployed_version(stack)
    if deployed is None or version_key(release.version) >= version_key(deployed):
        return
    oldest = (stack.outputs or {}).get("ReadableSince", deployed)
    if version_key(release.version) < version_key(oldest):
        raise click.ClickException(
            f"{stack.name} is {deployed}, which stores data that {release.version} cannot read. The oldest version "
            f"that reads it is {oldest}."
        )
    if not allows_downgrade:
        raise click.ClickException(
            f"{stack.name} is {deployed}, and this is {release.version}. To go back, add --downgrade."
        )


def _deployed_version(stack: Stack) -> str | None:
    return (stack.outputs or {}).get("Version")


def _without_file(wanted: Wanted, release: Release, stack: Stack) -> dict[str, str]:
    """The options without a larder.toml: those of the release's environment for a new stack, else the deployed ones."""
    if stack.is_new:
        environments = release.description["environments"]
        name = wanted.environment or "default"
        if name not in environments:
            known = ", ".join(environments)
            raise click.UsageError(
                f"there is no {wanted.config}, and no environment {name}: {known}"
            )
        return dict(environments[name])
    kept = kept_values(release.options, stack.parameters or {})
    # A creation that ended before its data was protected gets its protection now.
    return {**kept, PROTECT: "true"} if flow.wants_protection(stack) else kept


# What the commands print ------------------------------------------------------------------------


def _option_changes(release: Release, stack: Stack, values: Mapping[str, str]) -> list[Change]:
    if stack.is_new:
        defaults = {name: default_of(one) for name, one in release.options.items()}
        return [Change(change.name, None, change.after) for change in changes(defaults, values)]
    internal = {*PLACE, *release.version_parameters}
    before = {
        name: value for name, value in (stack.parameters or {}).items() if name not in internal
    }
    return changes(before, values)


def _show_options(
    terminal: Terminal, shown: list[Change], *, is_new: bool, is_from_file: bool
) -> None:
    if is_new:
        terminal.say("A new stack. Options that differ from their default:")
    else:
        source = "the file and the defaults" if is_from_file else "what is deployed"
        terminal.say(f"An update. Options follow {source}. They change:")
    if not terminal.as_json:
        rows = [
            {"option": one.name, "before": _shown(one.before), "after": _shown(one.after)}
            for one in shown
        ]
        print_table(rows, ("option", "before", "after"), empty="none", as_json=False)


def _show_plan(
    deployment: Deployment,
    stack: Stack,
    terminal: Terminal,
    made: list[ResourceChange],
    shown: list[Change],
    details: bool,
    *,
    is_from_file: bool,
) -> None:
    release, deployed, is_new = (
        deployment.release,
        _deployed_version(stack),
        stack.is_new,
    )
    if not is_new:
        echo(f"{stack.name} is {deployed or 'older than 0.2.0'}. This is {release.version}.")
    _show_options(terminal, shown, is_new=is_new, is_from_file=is_from_file)
    echo(*(f"  {line}" for line in in_words(made)))
    if details:
        rows = [
            {
                "action": one.action,
                "resource": one.id,
                "type": one.type,
                "changes": ", ".join(one.properties),
            }
            for one in made
        ]
        print_table(rows, ("action", "resource", "type", "changes"), empty="none", as_json=False)
    if not is_new and deployed != release.version:
        for number, step in enumerate(release.upgrade_steps(deployed), 1):
            echo(f"  step {number:<5} {step}")
        echo(f"  data       readable by {release.readable_since} and newer")
    echo("Nothing has changed." if made else "Nothing would change.")


def _shown(value: str | None) -> str:
    return "-" if value is None else value or '""'


def _show_next(account: Account, stack: Stack, *, is_new: bool) -> None:
    url = (stack.outputs or {}).get("ApiUrl", "https://...")
    larder = f"larder --stack {account.stack}"
    if account.region != os.environ.get("AWS_REGION"):
        larder = f"AWS_REGION={account.region} {larder}"
    echo("", f"Larder is at {url}", "")
    if is_new:
        echo("Next, in a browser:", "", f"  {(stack.outputs or {}).get('SetupUrl', url)}", "")
        echo("Or here:", "")
        echo(f'  {larder} users create --email you@example.com --name "Your Name"')
        echo(f"  {larder} teams create --name Acme --slug acme --owner you@example.com")
        echo(f"  {larder} keys create --user you@example.com --team acme --name ci")
        echo("", "Then check it, with the key that the last one prints:", "")
    else:
        echo("Check it, with one of your keys:", "")
    echo(f"  TURBO_API={url} TURBO_TOKEN=... {larder} smoke")


def _show_what_the_edge_needs(stack: Stack, values: Mapping[str, str]) -> None:
    """The policies that belong to other people. `larder edge enable` tests whether they let the edge in."""
    distribution = (stack.outputs or {}).get("EdgeDistribution")
    owners = [name for name in (BUCKET, KEY) if values.get(name)]
    if distribution and owners:
        echo(
            "",
            f"Before you switch the edge on, the policy of {' and of '.join(owners)} needs the statement of "
            f"docs/edge.md for the distribution {distribution}.",
        )
