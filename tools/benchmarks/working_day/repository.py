"""The monorepo of the day: a bare repository, and checkouts of it on laptops and in CI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.e2e import node, turbo
from tools.benchmarks.working_day.plan import Package

BUILD = """mkdir -p dist
cat src/*.js > dist/index.js
for dependency in {dependencies}; do cksum < ../$dependency/dist/index.js >> dist/index.js; done
"""
NPM = """#!/bin/sh
exec sh build.sh
"""
"""Replaces `npm run build` in the builds: npm itself takes longer to start than everything else in a task."""

_AUTHOR = ("-c", "user.name=Sample", "-c", "user.email=sample@example.com")


def create(folder: Path, packages: Sequence[Package], home: Path) -> Path:
    """Create the bare repository with the monorepo on main. Returns its folder."""
    root = folder / "first"
    root.mkdir()
    _write_json(
        root / "package.json",
        {
            "name": "sample-monorepo",
            "private": True,
            "packageManager": f"npm@{node.npm('--version').strip()}",
            "workspaces": ["packages/*"],
        },
    )
    _write_json(root / "turbo.json", turbo.turbo_json(turbo.NEWEST))
    (root / ".gitignore").write_text("node_modules/\ndist/\n.turbo/\n")
    for package in packages:
        path = root / "packages" / package.name
        (path / "src").mkdir(parents=True)
        _write_json(
            path / "package.json",
            {
                "name": f"@sample/{package.name}",
                "version": "1.0.0",
                "scripts": {"build": "sh build.sh"},
                "dependencies": {f"@sample/{name}": "*" for name in package.dependencies},
            },
        )
        names = " ".join(package.dependencies)
        (path / "build.sh").write_text(BUILD.format(dependencies=names))
        (path / "src" / "index.js").write_text(f'export const name = "{package.name}";\n')
    # Only the lock file: nothing is installed, because the builds need nothing.
    node.npm("install", "--prefix", str(root), "--package-lock-only", "--offline", "--no-audit")
    origin = folder / "origin.git"
    first = Checkout(root, home)
    first.git("init", "--quiet", "--initial-branch=main")
    first.commit("First")
    first.git("clone", "--quiet", "--bare", str(root), str(origin))
    return origin


def fake_npm(folder: Path) -> Path:
    """A folder for `PATH` with `npm`."""
    folder.mkdir()
    command = folder / "npm"
    command.write_text(NPM)
    command.chmod(0o755)
    return folder


class Checkout:
    """A clone on a laptop or in CI."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self._home = home

    @classmethod
    def clone(cls, origin: Path, root: Path, home: Path) -> Checkout:
        root.mkdir(parents=True)
        made = cls(root, home)
        made.git("clone", "--quiet", str(origin), ".")
        return made

    def pull(self) -> None:
        self.git("checkout", "--quiet", "main")
        self.git("pull", "--quiet", "--ff-only")

    def branch(self, name: str) -> None:
        self.pull()
        self.git("checkout", "--quiet", "-b", name)

    def edit(self, package: str, change: int, text: str) -> None:
        """Change a file that only this change has, so that no merge has a conflict."""
        source = self.root / "packages" / package / "src" / f"change-{change}.js"
        source.write_text(f"// {text}\n")
        self.commit(text)

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git(*_AUTHOR, "commit", "--quiet", f"--message={message}")

    def merge(self, branch: str) -> None:
        self.git("fetch", "--quiet", "origin")
        self.git(*_AUTHOR, "merge", "--quiet", "--no-edit", "--no-ff", f"origin/{branch}")

    def push(self, branch: str) -> None:
        self.git("push", "--quiet", "origin", branch)

    def restart_at_main(self) -> None:
        """What the checkout step of a job leaves: main, and nothing that an earlier job has built."""
        self.git("fetch", "--quiet", "origin")
        self.git("checkout", "--quiet", "--detach", "origin/main")
        self.git("clean", "--quiet", "-xffd")

    def git(self, *arguments: str) -> None:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={"PATH": os.environ["PATH"], "HOME": str(self._home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"git {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")

    def delete(self) -> None:
        shutil.rmtree(self.root)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
