"""`python -m tools.generate` updates every generated part; with --check it lists the stale files."""

from __future__ import annotations

import sys
from pathlib import Path

from cogapp import Cog

from tools.generate import events
from tools.openapi import Undocumented, files

ROOT = Path(__file__).resolve().parent.parent.parent
PROLOGUE = (
    "from tools.generate import access, commands, edge, endpoints, faults, functions, limits, "
    "options, roles, versions, why"
)
MARKERS = "<<<cog >>> <<<end>>>"
"""Not cog's defaults, because some lines of the template end with `]]]`."""
STALE = "stale: run `make generate` and commit the changes"


def marked_files(root: Path) -> list[Path]:
    """The template, and the pages, scripts of the console and modules that have generated parts."""
    scripts = sorted((root / "layers/larder/src/larder/web/html/console").glob("*.js"))
    pages = [
        root / "template.yaml",
        *sorted((root / "docs").glob("*.md")),
        *scripts,
        root / "layers/larder/src/larder/project.py",
    ]
    return [page for page in pages if "<<<cog " in page.read_text()]


def renew(path: Path, *, check: bool) -> int:
    """Run cog over a file. Returns the exit status. With `check`, it writes nothing and fails if the file is stale."""
    mode = ["--check", "--diff", f"--check-fail-msg={STALE}"] if check else ["-r"]
    arguments = [*mode, "-P", "--verbosity=1", f"--markers={MARKERS}", "-p", PROLOGUE, str(path)]
    status: int = Cog().main(["cog", *arguments])
    return status


def renew_events(*, check: bool) -> int:
    """Write events/. Returns the exit status. With `check`, it writes nothing and fails if a file is stale."""
    if not check:
        events.write()
        return 0
    for name in (stale := events.stale()):
        print(f"events/{name} is {STALE}", file=sys.stderr)
    return int(bool(stale))


def renew_openapi(*, check: bool) -> int:
    """Write the OpenAPI document and the methods of each path. Returns the exit status, as `renew_events` does."""
    try:
        if not check:
            files.write()
            return 0
        stale = files.differing()
    except Undocumented as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in stale:
        print(f"{path} is {STALE}", file=sys.stderr)
    return int(bool(stale))


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    template, *pages = marked_files(ROOT)
    # In this order: the OpenAPI document reads the template and events/, and the pages read the OpenAPI document.
    statuses = [renew(template, check=check), renew_events(check=check), renew_openapi(check=check)]
    statuses += [renew(page, check=check) for page in pages]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
