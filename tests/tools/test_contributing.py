"""The steps of CONTRIBUTING.md for an endpoint and for an option, in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("", "functions", "layers/larder/src", "cli/src")


def example(heading: str, language: str) -> str:
    """The first example of a section."""
    section = TEXT.partition(f"{heading}\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, f"{heading} has no example in {language}"
    return found[1]


def insert(file: Path, before: str, text: str) -> None:
    start, found, end = file.read_text().partition(before)
    assert found, f"{file} has no {before!r}"
    file.write_text(f"{start}{text}{found}{end}")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with the endpoint and the option of the examples, after `make generate`."""
    folder = tmp_path_factory.mktemp("clone") / "larder"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    handler = example("### 2. Write the handler", "python")
    (folder / "functions/api_keys/count_api_keys.py").write_text(handler)
    insert(
        folder / "template.yaml",
        '  # <<<cog functions.function("api_keys.get_api_key") >>>',
        example("### 3. Grant its permissions", "yaml") + "\n",
    )
    test = example("### 4. Test it", "python")
    (folder / "tests/functions/api_keys/test_count_api_keys.py").write_text(test)
    insert(
        folder / "layers/larder/src/larder/settings.py",
        "    sign_up_policy: str = ",
        textwrap.indent(example("## Add an option", "python"), "    "),
    )
    insert(
        folder / "layers/larder/src/larder/accounts/sessions.py",
        "    token = random_id(TOKEN_LENGTH)\n    session = Session(",
        "    _ = settings().max_sessions_per_user\n",
    )
    run(folder, "tools.generate")
    return folder


def run(folder: Path, *module: str) -> str:
    """Run `python -m` in the copy, with the copy's packages, and return the output."""
    paths = os.pathsep.join(str(folder / package) for package in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_endpoint_is_in_the_template_and_the_documentation(copy: Path) -> None:
    template = (copy / "template.yaml").read_text()
    assert "Method: GET, Path: /api/auth/api-key/count}" in template
    assert "\n  CountApiKeys:\n" in template
    assert (copy / "events" / "count_api_keys.json").is_file()
    for page in ("docs/openapi.json", "docs/api-keys.md"):
        assert "/api/auth/api-key/count" in (copy / page).read_text()


def test_the_option_is_in_the_template_and_the_documentation(copy: Path) -> None:
    template = (copy / "template.yaml").read_text()
    assert "\n  MaxSessionsPerUser:\n    Type: Number\n    Default: 0\n" in template
    functions = template.split('<<<cog functions.function("')[1:]
    given = [one.partition('"')[0] for one in functions if "{MaxSessionsPerUser}" in one]
    assert "accounts.sign_in" in given
    assert "artifacts.fetch_artifact" not in given
    row = "| `MaxSessionsPerUser` | 0 | 0 to 1000 | How many sessions"
    assert row in (copy / "docs" / "configuration.md").read_text()


def test_the_checks_pass(copy: Path) -> None:
    run(copy, "tools.generate", "--check")
    run(copy, "ruff", "check", "functions", "tests/functions/api_keys", "layers")
    tests = ["tests/functions/api_keys/test_count_api_keys.py", "tests/test_template.py"]
    sample = "count_api_keys or CountApiKeys or every or option"
    passed = run(
        copy,
        *("pytest", "-q", "-p", "no:cacheprovider", "-k", sample),
        *(*tests, "tests/functions/test_sample_events.py", "tests/tools/test_openapi.py"),
    )
    assert re.search(r"\d+ passed", passed)
