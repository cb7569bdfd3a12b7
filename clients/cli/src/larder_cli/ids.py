"""Ids on the command line: a person can type only the first characters of one."""

from collections.abc import Iterable

import click

_LEAST = 6
"""Fewer characters are more likely a mistake, and `rule_` begins all ids of rules."""
_MOST = 10
"""The most ids that an error lists."""


def the_only(typed: str, ids: Iterable[str], what: str) -> str | None:
    """The one of these ids that is, or else begins with, what was typed. None if there is none.

    `ids` begin with it, or are all ids of the kind. They are read only if enough was typed. Raises ClickException, with
    the ids, if there are several.
    """
    if len(typed) < _LEAST:
        return None
    found = sorted({id for id in ids if id.startswith(typed)})
    if len(found) < 2 or typed in found:
        return typed if typed in found else next(iter(found), None)
    listed = ", ".join(found[:_MOST]) + (", ..." if len(found) > _MOST else "")
    raise click.ClickException(
        f"{typed} begins the ids of several {what}: {listed}. Type more of it"
    )
