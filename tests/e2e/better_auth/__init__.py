"""The Better Auth client of JavaScript, as npm has it, in a process of its own that Python calls."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = ("package.json", "package-lock.json", "call.mjs")
INSTALL_SECONDS = 180
END_SECONDS = 20


def installed(tools: Path) -> Path:
    """The folder with the client in the versions of package-lock.json. Safe to call from several processes at once."""
    tools.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:12]
    target = tools / digest
    with (tools / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = tools / f"{digest}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            for name in FILES:
                shutil.copy(HERE / name, partial)
            _install(partial)
            partial.rename(target)
    return target


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise AssertionError("The tests with the Better Auth client need node and npm on PATH.")
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        env={**os.environ, "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode != 0:
        raise AssertionError(f"npm could not install the client:\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def client(folder: Path, url: str, headers: Mapping[str, str]) -> Iterator[Client]:
    """A client of the server at `url` with these headers, and the Origin of a page, which Node's fetch leaves out."""
    process = subprocess.Popen(
        ["node", "call.mjs"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        started = Client(process)
        started.send({"baseURL": url, "headers": {"origin": url, **headers}})
        yield started
        assert process.stdin is not None
        process.stdin.close()
        process.wait(END_SECONDS)


class Client:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def __call__(self, method: str, **argument: Any) -> dict[str, Any]:
        """`{"data", "error"}`, as the client gives it to a page; `error` has the reply's code and status."""
        self.send({"method": method, "argument": argument})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the client ended at {method}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def data(self, method: str, **argument: Any) -> Any:
        answer = self(method, **argument)
        assert answer["error"] is None, answer
        return answer["data"]

    def error(self, method: str, **argument: Any) -> tuple[int, str]:
        answer = self(method, **argument)
        assert answer["error"] is not None, answer
        return answer["error"]["status"], answer["error"]["code"]
