"""`python -m tools.generate` renews every generated part; with --check it names the files that are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from cogapp import Cog

from tools.generate import events
from tools.openapi import __main__ as openapi

ROOT = Path(__file__).resolve().parent.parent.parent
PROLOGUE = "from tools.generate import commands, endpoints, errors, functions, options"
MARKERS = "<<<cog >>> <<<end>>>"
"""Not cog's own: `]]]` ends many a line of the template."""
STALE = "stale: run `make generate` and commit what it changes"


def marked_files(root: Path) -> list[Path]:
    """The template and the pages of docs/ that have generated parts."""
    pages = [root / "template.yaml", *sorted((root / "docs").glob("*.md"))]
    return [page for page in pages if "<<<cog " in page.read_text()]


def renew(path: Path, *, check: bool) -> int:
    """Run cog over a file. Returns its exit status: with `check` it writes nothing and fails if the file is stale."""
    mode = ["--check", "--diff", f"--check-fail-msg={STALE}"] if check else ["-r"]
    arguments = [*mode, "-P", "--verbosity=1", f"--markers={MARKERS}", "-p", PROLOGUE, str(path)]
    status: int = Cog().main(["cog", *arguments])
    return status


def renew_events(*, check: bool) -> int:
    """Write events/. Returns the exit status: with `check` it writes nothing and fails if a file is stale."""
    if not check:
        events.write()
        return 0
    for name in (stale := events.stale()):
        print(f"events/{name} is {STALE}", file=sys.stderr)
    return int(bool(stale))


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    template, *pages = marked_files(ROOT)
    # In this order: the OpenAPI document has routes of the template and examples of events/, and pages have its tables.
    statuses = [renew(template, check=check), renew_events(check=check), openapi.main(arguments)]
    statuses += [renew(page, check=check) for page in pages]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
