"""Common to all commands: the target, the options `--json` and `--wide`, and one-line errors."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from larder.settings import SettingsError
from larder_cli.failures import explanation
from larder_cli.output import WIDE, echo, printable
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
        if target.is_chosen:
            echo(f"Working on {target} (larder use).", err=True)
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
    """The root command. An expected error ends it with a message on standard error and status 1.

    Its help lists the commands by their section.
    """

    group_class = CommandGroup

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._sections: dict[str, list[str]] = {}

    def add_section(self, title: str, *commands: click.Command) -> None:
        for command in commands:
            self.add_command(command)
        self._sections[title] = [str(command.name) for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, self.commands))
        limit = formatter.width - 6 - width
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), self.commands[name].get_short_help_str(limit))
                        for name in names
                    ]
                )

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
