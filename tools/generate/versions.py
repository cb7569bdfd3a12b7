"""The outputs of the template that say which version is deployed."""

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2] / "layers" / "larder" / "pyproject.toml"


def outputs() -> None:
    project = tomllib.loads(_PROJECT.read_text())
    print("  Version:")
    print(f'    Value: "{project["project"]["version"]}"')
    print("  ReadableSince:")
    print("    Description: The oldest version that reads the data of this one.")
    print(f'    Value: "{project["tool"]["larder"]["readable-since"]}"')
