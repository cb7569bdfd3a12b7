"""The import contracts of pyproject.toml cover every folder of functions/, including new ones."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINTER: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]
DOMAINS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/*.py")})


def contract(name: str) -> dict[str, Any]:
    (found,) = (one for one in LINTER["contracts"] if one["name"].startswith(name))
    return found


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_contracts_include_every_domain_of_functions(domain: str) -> None:
    assert domain in LINTER["root_packages"]
    top, *_ = contract("Functions and the command line stand above")["layers"]
    assert domain in top.split(" | ")
    assert f"{domain}.*" in contract("A function never imports a function")["modules"]
    assert (
        domain in contract("Only larder.aws imports botocore, and nothing boto3")["source_modules"]
    )
    assert domain in contract("A function calls services")["source_modules"]
