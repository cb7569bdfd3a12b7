"""The Terraform module in terraform/: its variables accept and refuse what `larder install` does."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from larder_cli.deploy.options import check_value, default_of
from larder_cli.deploy.release import PLACE, PLAIN
from local.cloudformation import read_template
from tests.workflows import commands, read_workflow
from tools.generate.terraform import FOLDER, NotTranslated, stale, without_look_ahead, write
from tools.generate.text import camel_case, snake_case

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS: dict[str, Any] = read_template(ROOT / "template.yaml")["Parameters"]
TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(
    TERRAFORM is None, reason="terraform is not on PATH, and no registry of packages has it"
)

_VARIABLE = re.compile(
    r'^variable "(?P<name>\w+)" \{\n  description = (?P<text>".*")\n  type        = (?P<type>\w+)\n'
    r"  default     = (?P<default>.*)\n  nullable    = false\n",
    re.MULTILINE,
)


def test_every_parameter_is_a_variable_with_the_same_default_and_text() -> None:
    found = {one["name"]: one for one in _VARIABLE.finditer((FOLDER / "variables.tf").read_text())}
    assert [camel_case(name) for name in found] == list(PARAMETERS)
    for name, parameter in PARAMETERS.items():
        one = found[snake_case(name)]
        default = json.loads(one["default"])
        if one["type"] == "bool":
            assert parameter["AllowedValues"] == ["true", "false"]
            assert json.dumps(default) == default_of(parameter)
        else:
            assert (one["type"] == "number") == (parameter["Type"] == "Number")
            assert str(default) == default_of(parameter)
        assert json.loads(one["text"].replace("$${", "${")) == parameter["Description"]


def test_every_variable_reaches_the_parameter_of_its_name() -> None:
    text = (FOLDER / "parameters.tf").read_text()
    passed = dict(re.findall(r"^    (\w+) += tostring\(var\.(\w+)\)$", text, re.MULTILINE))
    assert passed == {name: snake_case(name) for name in PARAMETERS}


def test_every_rule_of_a_parameter_is_a_validation() -> None:
    text = (FOLDER / "variables.tf").read_text()
    for name, parameter in PARAMETERS.items():
        block = text.partition(f'variable "{snake_case(name)}" {{')[2].partition("\n}\n")[0]
        for rule in ("MinValue", "MaxValue", "MaxLength"):
            if rule in parameter and "AllowedValues" not in parameter:
                assert f" {parameter[rule]}" in block, (name, rule)
        if "AllowedPattern" in parameter:
            assert "regex(" in block, name
        if "AllowedValues" in parameter and "type        = bool" not in block:
            assert "contains([" in block, name
        assert block.count("error_message") == block.count("validation {")


def test_a_manual_change_and_an_absent_file_are_stale(tmp_path: Path) -> None:
    assert stale() == []
    write(tmp_path)
    assert stale(tmp_path) == []
    with (tmp_path / "variables.tf").open("a") as variables:
        variables.write("# by hand\n")
    (tmp_path / "parameters.tf").unlink()
    assert stale(tmp_path) == ["variables.tf", "parameters.tf"]


def test_a_pattern_without_a_known_form_is_an_error() -> None:
    assert without_look_ahead("^(?=[ -~]*$)a*$") == (["^([ -~]*$)", "^a*$"], [])
    assert without_look_ahead("^((?!vca_)[a-z_]+)?$") == (["^([a-z_]+)?$"], ["^vca_"])
    with pytest.raises(NotTranslated, match="no form"):
        without_look_ahead("^a(?=b)$")


def test_the_release_is_not_committed_and_each_version_has_it_in_an_archive() -> None:
    assert "terraform/release/" in (ROOT / ".gitignore").read_text().splitlines()
    jobs = read_workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert any("dist/*.tar.gz" in one for one in commands(jobs["github"]))


# With Terraform ---------------------------------------------------------------------------------


_MIRROR = {name: os.environ[name] for name in ("TF_CLI_CONFIG_FILE",) if name in os.environ}
"""The configuration of Terraform can name a mirror that has AWS's provider."""


def terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert TERRAFORM is not None
    return subprocess.run(
        [TERRAFORM, *arguments, "-no-color"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "CHECKPOINT_DISABLE": "1", **_MIRROR},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def options(tmp_path: Path) -> Path:
    """The variables alone, which need no provider."""
    write(tmp_path)
    initialized = terraform(tmp_path, "init", "-backend=false")
    assert initialized.returncode == 0, initialized.stderr
    return tmp_path


@needs_terraform
def test_the_variables_are_valid_and_the_tests_of_options_pass(options: Path) -> None:
    assert terraform(FOLDER, "fmt", "-check", "-recursive").returncode == 0
    assert terraform(options, "validate").returncode == 0
    shutil.copy(FOLDER / "tests" / "options.tftest.hcl", options)
    done = terraform(options, "test")
    assert done.returncode == 0, done.stdout
    assert "4 passed, 0 failed" in done.stdout


SAMPLES = [
    "",
    "vca_x",
    "larder_",
    "a b",
    "a\\b",
    'a"b',
    "{}",
    '{"artifacts":["read"]}',
    "{" + '"' * 33,
    "{" + '"' * 65,
    "x" * 33,
    "x" * 900,
    "X-Api-Key, other",
    "ops@acme.example",
    "ops@acme.example, ada@acme.example",
    "ä@acme.example",
    "ä" * 50 + "@acme.example",
    "acme.example",
    "@acme.example",
    "https://cache.example.com",
    "https://*.example.com, http://localhost:3000",
    "/larder/",
    "larder",
    "s3://acme-tls/ca.pem",
    "arn:aws:iam::123456789012:policy/boundary",
    "arn:aws:kms:eu-central-1:123456789012:key/0f1e2d3c",
    "arn:aws:acm:eu-central-1:123456789012:certificate/0f1e",
    "arn:aws:acm:us-east-1:123456789012:certificate/0f1e",
    "arn:aws:sns:eu-central-1:123456789012:topic",
    "A" * 43 + "=",
    "company.larder",
    "evict",
    "PriceClass_All",
]
"""Texts for every option that is a text. Some are valid for one option, and none for all."""


def is_accepted(name: str, value: str) -> bool:
    try:
        check_value(name, value, PARAMETERS[name])
    except click.ClickException:
        return False
    return True


def hcl_run(name: str, accepted: Mapping[str, str], refused: Mapping[str, str]) -> str:
    """A run of `terraform test` for each: values as HCL that pass, and those that are refused, each by its name."""
    text = ""
    for kind, values in (("accepted", accepted), ("refused", refused)):
        if values:
            given = "\n".join(f"{snake_case(one)} = {value}" for one, value in values.items())
            failures = ", ".join(f"var.{snake_case(one)}" for one in values)
            expected = f"expect_failures = [{failures}]" if kind == "refused" else ""
            text += f'run "{name}_{kind}" {{\ncommand = plan\nvariables {{\n{given}\n}}\n{expected}\n}}\n'
    return text


def check_runs(folder: Path, runs: str) -> None:
    (folder / "runs.tftest.hcl").write_text(runs)
    done = terraform(folder, "test")
    assert done.returncode == 0, done.stdout[-4_000:]
    count = runs.count('run "')
    assert f"{count} passed, 0 failed" in done.stdout


def of_type(*kinds: str) -> Callable[[str], bool]:
    return lambda name: PARAMETERS[name]["Type"] in kinds


@needs_terraform
def test_terraform_accepts_and_refuses_the_texts_that_larder_does(options: Path) -> None:
    texts = [
        name
        for name in filter(of_type("String"), PARAMETERS)
        if PARAMETERS[name].get("AllowedValues") != ["true", "false"]
    ]
    runs = [
        hcl_run(
            f"sample_{number}",
            {
                one: json.dumps(value, ensure_ascii=False)
                for one in texts
                if is_accepted(one, value)
            },
            {
                one: json.dumps(value, ensure_ascii=False)
                for one in texts
                if not is_accepted(one, value)
            },
        )
        for number, value in enumerate(SAMPLES)
    ]
    for name in texts:
        outcomes = {is_accepted(name, value) for value in SAMPLES}
        assert outcomes == {True, False} or "AllowedPattern" not in PARAMETERS[name], name
    check_runs(options, "".join(runs))


@needs_terraform
def test_terraform_accepts_each_bound_and_refuses_what_is_beyond(options: Path) -> None:
    numbers = list(filter(of_type("Number"), PARAMETERS))
    runs = ""
    for bound, step in (("MinValue", -1), ("MaxValue", 1)):
        bounded = {
            name: int(PARAMETERS[name][bound]) for name in numbers if bound in PARAMETERS[name]
        }
        runs += hcl_run(
            bound,
            {name: str(value) for name, value in bounded.items()},
            {name: str(value + step) for name, value in bounded.items()},
        )
    runs += hcl_run("fractions", {}, dict.fromkeys(numbers, "30.5"))
    runs += hcl_run("defaults", {name: default_of(PARAMETERS[name]) for name in numbers}, {})
    check_runs(options, runs)


@needs_terraform
def test_the_stack_gets_the_release(tmp_path: Path) -> None:
    module = tmp_path / "module"
    shutil.copytree(FOLDER, module, ignore=shutil.ignore_patterns("release", ".terraform*"))
    release = module / "release"
    release.mkdir()
    versions = ("FunctionsVersion", "JwtLayerVersion", "LayerVersion")
    placed = {**PARAMETERS, **{name: {"Type": "String"} for name in (*PLACE, *versions)}}
    (release / PLAIN).write_text(json.dumps({"Parameters": placed}, default=str))
    for name in ("functions", "jwt-layer", "layer"):
        (release / f"{name}-0123456789abcdef.zip").write_text(name)
    initialized = terraform(module, "init", "-backend=false")
    if initialized.returncode != 0:
        pytest.skip(f"AWS's provider cannot be downloaded: {initialized.stderr.strip()[:300]}")
    done = terraform(module, "test")
    assert done.returncode == 0, done.stdout
