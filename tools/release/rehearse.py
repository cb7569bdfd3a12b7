"""Rehearse a release without a tag, and publish nothing. Run by `make rehearse-release`, after `make wheel`.

It packs the build a second time, compares each file with the one in dist/, verifies the wheel, and writes the notes of
the changelog's next version.
"""

import filecmp
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from larder_cli.deploy.release import open_release
from tools.release.assets import NOTES, repository, write_assets
from tools.release.notes import NoUpgradeNotes, notes
from tools.release.package import BUILT, ROOT, complete, package, version
from tools.release.wheel import build_wheel

UNRELEASED = "Unreleased"


def next_section(changelog: str, version: str) -> str:
    """What the next release publishes: the section Unreleased, or that of the version once it is named.

    Raises NoUpgradeNotes.
    """
    return notes(changelog, UNRELEASED if f"\n## {UNRELEASED}\n" in changelog else version)


def published(folder: Path, section: str) -> list[Path]:
    """Complete a folder with a packed release by what a GitHub release has in addition. Returns all its files."""
    release = open_release(folder / f"larder-{version()}")
    release.check()
    return [
        *sorted(release.folder.iterdir()),
        *write_assets(release, folder, section, repository()),
    ]


def differing(files: list[Path], folder: Path, other: Path) -> Iterator[str]:
    """The names of files of `folder` that are absent from another folder, or differ there."""
    for path in files:
        name = path.relative_to(folder)
        if not (other / name).is_file() or not filecmp.cmp(path, other / name, shallow=False):
            yield name.as_posix()


def verify_wheel(wheel: Path) -> str:
    """What `larder release verify` prints, run from the wheel in an environment of its own."""
    uv = ROOT / ".tools" / "uv" / "bin" / "uv"
    done = subprocess.run(
        [uv, "tool", "run", "--quiet", "--from", wheel, "larder", "release", "verify"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def main() -> int:
    dist = ROOT / "dist"
    try:
        section = next_section((ROOT / "CHANGELOG.md").read_text(), version())
    except NoUpgradeNotes as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        again = Path(temporary)
        package(BUILT, again / f"larder-{version()}")
        complete(again / f"larder-{version()}")
        wheel = build_wheel(again / f"larder-{version()}", again)
        files = [*published(again, section), wheel]
        published(dist, section)
        if found := list(differing(files, again, dist)):
            print(f"two releases of one build differ: {', '.join(found)}", file=sys.stderr)
            return 1
    print((dist / NOTES).read_text())
    for path in files:
        copy = dist / path.relative_to(again)
        print(f"{hashlib.sha256(copy.read_bytes()).hexdigest()}  {copy.relative_to(ROOT)}")
    print(verify_wheel(dist / wheel.name), "Nothing was published.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
