"""Help texts are complete and fast, and docs/operator-cli.md covers every command."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from larder_cli.main import cli

from .conftest import Larder

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "operator-cli.md"


def walk(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, with its path of names."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from walk(inner, *path, name)


COMMANDS = dict(walk(cli))
IDS = [" ".join(("larder", *path)) for path in COMMANDS]


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_help_has_examples_and_needs_no_target(path: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        shown = Larder()(*path, flag).stdout
        assert shown.startswith(f"Usage: {' '.join(('larder', *path))}")
        assert "Examples:\n    larder " in shown
        assert COMMANDS[path].help


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if isinstance(command, click.Group)])
def test_80_columns_show_the_whole_summary_of_each_command(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = Larder()(*path, "--help").stdout
    command = COMMANDS[path]
    assert isinstance(command, click.Group)
    summaries = [line for line in shown.splitlines() if line.strip().partition(" ")[0] in command.commands]
    assert len(summaries) == len(command.commands)
    assert [line for line in summaries if line.endswith("...")] == []


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_every_option_has_a_help_text(path: tuple[str, ...]) -> None:
    options = [param for param in COMMANDS[path].params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []


# The output of `larder run` is that of the build.
@pytest.mark.parametrize(
    "path", [path for path, command in COMMANDS.items() if not isinstance(command, click.Group) and path != ("run",)]
)
def test_every_command_can_print_json(path: tuple[str, ...]) -> None:
    assert "--json" in {name for param in COMMANDS[path].params for name in param.opts}


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if not isinstance(command, click.Group)])
def test_the_reference_lists_the_command_with_its_arguments_and_required_options(path: tuple[str, ...]) -> None:
    (row,) = [
        line
        for line in REFERENCE.read_text().partition("\n## Permissions")[0].splitlines()
        if re.match(rf"{' '.join(path)}(?: .*)?  [A-Z]", line)
    ]
    wanted = {
        name
        for param in COMMANDS[path].params
        for name in (
            [*param.opts, *param.secondary_opts]
            if isinstance(param, click.Option)
            else [str(param.metavar or param.name).upper()]
        )
        if isinstance(param, click.Argument) or param.required
    }
    assert [name for name in sorted(wanted) if name not in row] == []


def test_the_reference_has_a_section_for_each_group() -> None:
    headings = re.findall(r"^## `larder (\S+)`$", REFERENCE.read_text(), re.MULTILINE)
    groups = {path[0] for path in COMMANDS if len(path) > 1}
    assert groups <= set(headings)


def test_version() -> None:
    assert Larder()("--version").stdout == f"larder, version {version('larder')}\n"


def test_an_unknown_command_is_a_usage_error() -> None:
    assert "No such command" in Larder().refusal("eat", status=2)


def test_help_imports_no_slow_module() -> None:
    """boto3 and rich take longer to import than everything else."""
    program = (
        "import sys\n"
        "from larder_cli.main import cli\n"
        "cli(['keys', 'create', '--help'], standalone_mode=False)\n"
        "print([name for name in ('boto3', 'botocore', 'rich', 'pydantic') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_run_imports_no_other_command_and_no_package() -> None:
    """A build waits for it."""
    program = (
        "import sys\n"
        "from larder_cli.start import main\n"
        "import os\n"
        "loaded = lambda: [name for name in ('larder_cli.main', 'click', 'hashlib') if name in sys.modules]\n"
        "os._exit = lambda status: print(status, loaded())\n"
        "sys.argv = ['larder', 'run', '--', 'true']\n"
        "main()"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.splitlines()[-1] == "0 []"


def test_the_installed_command_runs() -> None:
    larder = Path(sys.executable).with_name("larder")
    shown = subprocess.run([larder, "--help"], capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "rebuild-index" in shown.stdout
