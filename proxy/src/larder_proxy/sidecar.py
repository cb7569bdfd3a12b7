"""The sidecar of one command or one user: its parts, its start and its end."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import zlib
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Callable

from larder_proxy import turbo
from larder_proxy.cache import GZIP, Cache
from larder_proxy.clients import CLIENTS
from larder_proxy.connections import LIMITS, Limits, Pool
from larder_proxy.credentials import Credentials, Target, read_target
from larder_proxy.lists import LastRun, dry_run, listed, may_have_own_artifacts
from larder_proxy.server import HOST, Server
from larder_proxy.spool import Spool
from larder_proxy.upstream import Upstream

_CI = {"GITHUB_ACTIONS": "GITHUB_ACTIONS", "GITLAB_CI": "GITLAB", "CIRCLECI": "CIRCLE"}
"""Variables of a CI, and turbo's names for it."""


class Sidecar:
    """Listens from its creation on. Raises NoCredential without an address of Larder, OSError if the port is in use."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        *,
        port: int = 0,
        token: str | None = None,
        id_token_command: str | None = None,
        say: Callable[[str], None] | None = None,
        spool: Spool | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.target: Target = read_target(environment, folder)
        self.token = token or os.urandom(16).hex()
        self._pool = Pool(environment, limits)
        self._credentials = Credentials(
            self.target, environment, self._pool, id_token_command=id_token_command
        )
        ci = next((name for variable, name in _CI.items() if environment.get(variable)), "")
        self._upstream = Upstream(
            self.target, self._credentials, self._pool, say=say or print_line, ci=ci
        )
        spool = spool or Spool()
        self.cache = Cache(self._upstream, spool)
        self._server = Server(port, self.token, self.cache, spool, team=self.target.query)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        self._last_run: LastRun | None = None

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def variables(self) -> dict[str, str]:
        """What makes the tools use the sidecar, unless the user has set it."""
        return variables_for(self.port, self.token)

    def turbo_variables(self) -> dict[str, str]:
        """What replaces the variables of turbo, which are also those of the sidecar."""
        return turbo.variables(self.url, self.token)

    def expect(self, build: list[str], environment: Mapping[str, str], folder: Path) -> None:
        """Fetch what turbo is about to ask for, if that is known."""
        self._last_run = LastRun(environment, self.target, folder, build)
        hashes, most = self._last_run.read()
        command = None if hashes else dry_run(build, environment, folder)
        if hashes or command is not None:
            self.cache.ask_status()
        if hashes:
            self._upstream.places.expect(most)
            if may_have_own_artifacts(build, environment, folder):
                self.cache.prefetch.expect_if_asked(hashes)
            else:
                self.cache.prefetch.expect(hashes)
        elif command is not None:
            self.cache.prefetch.prepare()
            threading.Thread(
                target=lambda: self.cache.prefetch.expect(listed(command, environment, folder)),
                daemon=True,
            ).start()

    def report(self, runs: list[dict[str, Any]]) -> None:
        """Report runs of tasks, which Larder shows by package and task, and keep the hashes of turbo for the next."""
        hashes = [one["hash"] for run in runs if "turboVersion" in run for one in run["tasks"]]
        if self._last_run is not None and (hashes or self.cache.asked):
            most = self._upstream.places.most
            self._last_run.write([*self.cache.asked, *hashes], most)
        for run in runs:
            for task in run["tasks"]:
                # moon reports how long a restore took, not the task.
                if task["hash"] in self.cache.saved_ms:
                    task["cache"]["timeSaved"] = self.cache.saved_ms[task["hash"]]
            self.cache.post_behind("/v1/runs", _packed(run))

    def close(self, seconds: float) -> bool:
        """Wait for uploads, and revoke the token of a job. False if uploads were lost."""
        is_done = self.cache.finish(seconds)
        self._server.shutdown()
        self._server.server_close()
        self._credentials.revoke()
        self._pool.close()
        return is_done


def _packed(run: dict[str, Any]) -> bytes:
    """A report with gzip. One of 300 tasks has 70 kB, for which a connection needs three round trips."""
    packer = zlib.compressobj(wbits=GZIP)
    return packer.compress(json.dumps(run).encode()) + packer.flush()


def variables_for(port: int, token: str) -> dict[str, str]:
    known = {
        "url": f"http://{HOST}:{port}",
        "host": HOST,
        "port": str(port),
        "token": token,
        "free_port": str(_free_port()),
    }
    found = {
        "LARDER_PROXY": known["url"],
        "LARDER_PROXY_TOKEN": token,
        # turbo then describes its runs, which are reported.
        "TURBO_RUN_SUMMARY": "true",
    }
    for client in CLIENTS:
        found.update({name: value.format(**known) for name, value in client.variables.items()})
    return found


def print_line(line: str) -> None:
    shown = "".join(char if char.isprintable() else "?" for char in line)
    # A terminal that was closed takes no line.
    with suppress(OSError):
        print(f"Larder: {shown}", file=sys.stderr, flush=True)


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])
