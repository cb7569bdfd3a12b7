"""Write the release in dist/larder-<version> from the output of `make build`. Run by `make package`.

The code is in a layer. The functions' own archive is the same in every release, so it is not compressed: zlib's output
depends on its version. The same commit always gives the same files: entries are sorted and have a fixed date, and
archives are named by their content. SHA256SUMS lists the checksum of every file.
"""

import hashlib
import json
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from larder_cli.deploy.release import (
    CHANGES,
    DEPLOYER,
    DESCRIPTION,
    GOVERNMENT,
    NO_BUDGETS,
    PLAIN,
    SBOM,
    SUMS,
)
from local.cloudformation import read_template
from tools.release.bill_of_materials import bill_of_materials
from tools.release.changes_since import changes_since
from tools.release.notes import upgrade_steps
from tools.release.regional import BUDGETS, CLOUDFRONT, without_types
from tools.release.sidecar import DATE, SIDECAR, pack_sidecar

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / ".aws-sam" / "build"
SAM_PYTHON = ROOT / ".tools" / "sam" / "bin" / "python"
FUNCTIONS, LAYER = "functions", "layer"
TEMPLATE, SETTINGS = "template.yaml", "samconfig.toml"
CODE_LAYER = "LarderLayer"
"""The layer with all code. Others only have packages for some functions."""

_URI = re.compile(r"^(?P<name> +(?:CodeUri|ContentUri): )(?P<folder>[A-Za-z0-9]+)$", re.MULTILINE)
_DERIVED = {DESCRIPTION, CHANGES, SBOM, SUMS}
"""Files that follow from the others."""
_BUILD_SECTION = re.compile(r"^\[[a-z]+\.(?:validate|build)\.", re.MULTILINE)


class Unbuilt(Exception):
    """There is no build, or it is inconsistent."""


def project() -> dict[str, Any]:
    """layers/larder/pyproject.toml."""
    return tomllib.loads((ROOT / "layers" / "larder" / "pyproject.toml").read_text())


def version() -> str:
    return str(project()["project"]["version"])


def package(built: Path, folder: Path) -> None:
    """Replace `folder` with the archives of a build, and the template and settings for `sam deploy`.

    Raises Unbuilt.
    """
    if not (built / TEMPLATE).is_file():
        raise Unbuilt("there is no build: run `make build`")
    template = (built / TEMPLATE).read_text()
    names = _names(template)
    functions = [one for one, name in names.items() if name == FUNCTIONS]
    sums = {_folder_sum(built / function) for function in functions}
    if len(sums) != 1:
        raise Unbuilt(f"the functions have {len(sums)} different zips: run `make build` again")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archives: dict[str, Path] = {}
    for one, name in names.items():
        if name not in archives:
            compression = ZIP_STORED if name == FUNCTIONS else ZIP_DEFLATED
            archives[name] = _zip(built / one, folder / f"{name}.zip", compression)
    (folder / TEMPLATE).write_text(
        _URI.sub(lambda found: found["name"] + archives[names[found["folder"]]].name, template)
    )
    (folder / SETTINGS).write_text(_for_deploying((ROOT / SETTINGS).read_text()))
    shutil.copy(ROOT / "LICENSE", folder)
    pack_sidecar(folder / SIDECAR)


def complete(folder: Path) -> None:
    """Add what `larder install` and other tools deploy to a folder of `package`. Needs SAM's environment."""
    plain = plain_template(folder / TEMPLATE)
    _write(folder / PLAIN, plain)
    _write(folder / NO_BUDGETS, without_types(plain, BUDGETS))
    _write(folder / GOVERNMENT, without_types(plain, BUDGETS, CLOUDFRONT))
    _write(folder / DEPLOYER, read_template(ROOT / "deploy" / "deployer" / TEMPLATE))
    described = {
        "version": version(),
        "readable_since": project()["tool"]["larder"]["readable-since"],
        "environments": _environments((folder / SETTINGS).read_text()),
        "upgrade": upgrade_steps((ROOT / "CHANGELOG.md").read_text()),
        "contents": {path.name: contents_sum(path) for path in sorted(folder.glob("*.zip"))},
        "files": {
            path.name: _sum(path) for path in sorted(folder.iterdir()) if path.name not in _DERIVED
        },
    }
    _write(folder / DESCRIPTION, described, indent=1)
    (folder / CHANGES).write_text(changes_since(ROOT, plain, version()))
    sums = json.dumps(described["files"])
    _write(folder / SBOM, bill_of_materials(ROOT, version(), seed=sums), indent=1)
    listed = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{_sum(path)}  {path.name}\n" for path in listed]
    (folder / SUMS).write_text("".join(lines))


def plain_template(path: Path) -> dict[str, Any]:
    """What SAM makes of a template."""
    done = subprocess.run(
        [SAM_PYTHON, Path(__file__).with_name("plain_template.py"), path],
        env={"AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def contents_sum(archive: Path) -> str:
    """A checksum of the files in an archive, whatever version of zlib compresses them."""
    digest = hashlib.sha256()
    with ZipFile(archive) as zipped:
        for name in sorted(zipped.namelist()):
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.sha256(zipped.read(name)).digest())
    return digest.hexdigest()


def _names(template: str) -> dict[str, str]:
    """The archive of each folder of the build: `LarderLayer` is in `layer`, `JwtLayer` in `jwt-layer`."""
    folders = (found["folder"] for found in _URI.finditer(template))
    return {
        folder: FUNCTIONS
        if not folder.endswith("Layer")
        else LAYER
        if folder == CODE_LAYER
        else f"{folder.removesuffix('Layer').lower()}-{LAYER}"
        for folder in folders
    }


def _for_deploying(settings: str) -> str:
    """The settings without those of `sam validate` and `sam build`, which have already run."""
    sections = re.split(r"\n(?=\[)", settings)
    return "\n".join(section for section in sections if not _BUILD_SECTION.match(section))


def _environments(settings: str) -> dict[str, dict[str, str]]:
    """The options of each environment of samconfig.toml, for `larder install --env` without a file."""
    sections = tomllib.loads(settings)
    return {
        name: dict(
            one.split("=", 1)
            for one in section["deploy"]["parameters"]["parameter_overrides"].split()
        )
        for name, section in sections.items()
        if isinstance(section, dict)
    }


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _folder_sum(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(path: Path, value: object, *, indent: int | None = None) -> None:
    separators = None if indent else (",", ":")
    path.write_text(json.dumps(value, indent=indent, separators=separators) + "\n")


def _zip(folder: Path, archive: Path, compression: int) -> Path:
    """Pack a folder. Returns the archive, whose name then ends with its checksum."""
    with ZipFile(archive, "w", compression, compresslevel=9) as zipped:
        for path in _files(folder):
            entry = ZipInfo(path.relative_to(folder).as_posix(), DATE)
            entry.compress_type = compression
            # Lambda must be able to read the file, whatever the umask was.
            mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            zipped.writestr(entry, path.read_bytes())
    return archive.rename(archive.with_name(f"{archive.stem}-{_sum(archive)[:16]}.zip"))


def main() -> int:
    folder = ROOT / "dist" / f"larder-{version()}"
    try:
        package(BUILT, folder)
        complete(folder)
    except Unbuilt as error:
        print(error, file=sys.stderr)
        return 1
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
