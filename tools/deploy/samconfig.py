"""samconfig.toml, as `sam deploy` reads it."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click

_PARSER = Path(__file__).with_name("sam_parameters.py")


def read_configuration(place: Path, environment: str) -> dict[str, Any]:
    """The parameters of `deploy` of one environment. Raises UsageError."""
    sections = tomllib.loads((place / "samconfig.toml").read_text())
    try:
        parameters: dict[str, Any] = sections[environment]["deploy"]["parameters"]
    except KeyError:
        raise click.UsageError(f'samconfig.toml has no environment "{environment}"') from None
    return parameters


def read_overrides(overrides: object, *, sam_python: Path) -> dict[str, str]:
    """The values that SAM reads from `parameter_overrides` of samconfig.toml or of the command line.

    Raises ClickException with SAM's message.
    """
    done = subprocess.run(
        [sam_python, _PARSER],
        input=json.dumps(overrides),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"parameter_overrides: {done.stderr.strip()}")
    values: dict[str, str] = json.loads(done.stdout)
    return values
