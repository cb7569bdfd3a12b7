"""The steps of CONTRIBUTING.md for two endpoints and for an option, in a copy of the repository."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("", "functions", "layers/larder/src", "clients/cli/src")


CHECKED = (
    "functions/test_sample_events", "larder/web/test_dependencies", "owasp/test_api2_authentication",
    "test_catalogue", "test_template", "tools/test_openapi",
)  # fmt: skip
"""The tests that name what an endpoint lacks."""
RENAME = "### An endpoint with parameters and a body"
BODIES = "layers/larder/src/larder/web/bodies/api_keys.py"


def example(heading: str, language: str, number: int = 0) -> str:
    """An example of a section, by default the first in the language."""
    section = re.split(r"^#+ ", TEXT.partition(f"{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(found) > number, f"{heading} has no example in {language}"
    text: str = found[number]
    return text


def inserted(file: Path, before: str, text: str) -> str:
    start, found, end = file.read_text().partition(before)
    assert found, f"{file} has no {before!r}"
    return f"{start}{text}{found}{end}"


def insert(file: Path, before: str, text: str) -> None:
    file.write_text(inserted(file, before, text))


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
    add_option(folder)
    add_endpoint(folder)
    for name, text in with_a_body(folder).items():
        (folder / name).write_text(text)
    run(folder, "tools.generate")
    return folder


def add_endpoint(folder: Path) -> None:
    handler = example("### 2. Write the handler", "python")
    (folder / "functions/api_keys/count_api_keys.py").write_text(handler)
    insert(
        folder / "template.yaml",
        '  # <<<cog functions.function("api_keys.get_api_key") >>>',
        example("### 3. Grant its permissions", "yaml") + "\n",
    )
    test = example("### 4. Test it", "python")
    (folder / "tests/functions/api_keys/test_count_api_keys.py").write_text(test)


def add_option(folder: Path) -> None:
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
    entry = re.search(r"`(max_sessions_per_user=\S+)`", TEXT)
    assert entry
    template = folder / "template.yaml"
    for name in ("sign_in", "accounts", "login"):
        assert f"`&{name}`" in TEXT
        text, found, rest = template.read_text().partition(f"      <<: &{name}\n")
        assert found
        options = "LARDER_OPTIONS: !Sub >-\n" + " " * 14
        template.write_text(text + found + rest.replace(options, f"{options}{entry[1]} ", 1))


def with_a_body(folder: Path) -> dict[str, str]:
    """The files of an endpoint with a query parameter, a body and a write. All others are generated."""
    parser, handler, entry, test = (example(RENAME, "python", one) for one in range(4))
    markers = '  # <<<cog functions.function("api_keys.rename_api_key") >>>\n  # <<<end>>>\n'
    bodies = (folder / BODIES).read_text() + f"\n\n{parser}"
    imported = {
        "    InvalidBody,\n": "    InvalidBody,\n    InvalidQuery,\n",
        "import OF_TEAMS, NamedKey": "import ID, OF_TEAMS, NamedKey",
    }
    for before, after in imported.items():
        assert before in bodies
        bodies = bodies.replace(before, after)
    return {
        "functions/api_keys/rename_api_key.py": handler,
        BODIES: bodies,
        "template.yaml": inserted(
            folder / "template.yaml",
            '  # <<<cog functions.function("api_keys.get_api_key") >>>',
            f"{markers}{example(RENAME, 'yaml')}\n",
        ),
        "tests/catalogue.py": inserted(
            folder / "tests/catalogue.py", '        "POST /api/auth/api-key/update": ', entry
        ),
        "tests/functions/api_keys/test_rename_api_key.py": test,
        "CHANGELOG.md": inserted(folder / "CHANGELOG.md", "### Changed\n", "- Users can rename a key.\n\n"),
    }


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
    assert '\n  MaxSessionsPerUser:\n    Type: Number\n    Default: "0"\n' in template
    row = "| `MaxSessionsPerUser` | 0 (0\N{EN DASH}1000) | How many sessions"
    assert row in (copy / "docs" / "configuration.md").read_text()


def test_an_endpoint_with_a_body_takes_six_files(copy: Path) -> None:
    assert len(with_a_body(ROOT)) <= 6
    (operation,) = json.loads((copy / "docs/openapi.json").read_text())["paths"]["/api/auth/api-key/rename"].values()
    assert [parameter["name"] for parameter in operation["parameters"]] == ["id"]
    content = operation["requestBody"]["content"]["application/json"]
    assert content["schema"]["required"] == ["name"]
    assert content["example"] == {"name": "deploy"}
    codes = str(operation["responses"])
    assert "KEY_NOT_FOUND" in codes
    assert "VALIDATION_ERROR" in codes


@pytest.mark.thorough
def test_the_checks_pass(copy: Path) -> None:
    run(copy, "tools.generate", "--check")
    run(copy, "ruff", "check", "functions", "tests", "layers")
    # Those of one endpoint, and those that go through all, except for a request of each.
    names = (
        *("count_api_keys", "CountApiKeys", "api-key/count", "rename", "option"),
        "(every and not succeeds and not forged)",
    )
    tests = ("functions/api_keys/test_count_api_keys", "functions/api_keys/test_rename_api_key")
    passed = run(
        copy,
        *("pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(names)),
        *(f"tests/{test}.py" for test in (*tests, *CHECKED)),
    )
    assert re.search(r"\d+ passed", passed)
