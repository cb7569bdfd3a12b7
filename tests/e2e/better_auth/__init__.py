"""The Better Auth client of JavaScript, as npm has it, in a process of its own that Python calls."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import node

HERE = Path(__file__).parent
SCRIPTS = (HERE / "call.mjs", HERE / "page.mjs")
PACKAGES = {"newest": HERE, "1.3.34": HERE / "1.3.34"}
"""Releases of the client: the newest, and the one that specifications 2 and 3 describe."""
NEWEST_IN_CI = ["newest", pytest.param("1.3.34", marks=pytest.mark.thorough)]
"""The releases of most tests. One test of each file has both in CI, too."""
KEY_PLUGINS = {"newest": "@better-auth/api-key/client", "1.3.34": "better-auth/client/plugins"}
"""Where each release has its API key plugin."""
STORE_SECONDS = 60


def installed(tools: Path, release: str = "newest") -> Path:
    """The folder with a release of the client, as its package-lock.json names it."""
    return node.installed(PACKAGES[release], SCRIPTS, tools, "--ignore-scripts")


@contextlib.contextmanager
def client(folder: Path, url: str, headers: Mapping[str, str], release: str = "newest") -> Iterator[Client]:
    """A client of the server at `url` with these headers, and the Origin of a page, which Node's fetch leaves out."""
    with node.script(folder, "call.mjs") as script:
        script.send({**_where(url, headers), "keyPlugin": KEY_PLUGINS[release]})
        yield Client(script)


@contextlib.contextmanager
def page(folder: Path, url: str) -> Iterator[Page]:
    """A client as on a page of the server at `url`, in a browser of its own that holds no cookie yet."""
    with node.script(folder, "page.mjs") as script:
        script.send(_where(url, {}))
        yield Page(script)


def _where(url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"baseURL": url, "headers": {"origin": url, **headers}}


class Client:
    def __init__(self, script: node.Script) -> None:
        self._script = script

    def __call__(self, method: str, **argument: Any) -> dict[str, Any]:
        """`{"data", "error"}`, as the client gives it to a page; `error` has the reply's code and status."""
        self._script.send({"method": method, "argument": argument})
        line = self._script.answer()
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

    def open(self, url: str) -> str:
        """Open an address as the browser does, and return the one that its redirects lead to."""
        return str(self.data("browser.open", url=url))

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
