"""The outputs of the template and the constant that say which version this is."""

import tomllib
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parents[2] / "layers" / "larder" / "pyproject.toml"


def constant() -> None:
    print(f'VERSION = "{_project()["project"]["version"]}"')


def outputs() -> None:
    project = _project()
    print("  Version:")
    print(f'    Value: "{project["project"]["version"]}"')
    print("  ReadableSince:")
    print("    Description: The oldest version that reads the data of this one.")
    print(f'    Value: "{project["tool"]["larder"]["readable-since"]}"')


def _project() -> dict[str, Any]:
    return tomllib.loads(_PROJECT.read_text())
