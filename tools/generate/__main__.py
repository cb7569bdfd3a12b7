"""`python -m tools.generate` renews every generated part; with --check it names the files that are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from cogapp import Cog

ROOT = Path(__file__).resolve().parent.parent.parent
PROLOGUE = "from tools.generate import options"
MARKERS = "<<<cog >>> <<<end>>>"
"""Not cog's own: `]]]` ends many a line of the template."""
STALE = "stale: run `make generate` and commit what it changes"


def marked_files(root: Path) -> list[Path]:
    """The template and the pages of docs/ that have generated parts."""
    pages = [root / "template.yaml", *sorted((root / "docs").glob("*.md"))]
    return [page for page in pages if "<<<cog " in page.read_text()]


def renew(paths: list[Path], *, check: bool) -> int:
    """Run cog over the files. Returns its exit status: with `check` it writes nothing and fails for a stale file."""
    mode = ["--check", "--diff", f"--check-fail-msg={STALE}"] if check else ["-r"]
    arguments = [
        *mode,
        "-P",
        "--verbosity=1",
        f"--markers={MARKERS}",
        "-p",
        PROLOGUE,
        *map(str, paths),
    ]
    status: int = Cog().main(["cog", *arguments])
    return status


def main(arguments: list[str]) -> int:
    return renew(marked_files(ROOT), check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
