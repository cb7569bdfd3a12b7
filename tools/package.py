"""Package the output of `make build` in dist/larder-<version>: the template and the archives for `sam package`.

Run by `make package`. The code is in a layer. The functions' own archive is the same in every release, so it is not
compressed: zlib's output depends on its version. The same files always give the same archives: entries are sorted and
have a fixed date. SHA256SUMS lists the checksum of every file.
"""

import hashlib
import re
import shutil
import stat
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / ".aws-sam" / "build"
DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip archive can hold."""
FUNCTIONS, LAYER, TEMPLATE, SUMS = "functions.zip", "layer.zip", "template.yaml", "SHA256SUMS"
SETTINGS = "samconfig.toml"
CODE_LAYER = "LarderLayer"
"""The layer with all code. Others only have packages for some functions."""

_CODE = re.compile(r"^(?P<indent> +)CodeUri: (?P<folder>[A-Za-z0-9]+)$", re.MULTILINE)
_LAYER = re.compile(r"^(?P<indent> +)ContentUri: (?P<folder>[A-Za-z0-9]+)$", re.MULTILINE)
_BUILD_SECTION = re.compile(r"^\[[a-z]+\.(?:validate|build)\.", re.MULTILINE)


class Unbuilt(Exception):
    """There is no build, or it is inconsistent."""


def version() -> str:
    project = tomllib.loads((ROOT / "layers" / "larder" / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def package(built: Path, folder: Path) -> list[Path]:
    """Replace `folder` with a package of the build. Returns its files. Raises Unbuilt."""
    if not (built / TEMPLATE).is_file():
        raise Unbuilt("there is no build: run `make build`")
    template = (built / TEMPLATE).read_text()
    functions = sorted({match["folder"] for match in _CODE.finditer(template)})
    layers = sorted({match["folder"] for match in _LAYER.finditer(template)})
    sums = {_sum_of(built / name) for name in functions}
    if len(sums) != 1:
        raise Unbuilt(f"the functions have {len(sums)} different zips: run `make build` again")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _zip(built / functions[0], folder / FUNCTIONS, ZIP_STORED)
    for layer in layers:
        _zip(built / layer, folder / _archive(layer), ZIP_DEFLATED)
    template = _CODE.sub(rf"\g<indent>CodeUri: {FUNCTIONS}", template)
    template = _LAYER.sub(
        lambda found: f"{found['indent']}ContentUri: {_archive(found['folder'])}", template
    )
    (folder / TEMPLATE).write_text(template)
    (folder / SETTINGS).write_text(_for_deploying((ROOT / SETTINGS).read_text()))
    shutil.copy(ROOT / "LICENSE", folder)
    files = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))
    return [*files, folder / SUMS]


def _archive(layer: str) -> str:
    """The archive of a layer: `LarderLayer` is in `layer.zip`, `JwtLayer` in `jwt-layer.zip`."""
    return LAYER if layer == CODE_LAYER else f"{layer.removesuffix('Layer').lower()}-{LAYER}"


def _for_deploying(settings: str) -> str:
    """The settings without those of `sam validate` and `sam build`, which have already run."""
    sections = re.split(r"\n(?=\[)", settings)
    return "\n".join(one for one in sections if not _BUILD_SECTION.match(one))


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _sum_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _zip(folder: Path, archive: Path, compression: int) -> None:
    with ZipFile(archive, "w", compression, compresslevel=9) as zipped:
        for path in _files(folder):
            entry = ZipInfo(path.relative_to(folder).as_posix(), DATE)
            entry.compress_type = compression
            # Lambda must be able to read the file, whatever the umask was.
            mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            zipped.writestr(entry, path.read_bytes())


def main() -> int:
    folder = ROOT / "dist" / f"larder-{version()}"
    try:
        files = package(BUILT, folder)
    except Unbuilt as error:
        print(error, file=sys.stderr)
        return 1
    for path in files:
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
