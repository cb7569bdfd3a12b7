"""Every built handler can be imported by Lambda's version of Python."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import read_template
from tests.build.conftest import BUILT, ROOT, BuiltFunction, Runtime

pytestmark = pytest.mark.build

IMPORT_HANDLERS = """
import importlib, json, sys
sys.path[:0] = json.loads(sys.argv[1])
for name in json.loads(sys.argv[2]):
    module, handler = name.rsplit(".", 1)
    assert callable(getattr(importlib.import_module(module), handler)), name
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


FUNCTIONS = [name for name, one in source_template().items() if one["Type"] == "AWS::Serverless::Function"]


@pytest.fixture
def function(request: pytest.FixtureRequest, built_functions: list[BuiltFunction]) -> BuiltFunction:
    (found,) = (built_function for built_function in built_functions if built_function.logical_id == request.param)
    return found


HANDLERS = [source_template()[name]["Properties"]["Handler"] for name in FUNCTIONS]
DOMAINS = sorted({handler.partition(".")[0] for handler in HANDLERS})


def import_domain(domain: str, runtime: Runtime) -> dict[str, str]:
    """Import all handlers of a folder of functions/. Returns the files of all loaded modules."""
    handlers = [handler for handler in HANDLERS if handler.startswith(f"{domain}.")]
    search_path = list(map(str, runtime.search_path))
    loaded: dict[str, str] = runtime.run(IMPORT_HANDLERS, json.dumps(search_path), json.dumps(handlers))
    assert loaded.keys() >= {handler.rpartition(".")[0] for handler in handlers}
    return loaded


# test_bench_cold.py starts each function on its own.
@pytest.mark.parametrize("domain", DOMAINS)
def test_built_handlers_import_without_any_environment(domain: str, runtime: Runtime, layer: Path) -> None:
    loaded = import_domain(domain, runtime)
    native, _, host = runtime.search_path
    stand_ins = {path.name for path in native.iterdir()}
    shipped = {path.name.removesuffix(".py") for path in layer.iterdir()} - stand_ins
    for name, path in loaded.items():
        package = name.partition(".")[0]
        if package in shipped:
            assert path.startswith(f"{layer}/"), name
        if path.startswith(f"{ROOT}/"):
            assert path.startswith(f"{layer}/"), name
        if path.startswith(f"{host}/"):
            assert package not in shipped, name
    packages = {name.partition(".")[0] for name in loaded}
    assert "larder" in packages
    assert not {"boto3", "botocore"} & packages


def test_cache_functions_start_without_unneeded_packages(runtime: Runtime) -> None:
    loaded = import_domain("artifacts", runtime)
    slow = {"pydantic", "email_validator", "larder.accounts.service", "larder.signing"}
    assert not slow & loaded.keys()


@pytest.mark.parametrize("function", FUNCTIONS, indirect=True)
def test_a_built_function_has_no_code(function: BuiltFunction) -> None:
    (only,) = function.folder.rglob("*")
    assert only.read_bytes() == (ROOT / "layers/larder/placeholder/README.txt").read_bytes()


def test_every_built_module_is_compiled_for_the_runtime(layer: Path, runtime: Runtime) -> None:
    magic, cached = runtime.run(DESCRIBE_PYC)
    tag = Path(cached).name.removeprefix("module")
    modules = list(layer.rglob("*.py"))
    expected = {path.parent / "__pycache__" / f"{path.stem}{tag}" for path in modules}
    assert expected
    assert set(layer.rglob("*.pyc")) == expected
    for path in expected:
        header = path.read_bytes()[:8]
        assert header[:4].hex() == magic
        assert int.from_bytes(header[4:], "little") == HASH_BASED_UNCHECKED


def test_a_compiled_module_has_its_path_in_lambda(layer: Path) -> None:
    for path in layer.rglob("*.pyc"):
        compiled = path.read_bytes()
        assert str(ROOT).encode() not in compiled, path
        assert f"/opt/python/{path.parent.parent.relative_to(layer)}".removesuffix("/.").encode() in compiled


def test_everything_in_the_template_was_built(built_template: dict[str, Any]) -> None:
    assert built_template["Resources"].keys() == source_template().keys()
    assert {path.name for path in BUILT.iterdir() if path.is_dir()} == {*FUNCTIONS, "JwtLayer", "LarderLayer"}
