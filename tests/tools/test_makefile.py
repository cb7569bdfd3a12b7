"""What the Makefile says before it begins, and where it looks for tests."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # As a shell calls it, not as a part of the `make test` that runs this.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["build", "deploy"])
@pytest.mark.parametrize("name", ["production", "prod.", "", "defaul"])
def test_an_environment_that_samconfig_does_not_have_is_refused_before_anything_is_built(
    command: str, name: str
) -> None:
    done = make(command, ENV=name)
    assert done.returncode == 2
    told, *_ = done.stderr.splitlines()
    assert told == f'samconfig.toml has no environment "{name}": default, prod'
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["default", "prod"])
def test_the_environments_of_samconfig_are_known(name: str) -> None:
    done = make("known-environment", ENV=name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("command", "marks"), [("test-build", "build"), ("e2e", "slow|e2e")])
def test_a_command_looks_into_every_folder_that_has_tests_for_it(command: str, marks: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    (folders,) = re.findall(rf"^{command}: FOLDERS := (.+)$", makefile, re.MULTILINE)
    marked = re.compile(rf"\bmark\.({marks})\b")
    have_some = {
        test.relative_to(ROOT).parts[1]
        for test in (ROOT / "tests").rglob("*.py")
        if marked.search(test.read_text())
    }
    assert have_some == {folder.removeprefix("tests/") for folder in folders.split()}
