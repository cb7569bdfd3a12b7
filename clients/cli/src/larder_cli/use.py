"""`larder use`: the deployment that commands work on if nothing else names one."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import click
from larder_proxy.files import write_private
from larder_proxy.settings import user_folder

from larder_cli.commands import examples, json_option
from larder_cli.output import echo, print_json
from larder_cli.target import Target, enter

_NONE = "no deployment is chosen: larder use NAME, or larder use --local DATA"


def chosen() -> Target | None:
    """What `larder use` has stored. None for nothing, and for a file that is damaged."""
    try:
        known = json.loads(_file().read_text())
        local = known["local"]
        return Target(
            stack=known["stack"],
            local=Path(local) if local else None,
            region=known["region"],
            profile=known["profile"],
            is_chosen=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@click.command(
    "use",
    epilog=examples(
        "larder use larder-prod --region eu-central-1",
        "larder use --local .larder",
        "larder use",
        "larder use --none",
    ),
)
@click.argument("name", required=False)
@click.option(
    "--local",
    metavar="DATA",
    type=click.Path(path_type=Path),
    help="The data folder of a local cloud, in place of NAME.",
)
@click.option("--region", metavar="REGION", help="The AWS region of the stack.")
@click.option("--profile", metavar="PROFILE", help="The AWS profile to take credentials from.")
@click.option("--none", "forgets", is_flag=True, help="Choose no deployment.")
@json_option
def use(
    name: str | None,
    local: Path | None,
    region: str | None,
    profile: str | None,
    forgets: bool,
    as_json: bool,
) -> None:
    """Choose the deployment that commands work on.

    It is the stack NAME or a local cloud. Without either, the command shows the choice. --stack, --local and their
    variables take precedence. install, plan, upgrade, uninstall and options do not use the
    choice. The command checks that the deployment is there, and stores its name for this user.
    """
    if (name is not None) + (local is not None) + forgets > 1:
        raise click.UsageError("give one of NAME, --local and --none")
    if name is not None or local is not None:
        wanted = Target(
            stack=name,
            local=None if local is None else local.resolve(),
            region=region,
            profile=profile,
            is_chosen=True,
        )
        enter(replace(wanted, is_chosen=False))
        _store(wanted)
    elif forgets:
        _file().unlink(missing_ok=True)
    found = chosen()
    if as_json:
        print_json({} if found is None else _record(found))
    else:
        echo(_NONE if found is None else f"Commands work on {found}.")


def _file() -> Path:
    folder = user_folder(os.environ)
    if not folder:
        raise click.ClickException("HOME must be the folder of this user")
    return Path(folder, "larder", "use.json")


def _record(target: Target) -> dict[str, str | None]:
    known = {**asdict(target), "local": None if target.local is None else str(target.local)}
    del known["is_chosen"]
    return known


def _store(target: Target) -> None:
    write_private(str(_file()), _record(target), indent=1)
