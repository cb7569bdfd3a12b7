"""Every built handler can be imported by Lambda's version of Python."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import read_template
from tests.build.conftest import BUILT, ROOT, BuiltFunction, Runtime

pytestmark = pytest.mark.build

IMPORT_HANDLER = """
import importlib, json, sys
sys.path[:0] = json.loads(sys.argv[1])
module, handler = sys.argv[2].rsplit(".", 1)
assert callable(getattr(importlib.import_module(module), handler))
print(json.dumps({name: path for name, module in sys.modules.items() if (path := getattr(module, "__file__", None))}))
"""

DESCRIBE_PYC = """
import importlib.util, json
print(json.dumps([importlib.util.MAGIC_NUMBER.hex(), importlib.util.cache_from_source("module.py")]))
"""

HASH_BASED_UNCHECKED = 0b01
"""PEP 552: Python loads it without comparing the date of the source."""


@cache
def source_template() -> dict[str, Any]:
    return read_template(ROOT / "template.yaml")["Resources"]


FUNCTIONS = [
    name for name, one in source_template().items() if one["Type"] == "AWS::Serverless::Function"
]


@pytest.fixture
def function(request: pytest.FixtureRequest, built_functions: list[BuiltFunction]) -> BuiltFunction:
    (found,) = (one for one in built_functions if one.logical_id == request.param)
    return found


@pytest.mark.parametrize("function", FUNCTIONS, indirect=True)
def test_a_built_handler_imports_without_any_environment(
    function: BuiltFunction, runtime: Runtime, layer: Path
) -> None:
    search_path = [str(function.folder), *map(str, runtime.search_path)]
    loaded: dict[str, str] = runtime.run(IMPORT_HANDLER, json.dumps(search_path), function.handler)
    assert loaded[function.handler.rpartition(".")[0]].startswith(f"{function.folder}/")
    native, _, host = runtime.search_path
    stand_ins = {path.name for path in native.iterdir()}
    shipped = {path.name.removesuffix(".py") for path in layer.iterdir()} - stand_ins
    for name, path in loaded.items():
        package = name.partition(".")[0]
        if package in shipped:
            assert path.startswith(f"{layer}/"), name
        if path.startswith(f"{ROOT}/"):
            assert path.startswith((f"{layer}/", f"{function.folder}/")), name
        if path.startswith(f"{host}/"):
            assert package not in shipped, name
    packages = {name.partition(".")[0] for name in loaded}
    assert "larder" in packages
    assert "boto3" not in packages


CACHE_FUNCTIONS = [
    name
    for name in FUNCTIONS
    if source_template()[name]["Properties"]["Handler"].startswith("artifacts.")
]


@pytest.mark.parametrize("function", CACHE_FUNCTIONS, indirect=True)
def test_a_cache_function_starts_without_unneeded_packages(
    function: BuiltFunction, runtime: Runtime
) -> None:
    search_path = [str(function.folder), *map(str, runtime.search_path)]
    loaded: dict[str, str] = runtime.run(IMPORT_HANDLER, json.dumps(search_path), function.handler)
    slow = {"pydantic", "email_validator", "larder.accounts.service", "larder.signing"}
    assert not slow & loaded.keys()


@pytest.mark.parametrize("function", FUNCTIONS, indirect=True)
def test_a_built_function_contains_only_the_source_tree(function: BuiltFunction) -> None:
    def sources(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.parent.name != "__pycache__"
        }

    assert sources(function.folder) == sources(ROOT / "functions")


def compiled_folders(layer: Path, built_functions: list[BuiltFunction]) -> Iterator[Path]:
    yield layer
    yield from (function.folder for function in built_functions)


def test_every_built_module_is_compiled_for_the_runtime(
    layer: Path, built_functions: list[BuiltFunction], runtime: Runtime
) -> None:
    magic, cached = runtime.run(DESCRIBE_PYC)
    tag = Path(cached).name.removeprefix("module")
    for folder in compiled_folders(layer, built_functions):
        modules = list(folder.rglob("*.py"))
        expected = {path.parent / "__pycache__" / f"{path.stem}{tag}" for path in modules}
        assert expected
        assert set(folder.rglob("*.pyc")) == expected
        for path in expected:
            header = path.read_bytes()[:8]
            assert header[:4].hex() == magic
            assert int.from_bytes(header[4:], "little") == HASH_BASED_UNCHECKED


def test_the_build_does_not_contain_the_path_of_its_folder(
    layer: Path, built_functions: list[BuiltFunction]
) -> None:
    for folder in compiled_folders(layer, built_functions):
        assert not [
            path for path in folder.rglob("*.pyc") if str(ROOT).encode() in path.read_bytes()
        ]


def test_everything_in_the_template_was_built(built_template: dict[str, Any]) -> None:
    assert built_template["Resources"].keys() == source_template().keys()
    assert {path.name for path in BUILT.iterdir() if path.is_dir()} == {*FUNCTIONS, "LarderLayer"}
