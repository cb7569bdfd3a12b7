"""A small npm-workspaces monorepo: libraries, and two applications that need them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

_BUILD = Path(__file__).with_name("build.mjs")
_KILOBYTE, _MEGABYTE = 1000, 1_000_000
_NEEDS: dict[str, list[str]] = {
    "colors": [],
    "icons": [],
    "dates": [],
    "ui": ["colors", "icons"],
    "website": ["ui", "dates"],
    "admin": ["ui", "dates"],
}
# The icons are too large to pass through the API: only preflight stores them.
_OUTPUT_BYTES = {"icons": 20 * _MEGABYTE}
PACKAGES = len(_NEEDS)


def write_sample(folder: Path, seed: str) -> None:
    """Write it below `folder`. A new `seed` makes new sources, which are in no cache."""
    folder.mkdir(parents=True)
    _write_json(
        folder / "package.json",
        {
            "name": "larder-demo",
            "private": True,
            "workspaces": ["packages/*"],
            "packageManager": "npm@10.0.0",
            "devDependencies": {"turbo": "^2.11.11"},
        },
    )
    _write_json(
        folder / "turbo.json",
        {
            "remoteCache": {"preflight": True},
            "tasks": {"build": {"dependsOn": ["^build"], "outputs": ["dist/**"]}},
        },
    )
    # Files that turbo writes must not count in a package's hash.
    (folder / ".gitignore").write_text("node_modules\n.turbo\ndist\n")
    for name, needs in _NEEDS.items():
        package = folder / "packages" / name
        package.mkdir(parents=True)
        shutil.copy(_BUILD, package / "build.mjs")
        (package / "source.txt").write_text(f"{name} {seed}\n")
        _write_json(
            package / "package.json",
            {
                "name": f"@demo/{name}",
                "version": "1.0.0",
                "private": True,
                "scripts": {"build": "node build.mjs"},
                "dependencies": {f"@demo/{need}": "*" for need in needs},
                "outputBytes": _OUTPUT_BYTES.get(name, 100 * _KILOBYTE),
            },
        )


def wipe(folder: Path) -> None:
    """Delete every output and turbo's local cache, as in a fresh checkout."""
    for path in [folder / ".turbo", folder / "node_modules" / ".cache"]:
        shutil.rmtree(path, ignore_errors=True)
    for package in (folder / "packages").iterdir():
        shutil.rmtree(package / "dist", ignore_errors=True)
        shutil.rmtree(package / ".turbo", ignore_errors=True)


def outputs(folder: Path) -> dict[str, str]:
    """The digest of every output, by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("packages/*/dist/*"))
    }


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
