"""Packages that npm installs once, and node scripts that Python controls."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

NPM_SECONDS = 180
END_SECONDS = 20


def npm(*arguments: str, folder: Path | None = None, seconds: float = NPM_SECONDS) -> str:
    """Run npm, which must succeed, and return its output."""
    command = shutil.which("npm")
    if command is None:
        raise RuntimeError("node and npm must be on PATH")
    done = subprocess.run(
        [command, *arguments],
        cwd=folder,
        env={**os.environ, "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def made_once(target: Path, fill: Callable[[Path], object]) -> Path:
    """Create the folder `target`, completely or not at all. Safe to call from several processes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = target.with_name(f"{target.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            fill(partial)
            partial.rename(target)
    return target


def installed(source: Path, scripts: Sequence[Path], tools: Path, *options: str, seconds: float = NPM_SECONDS) -> Path:
    """The folder in `tools` with these scripts and the packages of package-lock.json in `source`."""
    files = [source / "package.json", source / "package-lock.json", *scripts]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]

    def fill(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        npm("ci", "--no-audit", "--no-fund", *options, folder=folder, seconds=seconds)

    return made_once(tools / digest, fill)


class Script:
    """A running script that reads lines of JSON and prints a line for each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it prints. Empty after its end."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def script(folder: Path, name: str) -> Iterator[Script]:
    """A context with a running script. The script ends with its input."""
    process = subprocess.Popen(
        ["node", name],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Script(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(END_SECONDS)
