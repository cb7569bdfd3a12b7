"""Apply each seeded bug to a copy of the tree, and run the tests that should catch it.

`make seeded ARGS="--only name --only name"` runs some of them. `--tests tests/machines` runs these tests for each, and
`--all` all tests of `make test`. With `--write`, the table goes to tests/seeded/README.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.seeded.patches import Seeded, seeded_bugs

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "README.md"

LEVELS = {"make test": ["--quick"], "make e2e": ["-m", "slow and not build and not e2e and not thorough"]}
"""Options of pytest by the command that runs such tests. The second runs only if the first catches nothing."""

INTRODUCTION = """# Seeded bugs

Each patch of this folder breaks the product. `make seeded` applies one at a time and runs the tests that should catch
it. `make seeded ARGS="--write"` writes this table. *Level* is the first command whose tests catch the bug.

| Patch | What breaks | Level | Failing tests | One of them |
|---|---|---|---|---|
"""


class Result(NamedTuple):
    """The tests that fail, and the command that runs them; both empty for a bug that nothing catches."""

    bug: Seeded
    level: str
    failing: Sequence[str]

    @property
    def row(self) -> str:
        file, _, test = self.failing[0].rpartition("::") if self.failing else ("", "", "")
        example = (
            f"`{file.removeprefix('tests/').partition('::')[0]}`: {test.partition('[')[0]}"
            if test
            else "**NOT CAUGHT**"
        )
        return f"| {self.bug.name} | {self.bug.breaks} | {self.level} | {len(self.failing) or ''} | {example} |\n"


def copy_of_tree(copy: Path) -> None:
    """Copy what is not ignored, also what is not committed yet, into a repository of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, copy / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    for name in (".venv", ".tools"):
        (copy / name).symlink_to(ROOT / name)
    identity = ["-c", "user.name=seeded", "-c", "user.email=seeded@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "The tree without seeded bugs"]):
        subprocess.run(["git", *command], cwd=copy, check=True)


def failing_tests(copy: Path, paths: Sequence[str], level: Sequence[str], workers: str) -> list[str]:
    """The ids of the tests that fail. Exits if the tests cannot run."""
    sources = (copy / part for part in ("layers/larder/src", "clients/cli/src", "clients/sidecar/src"))
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, sources))}
    options = ["-q", "-n", workers, *level, "--tb=no", "-p", "no:cacheprovider", "--disable-warnings"]
    command = [".venv/bin/python", "-m", "pytest", *options, *paths]
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if ran.returncode not in (0, 1, 5):  # 5: the paths have no test of this level
        sys.exit(f"pytest failed:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    summary = [line.partition(" - ")[0] for line in ran.stdout.splitlines()]
    return [line.split(" ", 1)[1] for line in summary if line.startswith(("FAILED tests", "ERROR tests"))]


def try_bug(bug: Seeded, copy: Path, paths: Sequence[str], workers: str) -> Result:
    if objection := bug.apply(copy):
        sys.exit(f"{bug.path.name} no longer applies: make it again for the changed code\n{objection}")
    try:
        for level, chosen in LEVELS.items():
            if failing := failing_tests(copy, paths, chosen, workers):
                return Result(bug, level, failing)
        return Result(bug, "", [])
    finally:
        subprocess.run(["git", "checkout", "-q", "."], cwd=copy, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the name of a patch without .patch")
    parser.add_argument("--tests", action="append", help="a file or folder of tests to run for each")
    parser.add_argument("--all", action="append_const", dest="tests", const="tests", help="run all tests for each")
    parser.add_argument("--write", action="store_true", help=f"write the table to {TABLE.relative_to(ROOT)}")
    parser.add_argument("--workers", default="2")
    options = parser.parse_args()
    bugs = [bug for bug in seeded_bugs() if not options.only or bug.name in options.only]
    results = []
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        copy_of_tree(Path(folder))
        for bug in bugs:
            results.append(try_bug(bug, Path(folder), options.tests or bug.paths, options.workers))
            print(results[-1].row, end="", flush=True)
    if options.write:
        TABLE.write_text(INTRODUCTION + "".join(result.row for result in results))
    missed = [result.bug.name for result in results if not result.failing]
    print(
        f"{len(results) - len(missed)} of {len(results)} caught"
        + (f", NOT CAUGHT: {', '.join(missed)}" if missed else "")
    )
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
