"""The command `make deploy`: build a checkout, and deploy it as `larder install` does, with samconfig.toml."""

import subprocess
from pathlib import Path

import click

from larder_cli.commands import examples
from larder_cli.deploy import code_bucket
from larder_cli.deploy.account import open_account
from larder_cli.deploy.actions import checked, deploy_release
from larder_cli.deploy.flow import Deployment
from larder_cli.deploy.options import all_values
from larder_cli.deploy.progress import Terminal
from larder_cli.deploy.release import open_release
from larder_cli.output import echo
from tools.deploy.samconfig import read_configuration, read_overrides
from tools.release.package import ROOT, SAM_PYTHON, version

_OVERRIDES = "--parameter-overrides"


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
    help="Deploy this release (`make package`), in place of building first.",
)
def deploy(
    environment: str,
    region: str | None,
    stack_name: str | None,
    overrides: tuple[str, ...],
    unattended: bool,
    accept_low_concurrency: bool,
    accept_stored_artifacts: bool,
    folder: Path | None,
) -> None:
    """Deploy Larder to your AWS account with the settings of samconfig.toml.

    Prints account and region, and which options change. A new stack is protected once it is complete. A deployment
    that failed is cleaned up by the next one.
    """
    configured = read_configuration(folder or ROOT, environment)
    name = stack_name or str(configured["stack_name"])
    account = open_account(
        name,
        region=region,
        configured_region=configured.get("region"),
        configured_in="samconfig.toml",
        profile=configured.get("profile"),
    )
    echo(f"Account {account.id}, region {account.region}, stack {account.stack}")
    given = read_overrides(
        [configured.get("parameter_overrides") or [], *overrides], sam_python=SAM_PYTHON
    )
    if folder is None:
        for target in ("build", "package"):
            command = ["make", "--no-print-directory", target, f"ENV={environment}"]
            if subprocess.run(command, cwd=ROOT, check=False).returncode:
                raise click.ClickException("the build failed, and nothing was deployed")
    release = open_release(folder or ROOT / "dist" / f"larder-{version()}")
    release.check()
    deployment = Deployment(
        account,
        release,
        all_values(release.options, given),
        configured.get("s3_bucket") or code_bucket.own_bucket(account),
        tags=_tags(configured.get("tags", "")),
        role=configured.get("role_arn"),
    )
    terminal = Terminal(asks=not unattended)
    stack = checked(
        deployment,
        terminal,
        accepts_low_concurrency=accept_low_concurrency,
        accepts_stored_artifacts=accept_stored_artifacts,
    )
    deploy_release(deployment, stack, terminal, is_from_file=True)


def _tags(written: str) -> dict[str, str]:
    """The tags of samconfig.toml: `team=build stage=prod`."""
    return dict(one.split("=", 1) for one in written.split())
