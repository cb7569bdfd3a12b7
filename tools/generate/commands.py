"""The lists of commands and of common options in docs/operator-cli.md, from the commands of `larder`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import click

from larder_cli.main import cli
from tools.generate.text import table_row


def options() -> None:
    """The options of `larder` itself, with what they do."""
    print(table_row("Option", "Meaning"))
    print("|---|---|")
    for option in cli.params:
        if isinstance(option, click.Option):
            placeholder = "" if option.is_flag else f" {option.metavar}"
            print(table_row(f"`{option.opts[0]}{placeholder}`", " ".join(_meaning(option))))


def table(*names: str) -> None:
    """A line for each command: how it is called, and the first sentence of its help.

    The name of a group, such as `users`, stands for all commands of the group.
    """
    lines = [
        (_usage(path, command), command.get_short_help_str(200))
        for name in names
        for path, command in _commands(name, cli.commands[name])
    ]
    width = max(len(usage) for usage, _ in lines)
    print("```")
    for usage, summary in lines:
        print(f"{usage:{width}}  {summary}")
    print("```")


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _commands(f"{path} {name}", inner)
    else:
        yield path, command


def _usage(path: str, command: click.Command) -> str:
    """The command with its arguments, and with the options that it requires."""
    words = [path]
    for param in command.params:
        if isinstance(param, click.Argument):
            words.append(str(param.metavar or param.name).upper())
        elif param.required:
            words.append(f"{param.opts[0]} {_placeholder(cast(click.Option, param))}")
    return " ".join(words)


def _placeholder(option: click.Option) -> str:
    return option.metavar or (option.name or "").upper()


def _meaning(option: click.Option) -> Iterator[str]:
    """The help text, and the variables that click adds to it."""
    yield option.help or ""
    if option.envvar:
        names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
        yield f"Variable: {', '.join(f'`{name}`' for name in names)}."
