"""The Better Auth client of JavaScript, as npm has it, in a process of its own that Python calls."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).parent
SCRIPTS = ("call.mjs", "page.mjs")
FILES = ("package.json", "package-lock.json", *SCRIPTS)
INSTALL_SECONDS = 180
END_SECONDS = 20
STORE_SECONDS = 10


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


C = TypeVar("C", bound="Client")


@contextlib.contextmanager
def client(folder: Path, url: str, headers: Mapping[str, str]) -> Iterator[Client]:
    """A client of the server at `url` with these headers, and the Origin of a page, which Node's fetch leaves out."""
    with _running(folder, "call.mjs") as process:
        yield _told_where(Client(process), url, headers)


@contextlib.contextmanager
def page(folder: Path, url: str) -> Iterator[Page]:
    """A client as on a page of the server at `url`, in a browser of its own that holds no cookie yet."""
    with _running(folder, "page.mjs") as process:
        yield _told_where(Page(process), url, {})


def _told_where(started: C, url: str, headers: Mapping[str, str]) -> C:
    started.send({"baseURL": url, "headers": {"origin": url, **headers}})
    return started


@contextlib.contextmanager
def _running(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["node", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
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
        answer: dict[str, Any] = json.loads(line, object_hook=_dated)
        return answer

    def data(self, method: str, **argument: Any) -> Any:
        answer = self(method, **argument)
        assert answer["error"] is None, answer
        return answer["data"]

    def error(self, method: str, **argument: Any) -> tuple[int, str]:
        answer = self(method, **argument)
        assert answer["error"] is not None, answer
        return answer["error"]["status"], answer["error"]["code"]


class Page(Client):
    """What a page sees: dates are datetimes, and there are cookies, an address and the session's store."""

    @property
    def cookies(self) -> dict[str, dict[str, Any]]:
        """`{"value", "maxAge"}` by name; a `maxAge` of None ends with the browser."""
        cookies: dict[str, dict[str, Any]] = self.data("browser.state")["cookies"]
        return cookies

    @property
    def address(self) -> str:
        """Where the client has moved the page to."""
        return str(self.data("browser.state")["address"])

    def restart_browser(self) -> None:
        self.data("browser.restart")

    def store_when(self, is_there: Callable[[Any], bool]) -> dict[str, Any]:
        """The session's store once its data is so. It follows what the client does a moment later."""
        deadline = time.monotonic() + STORE_SECONDS
        while True:
            store: dict[str, Any] = self.data("browser.state")["store"]
            settled = not (store["isPending"] or store["isRefetching"])
            if settled and is_there(store["data"]):
                return store
            assert time.monotonic() < deadline, f"the store stays at {store}"
            time.sleep(0.02)


def _dated(record: dict[str, Any]) -> Any:
    return datetime.fromisoformat(record["$date"]) if record.keys() == {"$date"} else record
