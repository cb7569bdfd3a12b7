"""Seeded bugs: changes that break the product, as patches. The tests have to catch each (`make seeded`).

The first line of a patch says what breaks for a user, the second (`# tests:`) which tests should catch it.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_TESTS = "# tests: "


@dataclass(frozen=True)
class Seeded:
    """A patch. `paths` are the files and folders of tests that should catch it."""

    path: Path
    breaks: str
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    def apply(self, tree: Path, *options: str) -> str:
        """Apply it to a tree with these options of `git apply`. Returns what git objects to, empty if it applies."""
        command = ["git", "apply", *options, str(self.path)]
        return subprocess.run(command, cwd=tree, capture_output=True, text=True).stderr.strip()


def seeded_bugs() -> list[Seeded]:
    found = []
    for path in sorted(Path(__file__).parent.glob("*.patch")):
        breaks, tests, _ = path.read_text().split("\n", 2)
        assert tests.startswith(_TESTS), f"the second line of {path.name} must begin with {_TESTS!r}"
        found.append(Seeded(path, breaks, tuple(tests.removeprefix(_TESTS).split())))
    return found
