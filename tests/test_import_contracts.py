"""The import contracts of pyproject.toml cover every folder of functions/, including new ones."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINTER: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
DOMAINS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/*.py")})


def contract(name: str) -> dict[str, Any]:
    (found,) = (one for one in LINTER["contracts"] if one["name"].startswith(name))
    return found


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_contracts_include_every_domain_of_functions(domain: str) -> None:
    assert domain in LINTER["root_packages"]
    top, *_ = contract("The layer does not import functions")["layers"]
    assert domain in top.split(" | ")
    assert f"{domain}.*" in contract("Functions do not import each other")["modules"]
    assert domain in contract("Only larder.aws.boto imports")["source_modules"]
    assert domain in contract("Functions and web/ call services")["source_modules"]
