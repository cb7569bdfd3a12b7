"""`larder install`, `plan`, `upgrade`, `uninstall`, `options` and `release`.

What they do is imported when they run, because boto3 takes longer to import than `larder --help` to print.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from larder_cli.commands import examples, json_option, table_options
from larder_cli.deploy.release import Release, open_release
from larder_cli.output import echo, print_json, print_table
from larder_cli.target import Target

if TYPE_CHECKING:
    from larder_cli.deploy.actions import Wanted

CONFIG = Path("larder.toml")
NOTHING, CHANGES = 0, 3
"""Exit statuses of `plan`. A refusal is 1, a wrong call 2."""

Decorated = Callable[..., Any]


release_folder = click.option(
    "--release",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of a release, in place of the one in this package.",
)


def _options(command: Decorated) -> Decorated:
    """The options that install, plan and upgrade share."""
    for option in reversed(
        (
            click.option(
                "--stack",
                metavar="NAME",
                help="The stack. By default, that of larder.toml, or larder.",
            ),
            click.option(
                "--env", "environment", metavar="NAME", help="The section of larder.toml."
            ),
            click.option(
                "--config",
                type=click.Path(dir_okay=False, path_type=Path),
                default=CONFIG,
                show_default=True,
                help="The file with stack, region and options. It can be absent.",
            ),
            click.option(
                "--set",
                "settings",
                metavar="NAME=VALUE",
                multiple=True,
                help="An option for this run, in addition to those of the file.",
            ),
            release_folder,
            click.option(
                "--code-bucket",
                metavar="NAME",
                help="Your bucket for the code, in the stack's region. By default, larder-code-ACCOUNT-REGION.",
            ),
            click.option("--role", metavar="ARN", help="A service role for CloudFormation."),
            click.option("--region", metavar="NAME", help="The region, whatever the file says."),
            click.option("--profile", metavar="NAME", help="The AWS profile."),
            click.option(
                "--accept-low-concurrency",
                is_flag=True,
                help="Deploy although the account allows too few functions at once for a build.",
            ),
            click.option(
                "--accept-stored-artifacts",
                is_flag=True,
                help="Take an ExistingBucket that has artifacts already. No other stack may use them.",
            ),
            click.option(
                "--downgrade",
                is_flag=True,
                help="Go back to an older version, if it can read the data.",
            ),
        )
    ):
        command = option(command)
    return command


_yes = click.option("--yes", is_flag=True, help="Ask nothing, for pipelines.")


@click.command(
    cls=click.Command,
    epilog=examples(
        "larder install",
        "larder install --env prod",
        "larder install --stack larder-prod --set ProtectData=true --set AlarmEmail=ops@acme.example",
    ),
)
@_options
@_yes
@json_option
@click.pass_context
def install(ctx: click.Context, /, yes: bool, as_json: bool, **given: Any) -> None:
    """Deploy this release of Larder to your AWS account.

    It needs AWS credentials and no checkout. A new stack is protected once it is complete. If a creation failed before,
    what is left of it is deleted first.
    """
    _deploy(ctx, given, asks=not yes, as_json=as_json, is_upgrade=False)


@click.command(
    cls=click.Command,
    epilog=examples("larder upgrade --stack larder-prod", "larder upgrade --env prod --yes"),
)
@_options
@_yes
@json_option
@click.pass_context
def upgrade(ctx: click.Context, /, yes: bool, as_json: bool, **given: Any) -> None:
    """Change a stack to this release or other options.

    With larder.toml, the stack gets the options of the file, and the defaults of all others. Without it, options stay
    as they are deployed. A release that would lose data is refused.
    """
    _deploy(ctx, given, asks=not yes, as_json=as_json, is_upgrade=True)


@click.command(
    cls=click.Command,
    epilog=examples("larder plan --stack larder-prod", "larder plan --env prod --json"),
)
@_options
@click.option("--details", is_flag=True, help="List each resource.")
@json_option
@click.pass_context
def plan(ctx: click.Context, /, details: bool, as_json: bool, **given: Any) -> None:
    """Show what `install` or `upgrade` would change. Changes nothing.

    The exit status is 0 if nothing would change, 3 if something would, and 1 if it is refused.
    """
    from larder_cli.deploy import actions

    changes = actions.plan(_wanted(ctx, given), details=details, as_json=as_json)
    ctx.exit(CHANGES if changes else NOTHING)


@click.command(cls=click.Command, epilog=examples("larder uninstall --stack larder-trial"))
@click.option("--stack", metavar="NAME", help="The stack.")
@click.option("--region", metavar="NAME", help="The region of the stack.")
@click.option("--profile", metavar="NAME", help="The AWS profile.")
@click.option("--backup", is_flag=True, help="Make a backup of each table first.")
@click.option(
    "--delete-artifacts", is_flag=True, help="Delete the artifacts and their bucket, too."
)
@click.option("--confirm", metavar="NAME", help="The name of the stack, in place of typing it.")
@json_option
@click.pass_context
def uninstall(
    ctx: click.Context,
    /,
    backup: bool,
    delete_artifacts: bool,
    confirm: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Delete a stack with its users, keys and teams. Artifacts stay, unless you say otherwise.

    Asks for the name of the stack. It also deletes what a failed creation left.
    """
    from larder_cli.deploy import actions

    actions.uninstall(
        _wanted(ctx, given),
        backup=backup,
        delete_artifacts=delete_artifacts,
        confirm=confirm,
        as_json=as_json,
    )


@click.command(
    cls=click.Command, epilog=examples("larder options --stack larder-prod > larder.toml")
)
@click.option("--stack", metavar="NAME", help="The stack.")
@click.option("--env", "environment", default="prod", show_default=True, help="The section.")
@click.option("--region", metavar="NAME", help="The region of the stack.")
@click.option("--profile", metavar="NAME", help="The AWS profile.")
@click.option(
    "--release",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of a release, in place of the one in this package.",
)
@json_option
@click.pass_context
def options(ctx: click.Context, /, as_json: bool, **given: Any) -> None:
    """Print a larder.toml with a stack's changed options."""
    from larder_cli.deploy import actions

    actions.print_options(_wanted(ctx, given), as_json=as_json)


@click.group(
    cls=click.Group,
    epilog=examples("larder release verify", "larder release extract larder-1.2.3"),
)
def release() -> None:
    """Show, verify, extract or publish this release."""


@release.command("show", epilog=examples("larder release show"))
@release_folder
@table_options
def show_release(folder: Path | None, as_json: bool) -> None:
    """Print the files of the release and their checksums."""
    opened = open_release(folder)
    rows = [
        {"file": name, "size_bytes": (opened.folder / name).stat().st_size, "sha256": sha256}
        for name, sha256 in opened.description["files"].items()
    ]
    print_table(rows, ("file", "size_bytes", "sha256"), empty="none", as_json=as_json)


@release.command("verify", epilog=examples("larder release verify --release larder-1.2.3"))
@release_folder
@json_option
def verify_release(folder: Path | None, as_json: bool) -> None:
    """Compare each file with its checksum."""
    opened = open_release(folder)
    opened.check()
    _report(opened, f"{len(opened.description['files'])} files are as released", as_json=as_json)


@release.command("extract", epilog=examples("larder release extract larder-1.2.3"))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--release",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of a release, in place of the one in this package.",
)
@json_option
def extract_release(folder: Path, source: Path | None, as_json: bool) -> None:
    """Copy the release to the new folder FOLDER, for other tools."""
    opened = open_release(source)
    opened.check()
    if folder.exists():
        raise click.ClickException(f"{folder} exists already")
    shutil.copytree(opened.folder, folder)
    _report(opened, f"copied to {folder}", as_json=as_json)


@release.command(
    "publish",
    epilog=examples(
        "larder release publish --bucket acme-larder --organization o-a1b2c3d4e5",
        "larder release publish --bucket acme-larder-{region} --region eu-central-1 --region us-east-1",
        "larder release publish --bucket acme-larder --check",
    ),
)
@click.option(
    "--bucket",
    metavar="NAME",
    required=True,
    help="Your bucket in the region. It has to keep versions. {region} in the name stands for the region.",
)
@click.option(
    "--region", "regions", metavar="NAME", multiple=True, help="A region. Repeat it for more."
)
@click.option(
    "--env",
    "environment",
    default="prod",
    show_default=True,
    help="The options that the link begins with.",
)
@click.option(
    "--stack", default="larder-prod", show_default=True, help="The name that the link begins with."
)
@click.option(
    "--organization",
    metavar="ID",
    help="Also print the statement that lets an AWS organization read the release.",
)
@click.option(
    "--check", is_flag=True, help="Compare what is published with the release. Uploads nothing."
)
@click.option("--profile", metavar="NAME", help="The AWS profile.")
@release_folder
@json_option
def publish_release(
    bucket: str,
    regions: tuple[str, ...],
    environment: str,
    stack: str,
    organization: str | None,
    check: bool,
    profile: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Upload the release to your buckets, and print links that deploy it.

    The person who opens a link chooses the options in CloudFormation's console. Nothing is uploaded twice, and another
    file under a key of the release is refused.
    """
    from larder_cli.deploy import publish
    from larder_cli.deploy.account import open_account

    opened = open_release(folder)
    environments = opened.description["environments"]
    if environment not in environments:
        raise click.UsageError(
            f"--env: the release has no {environment}: {', '.join(environments)}"
        )
    publish.check_organization(organization)
    accounts = [
        open_account(
            stack, region=region, configured_region=None, configured_in="", profile=profile
        )
        for region in dict.fromkeys(regions or (None,))
    ]
    publish.run(
        opened,
        accounts,
        bucket,
        stack=stack,
        options=environments[environment],
        organization=organization,
        may_write=not check,
        as_json=as_json,
    )


def _report(opened: Release, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"version": opened.version, "readable_since": opened.readable_since})
    else:
        echo(f"Larder {opened.version}: {what}.")


def _deploy(
    ctx: click.Context, given: Mapping[str, Any], *, asks: bool, as_json: bool, is_upgrade: bool
) -> None:
    from larder_cli.deploy import actions
    from larder_cli.deploy.progress import Terminal

    actions.deploy(_wanted(ctx, given), Terminal(asks=asks, as_json=as_json), is_upgrade=is_upgrade)


def _wanted(ctx: click.Context, given: Mapping[str, Any]) -> "Wanted":
    """The options of the command, completed by those before it: `larder --stack NAME upgrade`."""
    from larder_cli.deploy.actions import Wanted

    target = ctx.find_object(Target) or Target()
    known: dict[str, Any] = {
        "environment": None,
        "config": CONFIG,
        "settings": (),
        "folder": None,
        "code_bucket": None,
        "role": None,
        "accept_low_concurrency": False,
        "accept_stored_artifacts": False,
        "downgrade": False,
        **given,
    }
    known["stack"] = given.get("stack") or target.stack
    # `--region` before the command takes AWS_REGION, too, which is no decision against larder.toml.
    root = ctx.find_root()
    is_typed = root.get_parameter_source("region") is ParameterSource.COMMANDLINE
    known["region"] = given.get("region") or (target.region if is_typed else None)
    known["profile"] = given.get("profile") or target.profile
    return Wanted(**known)
