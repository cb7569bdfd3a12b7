"""The parameters of a deployment. SAM keeps the deployed value of each one that it is not given: an option that you
take out of samconfig.toml would stay, and a new default would never arrive. So every parameter is given.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

_PARSER = Path(__file__).with_name("sam_parameters.py")
_UNWRITABLE = re.compile(r"\\[ \"']")
"""SAM would drop the backslash, however it is quoted."""


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter whose value will differ. None stands for a parameter that the template does not have."""

    name: str
    before: str | None
    after: str | None


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


def all_values(
    declared: Mapping[str, Mapping[str, Any]], given: Mapping[str, str]
) -> dict[str, str]:
    """A value for every parameter of the template: the given one, or the default.

    Raises ClickException for a name that the template does not declare, and for a value that SAM cannot pass on.
    """
    for name, value in given.items():
        if name not in declared:
            similar = get_close_matches(name, declared, n=1)
            hint = f" Did you mean {similar[0]}?" if similar else ""
            raise click.ClickException(f"template.yaml has no parameter {name}.{hint}")
        if _UNWRITABLE.search(value):
            raise click.ClickException(
                f"{name}: SAM cannot pass on a backslash before a quote or a space"
            )
    return {name: given.get(name, _default(one)) for name, one in declared.items()}


def _default(parameter: Mapping[str, Any]) -> str:
    default = parameter["Default"]
    return str(default).lower() if isinstance(default, bool) else str(default)


def write_for_sam(values: Mapping[str, str], path: Path) -> None:
    """Write the values to a YAML file for `--parameter-overrides file://...`.

    SAM removes quotes around a value twice: when it reads the file, and when it reads the option that names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    quoted = {name: f'""{value}""' for name, value in values.items()}
    # In YAML, an escaped pair of surrogates is not one character.
    path.write_text(json.dumps(quoted, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """What differs between the deployed values and the new ones, in the order of the template."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        Change(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]
