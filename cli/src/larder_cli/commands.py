"""What all commands have in common: they run on a target, can print JSON, and fail with one clear line."""

import click

from larder_cli.failures import explanation
from larder_cli.target import Target, enter

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def examples(*lines: str) -> str:
    """The end of a help text. The mark keeps click from joining the lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


class TargetCommand(click.Command):
    """A command that works on a Larder: before it runs, its target's environment is in place."""

    def invoke(self, ctx: click.Context) -> object:
        target = ctx.find_object(Target)
        enter(target or Target())
        return super().invoke(ctx)


class CommandGroup(click.Group):
    """A group whose commands are TargetCommands."""

    command_class = TargetCommand


class OperatorGroup(CommandGroup):
    """The command as a whole. A foreseeable failure ends it with one line on standard error and status 1."""

    group_class = CommandGroup

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            line = explanation(error)
            if line is None:
                raise
            raise click.ClickException(line) from error
