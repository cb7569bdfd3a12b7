"""The output of `make build`, and a replacement for the Lambda runtime that can import it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import read_template

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / ".aws-sam" / "build"
EM_AARCH64 = 183
EXPORT = "export --quiet --frozen --no-dev --group jwt --no-emit-workspace --output-file"
INSTALL = "pip install --quiet --only-binary :all: --python-version 3.13"


@dataclass(frozen=True, slots=True)
class BuiltFunction:
    """A built function: its handler and the folder that becomes /var/task. The handler is in the layer."""

    logical_id: str
    handler: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Python of Lambda's version. `search_path` replaces /opt/python and the packages of the runtime."""

    python: Path
    search_path: list[Path]

    def run(self, code: str, *arguments: str) -> Any:
        """Run `code` and parse the JSON that it prints. It sees no environment, and no packages but `search_path`."""
        done = subprocess.run(
            [self.python, "-I", "-S", "-B", "-c", code, *arguments], env={}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def elf_machine(path: Path) -> int:
    """The processor that a shared library is for, by its ELF header."""
    header = path.read_bytes()[:20]
    assert header.startswith(b"\x7fELF"), f"{path.name} is not a Linux library"
    return int.from_bytes(header[18:20], "little")


def uv(command: str, *arguments: str | Path) -> None:
    binary = ROOT / ".tools" / "uv" / "bin" / "uv"
    subprocess.run([binary, *command.split(), *arguments], cwd=ROOT, check=True, timeout=300)


@pytest.fixture(scope="session")
def built_template() -> dict[str, Any]:
    assert (BUILT / "template.yaml").is_file(), "there is no build: run `make build`"
    return read_template(BUILT / "template.yaml")


@pytest.fixture(scope="session")
def built_functions(built_template: dict[str, Any]) -> list[BuiltFunction]:
    return [
        BuiltFunction(logical_id, resource["Properties"]["Handler"], BUILT / resource["Properties"]["CodeUri"])
        for logical_id, resource in built_template["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    ]


@pytest.fixture(scope="session")
def layer(built_template: dict[str, Any]) -> Path:
    """The folder that becomes /opt/python."""
    uri: str = built_template["Resources"]["LarderLayer"]["Properties"]["ContentUri"]
    return BUILT / uri / "python"


@pytest.fixture(scope="session")
def runtime_python() -> Path:
    found = subprocess.run([ROOT / "tools" / "find-python", "3.13"], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    return Path(found.stdout.strip())


@pytest.fixture(scope="session")
def runtime(layer: Path, runtime_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    """The layer, preceded by this machine's versions of the packages that contain arm64 libraries, and followed by
    boto3, which Lambda has. All have the versions of the lock file.
    """
    folder = tmp_path_factory.mktemp("runtime")
    requirements, host, native = folder / "requirements.txt", folder / "host", folder / "native"
    uv(EXPORT, requirements)
    uv(INSTALL, "--python", runtime_python, "--target", host, "--requirements", requirements)
    native.mkdir()
    for package in {library.relative_to(layer).parts[0] for library in layer.rglob("*.so")}:
        (native / package).symlink_to(host / package)
    return Runtime(runtime_python, [native, layer, host])
