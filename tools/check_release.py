"""Check that this tree can be released, before `make release` tests and packages it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.package import ROOT, version


def problems(root: Path, version: str) -> Iterator[str]:
    """What prevents the release. `version` is that of layers/larder/pyproject.toml."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version} is no version of three numbers"
    changelog = (root / "docs" / "changelog.md").read_text()
    heading = re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE
    )
    if heading is None:
        yield f"docs/changelog.md has no heading `## {version} (year-month-day)`"
    if not (root / "tests" / "upgrades" / "recorded" / f"{version}.json").is_file():
        yield "this version is not recorded for the tests of upgrades: run `make record-release`"
    if f"v{version}" in _git(root, "tag").split():
        yield f"v{version} is released already: raise the version in layers/larder/pyproject.toml"
    if _git(root, "status", "--porcelain"):
        yield "something is not committed"


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
