"""The Makefile's check of the environment, and its folders of tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # Without the variables of a `make test` that may run this test.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "ARGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env={**environ, **variables}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("command", ["build", "deploy"])
@pytest.mark.parametrize("name", ["production", "prod.", "", "pro"])
def test_an_unknown_environment_is_rejected_before_the_build(command: str, name: str) -> None:
    done = make(command, ENV=name)
    assert done.returncode == 2
    message, *_ = done.stderr.splitlines()
    assert message == f'samconfig.toml has no environment "{name}": default, prod'
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["default", "prod"])
def test_the_environments_of_samconfig_are_accepted(name: str) -> None:
    done = make("known-environment", ENV=name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_larder_without_arguments_shows_the_help() -> None:
    assert '.venv/bin/larder --local ".larder" --help' in make("--dry-run", "larder").stdout
    assert '.venv/bin/larder --local ".larder" teams list' in make("--dry-run", "larder", "ARGS=teams list").stdout


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--port", "abc", "must be a number from 0 to 65535"),
        ("--port", "65536", "must be a number from 0 to 65535"),
        ("--workers", "0", "must be a whole number of at least 1"),
        ("--workers", "two", "must be a whole number of at least 1"),
    ],
)
def test_serve_refuses_a_wrong_number_in_two_lines(option: str, value: str, rule: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "local", "serve", option, value], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    usage, error = done.stderr.splitlines()
    assert usage == "usage: python -m local serve [OPTIONS]"
    assert error == f"python -m local serve: error: argument {option}: {rule}"


def commands(help: str) -> list[str]:
    return re.findall(r"^  make ([a-z0-9-]+) ", help, re.MULTILINE)


def test_help_lists_each_command_once() -> None:
    usual, all_ = (commands(make("help", f"ALL={value}").stdout) for value in ("", "1"))
    for listed, files in ((usual, ["Makefile"]), (all_, ["Makefile", "tools/more.mk"])):
        texts = [(ROOT / file).read_text() for file in files]
        documented = re.findall(r"^([a-z0-9-]+):.*## ", "".join(texts), re.MULTILINE)
        assert sorted(listed) == sorted(documented)
    assert {"serve", "deploy"} <= set(usual[:9])
    assert len(usual) <= 20


@pytest.mark.parametrize(("command", "marks"), [("test-build", "build"), ("e2e", "slow|e2e")])
def test_a_command_covers_every_folder_with_its_tests(command: str, marks: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    (folders,) = re.findall(rf"^{command}: FOLDERS := (.+)$", makefile, re.MULTILINE)
    marked = re.compile(rf"\bmark\.({marks})\b")
    have_some = {
        test.relative_to(ROOT).parts[1] for test in (ROOT / "tests").rglob("*.py") if marked.search(test.read_text())
    }
    assert have_some == {folder.removeprefix("tests/") for folder in folders.split()}
