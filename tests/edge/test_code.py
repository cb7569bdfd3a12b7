"""The code of the edge's functions fits CloudFront's runtime, and the template has it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from local.cloudformation import read_template
from local.edge.engine import IMPORTS, MEMORY_BYTES, EdgeFunction, FunctionError
from tests.edge.requests import FOLDER

ROOT = FOLDER.parents[1]
TEMPLATE = read_template(ROOT / "template.yaml")
RESOURCES, PARAMETERS = TEMPLATE["Resources"], TEMPLATE["Parameters"]
NAMES = ("request", "response")

MOST_BYTES = 10_240
"""Source: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/cloudfront-limits.html"""


def source(name: str) -> str:
    return (FOLDER / f"{name}.js").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_template_deploys_the_file(name: str) -> None:
    properties = RESOURCES[f"Edge{name.capitalize()}"]["Properties"]
    code = properties["FunctionCode"]
    assert (code["Fn::Sub"] if name == "request" else code) == source(name)
    assert properties["FunctionConfig"]["Runtime"] == "cloudfront-js-2.0"
    assert ("KeyValueStoreAssociations" in properties["FunctionConfig"]) is ("kvs()" in source(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_code_fits(name: str) -> None:
    code = source(name)
    assert code.isascii()
    variables = re.findall(r"\$\{(.*?)\}", code)
    assert variables == (["AllowedNetworks"] if name == "request" else [])
    assert len(code) + sum(PARAMETERS[name]["MaxLength"] for name in variables) <= MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_the_code_imports_only_what_the_runtime_has(name: str) -> None:
    imported = re.findall(r"^import .*$", source(name), re.MULTILINE)
    assert set(imported) <= set(IMPORTS)
    assert not re.search(r"\b(require|eval|setTimeout|fetch|process|XMLHttpRequest)\b", source(name))


@pytest.mark.parametrize("name", NAMES)
def test_only_the_handler_waits_and_without_closures(name: str) -> None:
    """The runtime supports neither async arguments nor closures in async functions."""
    code = re.sub(r"//.*", "", source(name))
    functions = re.split(r"^(?=(?:async )?function )", code, flags=re.MULTILINE)
    for function in functions:
        waits = "await" in function
        assert waits == function.startswith("async function handler(")
        if waits:
            assert function.count("function") == 1
            assert "=>" not in function


def test_an_unknown_import_is_refused() -> None:
    with pytest.raises(FunctionError, match="no such module"):
        EdgeFunction("import fs from 'fs';\nfunction handler(event) { return event; }", _nothing)


def test_an_error_of_the_function_is_reported() -> None:
    for code, message in (
        ("function handler(event) { throw new Error('broken'); }", "broken"),
        ("async function handler(event) { await new Promise(function () {}); }", "never replies"),
    ):
        with pytest.raises(FunctionError, match=message):
            EdgeFunction(code, _nothing)({})


def test_the_memory_of_a_function_is_limited() -> None:
    code = f"function handler(event) {{ return {{ text: 'x'.repeat({MEMORY_BYTES}) }}; }}"
    with pytest.raises(FunctionError):
        EdgeFunction(code, _nothing)({})


def _nothing(_name: str) -> None:
    return None


@pytest.mark.skipif(not shutil.which("njs"), reason="needs njs, which .ci/run installs")
@pytest.mark.parametrize("name", NAMES)
def test_njs_accepts_the_syntax(name: str, tmp_path: Path) -> None:
    """njs is the nearest relative of CloudFront's runtime. It refuses newer JavaScript that QuickJS accepts."""
    checked = _njs(source(name), tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(not shutil.which("njs"), reason="needs njs, which .ci/run installs")
@pytest.mark.parametrize("code", ["const { a } = {};", "for (const a of [1]) {}", "class A {}", "Math.max(...[1]);"])
def test_njs_refuses_newer_syntax(code: str, tmp_path: Path) -> None:
    assert _njs(code, tmp_path).returncode != 0


def _njs(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "code.js"
    # njs has no module `cloudfront`. What is left is parsed, and runs to its end.
    without = re.sub(r"^import .*$", "", code, flags=re.MULTILINE)
    file.write_text("const cf = { kvs: function () { return {}; } };\nconst crypto = {};\n" + without)
    return subprocess.run(["njs", str(file)], capture_output=True, text=True, timeout=30)
