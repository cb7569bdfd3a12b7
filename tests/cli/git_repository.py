"""A repository of turbo in git, and summaries of runs in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.larder.why.summaries import document, task_record

LIB = task_record("lib#build", "l1")
UI = task_record("ui#build", "u1", "lib#build")


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """A repository in git with turbo.json, in which the command runs."""

    root: Path

    def write(self, name: str, content: bytes | str | dict[str, Any]) -> str:
        """Write a file and return its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def git(self, *arguments: str) -> str:
        author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        command = ["git", *author, "-c", "core.autocrlf=false", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self) -> str:
        """Commit everything, and return its id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Change")
        return self.git("rev-parse", "HEAD")

    def run(self, name: str, hash: str, sha: str | None = None, **contents: bytes) -> str:
        """Write a summary with one task of lib, whose inputs have these contents: `a` is `src/a.js`."""
        inputs = {f"src/{one}.js": blob(content) for one, content in contents.items()}
        task = LIB | {"hash": hash, "inputs": inputs}
        scm = {"sha": sha or self.git("rev-parse", "HEAD"), "branch": "main"}
        return self.write(f".turbo/runs/{name}.json", document(task, scm=scm))


def fresh(tmp_path: Path, own_environment: pytest.MonkeyPatch) -> Repository:
    """Work in a new one, without variables of turbo and git."""
    for name in [name for name in os.environ if name.startswith(("TURBO_", "GIT_"))]:
        own_environment.delenv(name)
    own_environment.setenv("HOME", str(tmp_path))
    made = Repository(tmp_path / "web")
    made.write("turbo.json", {"tasks": {}})
    made.write(".gitignore", ".turbo/\ngenerated/\n")
    made.write("packages/lib/src/a.js", "one\n")
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit()
    own_environment.chdir(made.root)
    return made
