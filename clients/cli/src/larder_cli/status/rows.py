"""A row of the output, and how checks become rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import click
from botocore.exceptions import ClientError

from larder_cli.failures import explanation
from larder_cli.status.deployed import Deployed
from larder_cli.status.permissions import denied_action


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Something could not be checked, or is off because of an option."""
    WARNING = "warning"
    """It works. Look at it soon."""
    PROBLEM = "problem"
    """Something does not work, or no one receives the alarms. The exit status is 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a check has found. `advice` says what to do, and is empty only at the level `ok`."""

    check: str
    level: Level
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check, and the name of its rows."""

    name: str
    look: Callable[[Deployed], Iterable[Row]]


def checked(checks: Sequence[Check], deployed: Deployed) -> Iterator[Row]:
    """Run the checks at once, and yield their rows in order as soon as they are known."""
    with ThreadPoolExecutor(len(checks)) as threads:
        for running in [threads.submit(_tried, check, deployed) for check in checks]:
            yield from running.result()


def _tried(check: Check, deployed: Deployed) -> list[Row]:
    """The rows of a check. One that fails becomes a note, so that it hides no other."""
    try:
        return list(check.look(deployed))
    except ClientError as error:
        if action := denied_action(error):
            advice = f"allow {action} (docs/operator-cli.md, Permissions in AWS)"
            return [Row(check.name, Level.NOTE, f"not checked: you lack {action}", advice)]
        return [_not_checked(check, explanation(error) or str(error))]
    except click.ClickException as error:
        return [_not_checked(check, error.message)]
    except Exception as error:  # noqa: BLE001 - a bug in one check must hide no other
        return [_not_checked(check, explanation(error) or f"{type(error).__name__}: {error}")]


def _not_checked(check: Check, reason: str) -> Row:
    found, _, advice = reason.partition(". Next: ")
    return Row(
        check.name,
        Level.NOTE,
        f"not checked: {found}",
        advice or "run the command again, and report it if the note stays",
    )
