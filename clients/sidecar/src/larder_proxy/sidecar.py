"""The sidecar of one command or one user: its parts, its start and its end."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress

from larder_proxy.connections import LIMITS, Limits, Pool
from larder_proxy.credentials import Credentials, NoCredential, Target, read_target
from larder_proxy.listener import Listener
from larder_proxy.messages import GZIP
from larder_proxy.output import print_line
from larder_proxy.places import in_background, open_files
from larder_proxy.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from larder_proxy.lists import LastRun
    from larder_proxy.spool import Spool

CI = {
    "GITHUB_ACTIONS": "GITHUB_ACTIONS",
    "GITLAB_CI": "GITLAB",
    "CIRCLECI": "CIRCLE",
    "BUILDKITE": "BUILDKITE",
    "BITBUCKET_BUILD_NUMBER": "BITBUCKET",
    "TF_BUILD": "AZURE_PIPELINES",
    "JENKINS_URL": "JENKINS",
}
"""Variables of a CI, and turbo's names for it."""


class Sidecar:
    """Answers what comes to a listener."""

    def __init__(
        self,
        environment: Mapping[str, str],
        settings: Settings,
        listener: Listener,
        *,
        id_token_command: str | None = None,
        say: Callable[[str], None] | None = None,
        spool: Spool | None = None,
        limits: Limits = LIMITS,
        on_turbo: Callable[[], None] | None = None,
    ) -> None:
        """Without an address that may have the token, all lookups are misses.

        `on_turbo` is done in the background when turbo asks for the status, which it does before its tasks.
        """
        refusal = ""
        try:
            target = read_target(settings)
        except NoCredential as error:
            target, refusal = Target(""), str(error)
        self.target = target
        self.listener = listener
        self._pool = Pool(environment, limits)
        if target.url:
            in_background(lambda: self._connect(target.url))
        # Loading them takes as long as the handshake.
        from larder_proxy.cache import Cache
        from larder_proxy.server import Server
        from larder_proxy.spool import Spool
        from larder_proxy.upstream import Upstream

        self._credentials = Credentials(
            target,
            environment,
            self._pool,
            stored=settings.text("token") or "",
            id_token_command=id_token_command,
        )
        ci = next((name for variable, name in CI.items() if environment.get(variable)), "")
        most = open_files() // 3
        self._upstream = Upstream(
            target, self._credentials, self._pool, say=say or print_line, ci=ci, most=most
        )
        if refusal:
            self._upstream.turn_off(refusal)
        self._spool = spool or Spool()
        self.cache = Cache(self._upstream, self._spool)
        self._server = Server(listener, self.cache, self._spool, team=target.query, most=most)
        self._server.on_turbo = on_turbo
        threading.Thread(target=self._server.serve, daemon=True).start()
        self._last_run: LastRun | None = None

    def _connect(self, url: str) -> None:
        with suppress(OSError, ValueError):
            self._pool.connect(url)

    def expect(self, build: list[str], environment: Mapping[str, str], folder: str) -> None:
        """Fetch what turbo is about to ask for, if that is known."""
        if not self.target.url:
            return
        from larder_proxy.lists import LastRun, dry_run, listed, may_have_own_artifacts

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
            run["usedCache"] = self._server.was_asked or not _missed(run)
            for task in run["tasks"]:
                # moon reports how long a restore took, not the task.
                if task["hash"] in self.cache.saved_ms:
                    task["cache"]["timeSaved"] = self.cache.saved_ms[task["hash"]]
            self.cache.post_behind("/v1/runs", _packed(run))

    def close(self, seconds: float) -> bool:
        """Wait for uploads, and revoke the token of a job. False if uploads were lost."""
        is_done = self.cache.finish(seconds)
        self._server.stop()
        self._credentials.revoke()
        self._pool.close()
        self._spool.close()
        return is_done


def _missed(run: dict[str, Any]) -> bool:
    """Whether a task was built that a cache could have had, as far as the report says which ones are cached."""
    tasks, inputs = run["tasks"], run.get("inputs")
    cached = [True] * len(tasks)
    if inputs:
        cached = [inputs["definitions"][one["definition"]]["cache"] for one in inputs["tasks"]]
    return any(
        is_cached and task["cache"].get("status") == "MISS" and task.get("execution")
        for is_cached, task in zip(cached, tasks)
    )


def _packed(run: dict[str, Any]) -> bytes:
    """A report with gzip. One of 300 tasks has 70 kB, for which a connection needs three round trips."""
    packer = zlib.compressobj(wbits=GZIP)
    return packer.compress(json.dumps(run).encode()) + packer.flush()
