"""Build the wheel `larder-cache` in dist/: the command `larder` with the release inside. Run by `make wheel`.

It carries the package `larder`, because the distribution of this name on PyPI belongs to another project. Two builds of
one release are equal.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from larder import project
from tools.release.package import ROOT, version

NAME = project.PACKAGE
SOURCES = (
    ROOT / "layers" / "larder" / "src" / "larder",
    ROOT / "clients" / "cli" / "src" / "larder_cli",
    ROOT / "clients" / "sidecar" / "src" / "larder_proxy",
)
_PYPROJECT = """\
[project]
name = "{name}"
version = "{version}"
description = "Deploy and operate Larder, a remote build cache in your own AWS account."
readme = "README.md"
license = "MIT"
license-files = ["LICENSE"]
authors = [{{ name = "Larder contributors" }}]
keywords = ["turborepo", "remote-cache", "build-cache", "monorepo", "serverless", "aws"]
classifiers = [
    "Environment :: Console",
    "Intended Audience :: Developers",
    "Intended Audience :: System Administrators",
    "Operating System :: MacOS",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    "Topic :: Software Development :: Build Tools",
]
requires-python = "{python}"
dependencies = {dependencies}

[project.optional-dependencies]
edge = {edge}

[project.scripts]
larder = "larder_cli.start:main"
larder-cache = "larder_cli.start:main"

{urls}[build-system]
requires = ["uv_build>=0.9"]
build-backend = "uv_build"

[tool.uv.build-backend]
module-name = ["larder", "larder_cli", "larder_proxy"]
"""
_README = """\
# larder-cache

The command `larder`, which deploys and operates Larder: a remote build cache for Turborepo in your own AWS account.

    larder install --env prod
"""


def build_wheel(release: Path, folder: Path) -> Path:
    """Write the wheel of a release to `folder`. Returns its path."""
    with tempfile.TemporaryDirectory() as temporary:
        built = Path(temporary)
        for source in SOURCES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, built / "src" / source.name, ignore=ignored)
        shutil.copytree(release, built / "src" / "larder_cli" / "release")
        shutil.copy(ROOT / "LICENSE", built)
        (built / "README.md").write_text(_README)
        (built / "pyproject.toml").write_text(_pyproject())
        uv = ROOT / ".tools" / "uv" / "bin" / "uv"
        subprocess.run(
            [uv, "build", "--quiet", "--wheel", "--out-dir", folder, built],
            check=True,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", temporary)},
        )
    return folder / f"{NAME.replace('-', '_')}-{version()}-py3-none-any.whl"


def _pyproject() -> str:
    layer, cli = (
        tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]
        for path in ("layers/larder", "clients/cli")
    )
    dependencies = {*layer["dependencies"], *cli["dependencies"]} - {"larder", "larder-proxy"}
    return _PYPROJECT.format(
        name=NAME,
        version=version(),
        python=layer["requires-python"],
        dependencies=_listed(sorted(dependencies)),
        edge=_listed(cli["optional-dependencies"]["edge"]),
        urls=_urls(),
    )


def _urls() -> str:
    """The addresses that the owner has filled in, as a table of the project."""
    known = {"Repository": project.REPOSITORY, "Documentation": project.DOCUMENTATION}
    lines = [f'{name} = "{address}"\n' for name, address in known.items() if address]
    return "".join(["[project.urls]\n", *lines, "\n"]) if lines else ""


def _listed(values: list[Any]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def main() -> int:
    wheel = build_wheel(ROOT / "dist" / f"larder-{version()}", ROOT / "dist")
    print(f"{wheel.stat().st_size:>12,}  {wheel.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
