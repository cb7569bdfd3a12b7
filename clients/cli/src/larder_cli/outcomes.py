"""The outcome of a check of a live deployment, and how it is printed."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from larder_cli.failures import explanation
from larder_cli.http import Unreachable, about_silence
from larder_cli.output import echo, linked


class Failed(Exception):
    """The check failed. `found` is what the deployment did instead, `advice` what to do about it."""

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found)
        self.found = found
        self.advice = advice


class NotTried(Exception):
    """The check was skipped. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one check. `outcome` is `passed`, `failed` or `not tried`."""

    check: str
    outcome: str
    seconds: float
    found: str = ""
    advice: str = ""


def tried(name: str, check: Callable[[], str]) -> Outcome:
    began = time.monotonic()
    outcome, found, advice = "passed", "", ""
    try:
        found = check()
    except Failed as failure:
        outcome, found, advice = "failed", failure.found, failure.advice
    except Unreachable as reason:
        outcome, found, advice = "failed", f"no response: {reason}", about_silence(reason)
    except NotTried as reason:
        outcome, found = "not tried", str(reason)
    except Exception as error:
        # AWS may refuse a call.
        line = explanation(error)
        if line is None:
            raise
        outcome, found, advice = "failed", line, "see the permissions in docs/operator-cli.md"
    seconds = round(time.monotonic() - began, 2)
    return Outcome(check=name, outcome=outcome, seconds=seconds, found=found, advice=advice)


def show(outcome: Outcome, deployment: str = "") -> None:
    """Print it. Pages in the advice get their addresses at `deployment`, if it has them."""
    mark, colour = {
        "passed": ("ok", "green"),
        "failed": ("FAILED", "red"),
        "not tried": ("-", "yellow"),
    }[outcome.outcome]
    note = f"  ({outcome.found})" if outcome.found and outcome.outcome == "passed" else ""
    marked = click.style(f"{mark:>6}", fg=colour)
    click.echo(f"{marked}  ", nl=False)
    echo(f"{outcome.check}  {outcome.seconds:.1f} s{note}")
    if outcome.outcome != "passed":
        echo(f"        {outcome.found}")
    if outcome.advice:
        echo(f"        do: {linked(outcome.advice, deployment)}")
