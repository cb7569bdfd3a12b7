"""Write to dist/ what a GitHub release has in addition to the release's own files: two archives, and notes.

`larder-<version>.tar.gz` is the release. `larder-terraform-<version>.tar.gz` is the Terraform module with the release
inside. The same commit always gives the same files.
"""

import gzip
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from larder import project
from larder_cli.deploy.release import Release, open_release
from tools.release.notes import NoUpgradeNotes, notes, published_notes
from tools.release.package import ROOT, version

NOTES = "notes.markdown"
MODULE = "terraform"
FOLDER = ROOT / "deploy" / MODULE
REPOSITORY = "GITHUB_REPOSITORY"
"""GitHub sets this variable to the owner and the name of the repository."""


def write_assets(release: Release, folder: Path, section: str, repository: str) -> list[Path]:
    """Write the archives and the notes to `folder`. Returns their paths.

    `section` is the part of the changelog to publish, and `repository` the owner and name for links.
    """
    name = f"larder-{release.version}"
    whole, module = folder / f"{name}.tar.gz", folder / f"larder-{MODULE}-{release.version}.tar.gz"
    packed = [(path, path.name) for path in sorted(release.folder.iterdir())]
    _archive(whole, name, packed)
    own = [(path, path.relative_to(FOLDER).as_posix()) for path in _module_files()]
    _archive(
        module,
        f"larder-{MODULE}-{release.version}",
        [*own, *((p, f"release/{n}") for p, n in packed)],
    )
    (folder / NOTES).write_text(published_notes(release, section, repository))
    return [whole, module, folder / NOTES]


def _module_files() -> list[Path]:
    """The committed files of the module. A copy of a release next to them is left out."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", str(FOLDER)]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    return sorted(ROOT / name for name in names.split("\0") if name)


def _archive(path: Path, prefix: str, files: Iterable[tuple[Path, str]]) -> None:
    """Pack files with these names below `prefix`: no owner, no dates, one mode."""
    with (
        path.open("wb") as opened,
        gzip.GzipFile("", "wb", compresslevel=9, fileobj=opened, mtime=0) as compressed,
        tarfile.open(mode="w", fileobj=compressed, format=tarfile.PAX_FORMAT) as archive,
    ):
        for source, name in files:
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.size, entry.mode = source.stat().st_size, 0o644
            with source.open("rb") as content:
                archive.addfile(entry, content)


def repository() -> str:
    return os.environ.get(REPOSITORY) or project.slug()


def main() -> int:
    dist = ROOT / "dist"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    try:
        section = notes(changelog, version())
    except NoUpgradeNotes as error:
        print(error, file=sys.stderr)
        return 1
    release = open_release(dist / f"larder-{version()}")
    for path in write_assets(release, dist, section, repository()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
