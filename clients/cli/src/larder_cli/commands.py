"""Common to all commands: the target, the options `--json` and `--wide`, and one-line errors."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from larder.settings import SettingsError
from larder_cli.failures import explanation
from larder_cli.output import WIDE, printable
from larder_cli.target import Target, enter

Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def _remember_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    context.meta[WIDE] = is_wide


def table_options(command: Function) -> Function:
    """The options of a command that prints a table: `--json` and `--wide`."""
    wide = click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=_remember_wide,
        help="Show all columns, also those that do not fit into the terminal.",
    )
    return json_option(wide(command))


def examples(*lines: str) -> str:
    """The examples at the end of a help text. `\\b` keeps click from joining the lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


class TargetCommand(click.Command):
    """A command that works on a deployment. Its target's environment is set before it runs."""

    def invoke(self, ctx: click.Context) -> object:
        target = ctx.find_object(Target) or Target()
        enter(target)
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            if target.stack is None:
                raise
            raise click.ClickException(
                f"this command needs a newer version than that of the stack {target.stack}: {error} "
                f"Upgrade it with `larder --stack {target.stack} upgrade`"
            ) from error


class CommandGroup(click.Group):
    """A group whose commands are TargetCommands."""

    command_class = TargetCommand


class OperatorGroup(CommandGroup):
    """The root command. An expected error ends it with a message on standard error and status 1."""

    group_class = CommandGroup

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            # It may have the name of a file, or what a server sent.
            lines = map(printable, error.message.split("\n"))
            error.message = "\n".join(lines)  # type: ignore[misc]
            raise
        except Exception as error:
            line = explanation(error)
            if line is None:
                raise
            raise click.ClickException(printable(line)) from error
