"""`larder status`: the options, the run and the output.

What it does is imported when it runs, because boto3 takes longer to import than `larder --help` to print.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from larder_cli.commands import examples, json_option
from larder_cli.deploy.command import release_folder
from larder_cli.deploy.release import Release, open_release
from larder_cli.output import echo, linked, print_json
from larder_cli.target import Target

if TYPE_CHECKING:
    from larder_cli.deploy.stack import Stack
    from larder_cli.status.rows import Check, Row

_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}


@click.command(
    cls=click.Command,
    epilog=examples(
        "larder --stack larder-prod status",
        "larder --stack larder-prod status --drift",
        "larder --stack larder-prod status --json",
    ),
)
@click.option("--stack", metavar="NAME", help="The stack. By default, larder.")
@click.option("--region", metavar="NAME", help="The region of the stack.")
@click.option("--profile", metavar="NAME", help="The AWS profile.")
@release_folder
@click.option(
    "--drift",
    "with_drift",
    is_flag=True,
    help="Also find what was changed by hand. Takes minutes.",
)
@click.option("--follow", is_flag=True, help="First wait for the deployment that is running.")
@json_option
@click.pass_context
def status(
    ctx: click.Context,
    stack: str | None,
    region: str | None,
    profile: str | None,
    folder: Path | None,
    with_drift: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Show whether a deployed stack works.

    Says what to do about each line that is not ok. It only reads, and takes seconds. A check that you lack the
    permission for becomes a note. The exit status is 1 if there is a problem. `larder smoke` tests a deployment with
    real uploads.
    """
    from larder_cli.deploy import flow
    from larder_cli.deploy.account import open_account
    from larder_cli.deploy.actions import STACK
    from larder_cli.deploy.progress import Terminal
    from larder_cli.status.deployed import read_deployed
    from larder_cli.status.rows import Level, checked

    target = ctx.find_object(Target) or Target()
    named = stack or target.stack
    if named is None and target.local is not None:
        raise click.UsageError("status is about a stack in AWS: name it with --stack NAME")
    account = open_account(
        named or STACK,
        region=region or target.region,
        configured_region=None,
        configured_in="",
        profile=profile or target.profile,
    )
    terminal = Terminal(asks=False, as_json=as_json)
    terminal.say(f"Account {account.id}, region {account.region}, stack {account.stack}")
    release = _release(folder)
    found = account.existing_stack()
    if follow:
        flow.watched(account, terminal)
        found = account.existing_stack()
        terminal.say(f"{found.name} is {found.status}.")
    deployed = read_deployed(account, found, release)
    rows = []
    for row in checked(_checks(found, with_drift=with_drift), deployed):
        rows.append(row)
        if not as_json:
            _show(row, (found.outputs or {}).get("ApiUrl", ""))
    if as_json:
        print_json(
            [
                {"check": one.check, "level": one.level, "found": one.found, "advice": one.advice}
                for one in rows
            ]
        )
    if any(one.level is Level.PROBLEM for one in rows):
        ctx.exit(1)


def _release(folder: Path | None) -> Release | None:
    """The named release, or the one that the wheel carries. A checkout carries none."""
    try:
        return open_release(folder)
    except click.ClickException:
        if folder is not None:
            raise
        return None


def _checks(stack: "Stack", *, with_drift: bool) -> "list[Check]":
    """The checks for a stack in this state, in the order of the output."""
    from larder_cli.deploy.stack import State
    from larder_cli.status import alarms, background, capacity, code, drift, protection
    from larder_cli.status.rows import Check

    state = Check("stack", protection.stack)
    if stack.state in (State.NEW, State.REMAINS, State.HALF_DELETED):
        return [state]
    return [
        Check("version", code.version),
        state,
        Check("data", protection.data),
        Check("alarm mail", alarms.alarm_mail),
        Check("alarms", alarms.alarms),
        Check("concurrency", capacity.concurrency),
        Check("throttles", capacity.throttles),
        Check("queues", background.queues),
        Check("sweeps", background.sweeps),
        Check("uploads", background.uploads),
        Check("drift", drift.drift if with_drift else drift.not_asked),
    ]


def _show(row: "Row", deployment: str) -> None:
    """Print a row. The advice cites the documentation of the deployment at this address, if it has one."""
    marked = click.style(f"{row.level:<7}", fg=_COLOURS[row.level])
    click.echo(f"{marked}  ", nl=False)
    echo(f"{row.check:<12} {row.found}")
    if row.advice:
        echo(f"{'':22}do: {linked(row.advice, deployment)}")
