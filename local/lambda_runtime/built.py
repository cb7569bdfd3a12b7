"""The output of `make build`, and the parts of Lambda's runtime that it needs on this machine.

The function's folder and its layers are used as built. An environment also needs Python in the runtime's version and
the packages of the runtime (AWS's interface client, boto3). If the layers' libraries were compiled for another
machine, it needs builds of them for this one. Versions and hashes come from the lock file. Packages are installed in
.tools/.
"""

from __future__ import annotations

import filecmp
import hashlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.cloudformation import TemplateError
from local.environment import RUNTIME
from local.template import Function, Template, load_template

_REPOSITORY = Path(__file__).resolve().parents[2]
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_TOOLS = _REPOSITORY / ".tools"
_BUILD = Path(".aws-sam", "build", "template.yaml")
_ARM64 = ("aarch64", "arm64")
_EXPORT_RUNTIME = ("export", "--quiet", "--frozen", "--no-header", "--only-group", "runtime")
_EXPORT_LAYER = (
    *("export", "--quiet", "--frozen", "--no-header"),
    *("--no-dev", "--group", "jwt", "--no-emit-workspace"),
)
_INSTALL = (
    *("pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
    *("--compile-bytecode", "--link-mode", "copy"),
)
_COMMAND_TIMEOUT_S = 300.0


class BuildError(Exception):
    """The built functions cannot be run. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Build:
    """The built template, and the runtime for its functions. `remarks` are for the screen."""

    template: Path
    python: Path
    runtime_packages: Path
    stand_ins: tuple[Path, ...]
    remarks: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        """Starts an environment. No site-packages, and no writes into the build, because /var/task is read-only too."""
        return [str(self.python), "-P", "-S", "-B", str(_BOOTSTRAP)]

    def search_path(self, function: Function) -> str:
        """PYTHONPATH: the layers' packages (/opt/python) and then the runtime's own (/var/runtime)."""
        layers = [layer / "python" for layer in function.layers]
        return ":".join(map(str, [*self.stand_ins, *layers, self.runtime_packages]))

    def versions(self) -> dict[str, str]:
        """The versions of `Python` and of the runtime's packages, by name."""
        found = {name: _version(self.runtime_packages, name) for name in ("awslambdaric", "boto3")}
        return {"Python": RUNTIME.removeprefix("python"), **found}


def open_build(template: Path) -> Build:
    """Open the build of `template`, and install missing packages. Raises BuildError."""
    if platform.system() != "Linux":
        raise BuildError(
            "AWS's runtime interface client runs on Linux only: leave RUNTIME out, or use a virtual machine"
        )
    built_template = template.parent / _BUILD
    if not built_template.is_file():
        raise BuildError("nothing is built: run `make build`, then this again")
    built = _load(built_template)
    for folder in {
        place for function in built.functions for place in (function.code_folder, *function.layers)
    }:
        if not folder.is_dir():
            raise BuildError(f"{folder.name} is not built: run `make build`, then this again")
    python = _find_python()
    runtime_packages = _installed("lambda-runtime", _uv(*_EXPORT_RUNTIME), python)
    native = sorted(_native_distributions(built))
    stand_ins = (
        (_installed("this-machine", _only(native, _uv(*_EXPORT_LAYER)), python),) if native else ()
    )
    client = _version(runtime_packages, "awslambdaric")
    remarks = [f"Functions run as built, under AWS's runtime interface client {client}"]
    if native:
        remarks.append(f"For this machine instead of arm64: {', '.join(native)} (in .tools)")
    if not _up_to_date(_load(template), built):
        remarks.append("The source has changed since the build: run `make build` to update it")
    return Build(built_template, python, runtime_packages, stand_ins, tuple(remarks))


def _load(template: Path) -> Template:
    try:
        return load_template(template)
    except TemplateError as error:
        raise BuildError(str(error)) from error


def _find_python() -> Path:
    """An interpreter of the runtime's minor version, because the modules are compiled for exactly that one."""
    version = RUNTIME.removeprefix("python")
    done = _run([str(_REPOSITORY / "tools" / "find-python"), version])
    if done.returncode:
        raise BuildError(f"RUNTIME=1 runs the functions on Python {version}\n{done.stderr}")
    return Path(done.stdout.strip())


def _native_distributions(built: Template) -> set[str]:
    """The distributions in the layers that contain compiled libraries for another machine than this one."""
    if platform.machine() in _ARM64:
        return set()
    layers = {str(layer / "python") for function in built.functions for layer in function.layers}
    return {
        _normalized(found.metadata["Name"])
        for found in importlib.metadata.distributions(path=sorted(layers))
        if any(".so" in file.suffixes for file in found.files or [])
    }


def _only(names: Iterable[str], requirements: str) -> str:
    """The requirements of those names. Each is a line with the name, and indented lines with its hashes."""
    entries = re.split(r"\n(?=\S)", requirements)
    wanted = [entry for entry in entries if _normalized(entry.partition("==")[0]) in names]
    return "\n".join(wanted) + "\n"


def _installed(name: str, requirements: str, python: Path) -> Path:
    """The folder where exactly these requirements are installed. It is created if missing."""
    made_for = "\0".join([requirements, str(python), platform.machine()])
    digest = hashlib.sha256(made_for.encode("utf-8")).hexdigest()[:16]
    folder = _TOOLS / "runtime" / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # On standard error, because standard output may be JSON.
    progress = f"Installing packages for {name} in .tools (the first time only) ..."
    print(progress, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        listed, target = Path(temporary, "requirements.txt"), Path(temporary, "packages")
        listed.write_text(requirements, encoding="utf-8")
        where = ("--python", str(python), "--target", str(target), "--requirements", str(listed))
        _uv(*_INSTALL, *where)
        try:
            target.rename(folder)
        except OSError as error:
            # Another local cloud has just installed it.
            if not folder.is_dir():
                raise BuildError(f"cannot make {folder}: {error.strerror}") from error
    return folder


def _uv(*arguments: str) -> str:
    own = _TOOLS / "uv" / "bin" / "uv"
    uv = str(own) if own.exists() else shutil.which("uv")
    if uv is None:
        raise BuildError("uv is not installed: run `make build`, which installs it")
    done = _run([uv, *arguments])
    if done.returncode:
        raise BuildError(f"uv {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - our own tools
            command,
            cwd=_REPOSITORY,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]}: {error}") from error


def _version(folder: Path, name: str) -> str:
    (found,) = importlib.metadata.distributions(name=name, path=[str(folder)])
    return found.version


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _up_to_date(source: Template, built: Template) -> bool:
    if _meaning(source) != _meaning(built):
        return False
    folders = {
        pair
        for old, new in zip(source.functions, built.functions, strict=True)
        for pair in [
            (old.code_folder, new.code_folder),
            # The first layer has all code. Others only have packages.
            *(
                (theirs, ours / "python")
                for layer, ours in zip(old.layers[:1], new.layers[:1], strict=True)
                for theirs in (layer / "src", old.source_folder)
            ),
        ]
    }
    return all(_same_modules(*pair) for pair in folders)


def _meaning(template: Template) -> list[Any]:
    """The template without the paths of the code, for comparison."""

    def function(one: Function) -> tuple[Any, ...]:
        kept = one.timeout_s, one.memory_mb, one.log_format, one.variables
        return one.logical_id, one.handler, *kept

    return [
        [(function(one), len(one.layers)) for one in template.functions],
        [(route.method, route.path, route.function.logical_id) for route in template.routes],
        [
            (event_rule.pattern, event_rule.function.logical_id)
            for event_rule in template.event_rules
        ],
        [
            (schedule.name, schedule.every, schedule.function.logical_id)
            for schedule in template.schedules
        ],
        [template.tables, template.buckets, template.environment],
    ]


def _same_modules(source: Path, built: Path) -> bool:
    """Whether the build contains every module of the source, byte for byte."""
    return all(
        (built / module.relative_to(source)).is_file()
        and filecmp.cmp(module, built / module.relative_to(source), shallow=False)
        for module in source.rglob("*.py")
    )
