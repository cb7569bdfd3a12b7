"""The tables of options in docs/operator-cli.md, from the commands of `larder`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import click

from larder_cli.main import cli
from tools.generate.text import table_row


def options(command: str = "") -> None:
    """The options of a command, such as `users create`, or of `larder` itself."""
    print(table_row("Option", "Meaning"))
    print("|---|---|")
    for option in _command(command).params:
        if isinstance(option, click.Option):
            names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
            if not option.is_flag and not isinstance(option.type, click.Choice):
                names = f"`{option.opts[0]} {_placeholder(option)}`"
            print(table_row(names, " ".join(_meaning(option))))


def _command(name: str) -> click.Command:
    command: click.Command = cli
    for word in name.split():
        command = cast(click.Group, command).commands[word]
    return command


def _placeholder(option: click.Option) -> str:
    return option.metavar or (option.name or "").upper()


def _meaning(option: click.Option) -> Iterator[str]:
    """The help text, and the parts that click adds to it."""
    yield option.help or ""
    if isinstance(option.type, click.Choice):
        yield f"One of {', '.join(f'`{choice}`' for choice in option.type.choices)}."
    if isinstance(option.type, click.IntRange) and option.type.max is not None:
        yield f"From {option.type.min:,} to {option.type.max:,}."
    if option.show_default:
        yield f"By default `{option.default}`."
    if option.required:
        yield "Required."
    if option.envvar:
        names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
        yield f"Variable: {', '.join(f'`{name}`' for name in names)}."
