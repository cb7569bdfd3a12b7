"""Repositories of packages in layers. A build only copies a file, so that turbo and the path take all the time."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

_LAYERS = 6
_NPM = """\
#!/bin/sh
# Runs a script of package.json without the start of node.
[ "$1" = --version ] && { echo 11.0.0; exit; }
exec sh -c "$(sed -n 's/^  "build": "\\(.*\\)",*$/\\1/p' package.json)"
"""


def size(number: int, mix: str) -> int:
    """Bytes of an output. `mixed` has 72 % of 10 kB, 25 % of 300 kB and 3 % of 5 MB."""
    share = number * 7919 % 100
    if mix == "small" or share >= 28:
        return 10_000
    return 5_000_000 if share < 3 else 300_000


def make(folder: Path, packages: int, mix: str, *, build_s: float = 0) -> None:
    """Create a repository in `folder`, and in `folder/../bin` an npm that starts at once."""
    random_ = random.Random(packages)  # noqa: S311  # the same repository in each run
    outputs = folder.with_name(f"{folder.name}.outputs")
    outputs.mkdir(parents=True)
    root = {"name": "root", "private": True, "packageManager": "npm@11.0.0"}
    _write(folder / "package.json", {**root, "workspaces": ["packages/*"]})
    build = {"dependsOn": ["^build"], "outputs": ["dist/**"]}
    _write(folder / "turbo.json", {"tasks": {"build": build}})
    (folder / ".gitignore").write_text("node_modules\ndist\n.turbo\n")
    locked: dict[str, object] = {"": {"name": "root", "workspaces": ["packages/*"]}}
    for number in range(packages):
        name = f"p{number:03d}"
        layer = number * _LAYERS // packages
        below = [one for one in range(packages) if one * _LAYERS // packages == layer - 1]
        needs = {f"p{one:03d}": "*" for one in random_.sample(below, min(2, len(below)))}
        (outputs / name).write_bytes(random_.randbytes(size(number, mix)))
        script = f"mkdir -p dist; cp {outputs / name} dist/out.bin; sleep {build_s}; echo {name}"
        described = {"name": name, "version": "1.0.0", "dependencies": needs}
        _write(
            folder / "packages" / name / "package.json", {**described, "scripts": {"build": script}}
        )
        locked[f"packages/{name}"] = {"version": "1.0.0", "dependencies": needs}
        locked[f"node_modules/{name}"] = {"resolved": f"packages/{name}", "link": True}
    lock = {"name": "root", "lockfileVersion": 3, "requires": True, "packages": locked}
    _write(folder / "package-lock.json", lock)
    (folder / "node_modules").mkdir()
    npm = folder.with_name("bin") / "npm"
    npm.parent.mkdir(exist_ok=True)
    npm.write_text(_NPM)
    npm.chmod(0o755)
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "packages"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1))
