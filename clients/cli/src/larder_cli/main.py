"""`larder`: the operator's command. docs/operator-cli.md is its reference."""

from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from larder_cli.artifacts import artifacts
from larder_cli.commands import OperatorGroup, examples
from larder_cli.deploy import command as deployment
from larder_cli.doctor.command import doctor
from larder_cli.edge.command import edge
from larder_cli.index import rebuild_index, sweep
from larder_cli.issuers import issuers
from larder_cli.keys import keys
from larder_cli.outbox import outbox
from larder_cli.output import echo
from larder_cli.proxy import accept, proxy, run
from larder_cli.restore import restore_table
from larder_cli.signing_secret import rotate_signing_secret
from larder_cli.smoke.command import smoke
from larder_cli.sso.command import sso
from larder_cli.status.command import status
from larder_cli.target import Target
from larder_cli.teams import teams
from larder_cli.trust import trust
from larder_cli.usage import usage
from larder_cli.use import chosen, use
from larder_cli.users import users
from larder_cli.why.command import why

_NAME_THEIR_STACK = ("install", "plan", "upgrade", "uninstall", "options", "release", "use")
"""Commands that do not work on a chosen stack, because they create, change or delete it."""


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """The version of the wheel `larder-cache`, or that of the layer in a checkout."""
    if is_asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("larder-cache")
        except PackageNotFoundError:
            found = version("larder")
        echo(f"larder, version {found}")
        ctx.exit()


@click.group(
    cls=OperatorGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "larder --local .larder teams list",
        "larder --stack larder --region eu-central-1 teams show acme",
        'larder --stack larder keys create --user ada@acme.example --team acme --name "ci"',
        "larder keys create --help",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option(
    "--stack",
    metavar="NAME",
    envvar="LARDER_STACK",
    show_envvar=True,
    help="The name of the deployed CloudFormation stack to work on.",
)
@click.option(
    "--local",
    metavar="DATA",
    type=click.Path(path_type=Path),
    envvar="LARDER_LOCAL",
    show_envvar=True,
    help=(
        "The data folder of a running local cloud to work on. Your own AWS configuration is not "
        "used."
    ),
)
@click.option(
    "--region",
    metavar="NAME",
    envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
    show_envvar=True,
    help="The AWS region of the stack. By default, the region of the profile.",
)
@click.option(
    "--profile",
    metavar="NAME",
    help=(
        "The AWS profile to take credentials from, even if the environment has keys. By default, "
        "credentials are found as by every AWS tool."
    ),
)
@click.pass_context
def cli(
    ctx: click.Context,
    stack: str | None,
    local: Path | None,
    region: str | None,
    profile: str | None,
) -> None:
    """Deploy and operate Larder, a remote build cache in your own AWS account, and build with it.

    Choose the deployment with --stack or --local, or once with `larder use`. An option on the command line overrides
    the environment variable of the other one.
    """
    if stack is not None and local is not None:
        typed = [name for name in ("stack", "local") if _is_typed(ctx, name)]
        if typed == ["stack"]:
            local = None
        elif typed == ["local"]:
            stack = None
    found = None if stack or local or ctx.invoked_subcommand in _NAME_THEIR_STACK else chosen()
    if found is None:
        ctx.obj = Target(stack=stack, local=local, region=region, profile=profile)
    else:
        # A variable names the region of all programs, and the choice that of this stack.
        place = region if found.region is None or _is_typed(ctx, "region") else found.region
        ctx.obj = replace(found, region=place, profile=profile or found.profile)


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


cli.add_section("Build with the cache", run, doctor, why, accept, proxy)
cli.add_section(
    "Deploy",
    deployment.install,
    deployment.plan,
    deployment.upgrade,
    deployment.uninstall,
    deployment.options,
    deployment.release,
)
cli.add_section("People, teams and keys", users, teams, keys, trust, issuers, sso)
cli.add_section("Artifacts and usage", artifacts, usage)
cli.add_section(
    "Operate",
    use,
    status,
    smoke,
    edge,
    outbox,
    sweep,
    rebuild_index,
    restore_table,
    rotate_signing_secret,
)
