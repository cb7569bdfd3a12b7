"""What node and npm are needed for: packages that npm installs once, and scripts that Python tells what to do."""

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
    """What npm prints; it must succeed."""
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
    """The folder `target`, which is there whole or not at all. Safe to call from several processes at once."""
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


def installed(
    source: Path, scripts: Sequence[Path], tools: Path, *options: str, seconds: float = NPM_SECONDS
) -> Path:
    """The folder in `tools` with these scripts and the packages that package-lock.json in `source` names."""
    files = [source / "package.json", source / "package-lock.json", *scripts]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]

    def fill(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        npm("ci", "--no-audit", "--no-fund", *options, folder=folder, seconds=seconds)

    return made_once(tools / digest, fill)


class Script:
    """A running script, which reads lines of JSON and prints a line for each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it prints; empty when it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def script(folder: Path, name: str) -> Iterator[Script]:
    """One that runs for the time of a `with`: it ends with its input."""
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
