"""The built layer fits Lambda: arm64, Python 3.13, the versions of the lock file, no boto3."""

import json
import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.build.conftest import EM_AARCH64, ROOT, elf_machine

pytestmark = pytest.mark.build

MAX_UNPACKED_BYTES = 40_000_000
"""Twice the current size, to notice a dependency that doubles what a cold start reads."""


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


@pytest.mark.parametrize("package", ["boto3", "botocore", "s3transfer", "urllib3", "jwt", "cryptography"])
def test_packages_of_the_runtime_and_of_other_layers_are_left_out(layer: Path, package: str) -> None:
    assert not list(layer.glob(f"{package}*"))


def test_powertools_is_complete_without_boto3(layer: Path) -> None:
    assert (layer / "aws_lambda_powertools").is_dir()
    assert (layer / "jmespath").is_dir()


def test_the_packages_match_the_lock_file(layer: Path) -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    pinned = {package["name"]: package["version"] for package in lock["package"] if "version" in package}
    installed = {
        re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower(): found.version
        for found in distributions(path=[str(layer)])
    }
    assert {"aws-lambda-powertools", "pydantic", "pydantic-core"} <= installed.keys()
    assert installed == {name: pinned[name] for name in installed}


def test_every_wheel_is_for_arm64_linux_or_any_platform(layer: Path) -> None:
    tags = {
        path.parent.name: re.findall(r"^Tag: (\S+)$", path.read_text(), re.MULTILINE)
        for path in layer.glob("*.dist-info/WHEEL")
    }
    assert len(tags) == len(list(layer.glob("*.dist-info")))
    for name, found in tags.items():
        assert found, name
        for tag in found:
            assert re.fullmatch(r"py3-none-any|py2\.py3-none-any|cp313-\w+-manylinux\w+_aarch64", tag)


def test_every_library_is_for_arm64(layer: Path) -> None:
    libraries = [path for path in layer.rglob("*") if re.search(r"\.(so|pyd|dylib)\b", path.name)]
    assert libraries
    assert {elf_machine(path) for path in libraries} == {EM_AARCH64}


def test_the_code_equals_the_source_tree(layer: Path) -> None:
    assert files(layer / "larder") == files(ROOT / "layers" / "larder" / "src" / "larder")


@pytest.mark.parametrize(
    "folder", sorted(path.name for path in (ROOT / "functions").iterdir() if path.name != "__pycache__")
)
def test_it_has_the_handlers_and_no_package_has_the_name_of_their_folder(layer: Path, folder: str) -> None:
    document = {"openapi.json"}
    built, source = files(layer / folder), files(ROOT / "functions" / folder)
    assert built.keys() == source.keys()
    assert all(built[name] == source[name] for name in source.keys() - document)


def test_the_openapi_document_is_that_of_the_documentation_without_white_space(layer: Path) -> None:
    built = (layer / "pages" / "openapi.json").read_text()
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    assert built == json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_the_layer_stays_small(layer: Path) -> None:
    assert sum(path.stat().st_size for path in layer.rglob("*") if path.is_file()) < MAX_UNPACKED_BYTES
