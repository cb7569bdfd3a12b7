"""Check that this tree can be released, before `make release` tests and packages it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from local.cloudformation import read_template
from tools.data_resources import data_resources, recording
from tools.release.notes import NoUpgradeNotes, notes
from tools.release.package import ROOT, version


def problems(root: Path, version: str) -> Iterator[str]:
    """The reasons why this tree cannot be released. `version` is that of layers/larder/pyproject.toml."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"the version {version} is not three numbers, such as 1.2.3"
    changelog = (root / "CHANGELOG.md").read_text()
    heading = re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE
    )
    if heading is None:
        yield f"CHANGELOG.md has no heading `## {version} (year-month-day)`"
    else:
        try:
            notes(changelog, version)
        except NoUpgradeNotes as error:
            yield str(error)
    if not (root / "tests" / "upgrades" / "recorded" / f"{version}.json").is_file():
        yield "the data of this version is not recorded for the upgrade tests: run `make record-release`"
    kept, template = recording(root, version), read_template(root / "template.yaml")
    if not kept.is_file() or json.loads(kept.read_text()) != data_resources(template):
        yield f"{kept.relative_to(root)} is not what template.yaml has: run `make record-release`"
    tag, here = f"v{version}", _git(root, "tag", "--points-at", "HEAD", "--list", "v*").split()
    if tag in _git(root, "tag").split() and tag not in here:
        yield f"{tag} is already released: raise the version in layers/larder/pyproject.toml"
    for other in here:
        if other != tag:
            yield f"the tag {other} is not that of the version {version}"
    if _git(root, "status", "--porcelain"):
        yield "some changes are not committed"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    found = list(problems(ROOT, version()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
