"""The libraries of the console as one file, `make vendor-console`: Preact, its hooks and htm, bundled by esbuild.

The versions are those of tools/console/package-lock.json. Needs node and npm. What the bundle was made from, and the
bundle itself, are in its first line as digests, so that a test without node notices a change of either.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tools" / "console"
TARGET = ROOT / "layers/larder/src/larder/web/html/console/vendor.js"
LICENSES = TARGET.with_name("vendor-licenses.txt")

_PACKAGES = ("preact", "htm")
_NAMES = "html, render, useEffect, useId, useRef, useState"
"""What vendor.mjs exports, as names for the console's own files."""
_OPTIONS = (
    "--bundle",
    "--minify",
    "--format=iife",
    "--global-name=vendor",
    "--legal-comments=none",
    "--target=es2022",
    "--charset=utf8",
)


def main() -> None:
    packages = install(ROOT / ".tools" / "console")
    TARGET.write_text(bundle(packages), encoding="utf-8")
    LICENSES.write_text(licenses(packages), encoding="utf-8")


def install(folder: Path) -> Path:
    """Install the packages of the lock file, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "vendor.mjs"):
        shutil.copy(SOURCE / name, folder)
    _run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", folder=folder)
    return folder / "node_modules"


def bundle(packages: Path) -> str:
    """The text of vendor.js."""
    bundler = packages / ".bin" / "esbuild"
    code = _run(str(bundler), "vendor.mjs", *_OPTIONS, folder=packages.parent)
    body = f"{code.strip()}\nconst {{ {_NAMES} }} = vendor;\n\n"
    sources = (SOURCE / "package-lock.json", SOURCE / "vendor.mjs")
    made_from = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    named = "; ".join(_named(packages / name) for name in _PACKAGES)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f"// {named}. `make vendor-console` made it from {made_from}: {digest}\n{body}"


def licenses(packages: Path) -> str:
    return "\n".join(
        f"{name}\n\n{(packages / name / 'LICENSE').read_text(encoding='utf-8')}"
        for name in _PACKAGES
    )


def _named(package: Path) -> str:
    about = json.loads((package / "package.json").read_text(encoding="utf-8"))
    text = (package / "LICENSE").read_text(encoding="utf-8")
    (holder,) = re.findall(r"^ *Copyright (?:\(c\) )?(\d.+?)\.?$", text, re.MULTILINE)
    return f"{about['name']} {about['version']} ({about['license']}, copyright {holder})"


def _run(*command: str, folder: Path) -> str:
    environment = {**os.environ, "npm_config_update_notifier": "false"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
