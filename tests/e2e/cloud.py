"""A local cloud for tests: `python -m local serve` on a free port, with its own data folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import httpx

START_SECONDS = 60
STOP_SECONDS = 60
LOG_QUIET_SECONDS = 0.2
TOO_LARGE_HEADERS = {"x-large": "x" * 11_000}

_REQUEST = re.compile(r"\b(GET|HEAD|PUT|POST|OPTIONS)\s+(/\S*)\s.*?\b([1-5]\d\d)\b")
# The environment of the test run must not configure the server under test.
_FOREIGN_SETTINGS = ("LARDER_", "AWS_", "TURBO_")


SERVE = (sys.executable, "-m", "local", "serve")


def start(root: Path, data: Path, *, command: Sequence[str] = SERVE, **options: str) -> LocalCloud:
    """Start a server of the source tree `root` with the data folder `data`, and wait until it replies.

    `options` are environment variables of the server, such as `LARDER_RETENTION_DAYS="1"`.
    """
    data.mkdir(parents=True)
    cloud = _kind()(root=root, data=data, port=free_port(), options=options, command=command)
    cloud.start()
    return cloud


def _kind() -> type[LocalCloud]:
    """The stack in an emulator, which replaces the local cloud if CLOUD is `deployed`."""
    if os.environ.get("CLOUD") != "deployed":
        return LocalCloud
    # Imported here, because it needs what `make deployed` installs, and imports this module.
    from tests.deployed.cloud import DeployedCloud

    return DeployedCloud


@contextlib.contextmanager
def running(root: Path, data: Path, *, command: Sequence[str] = SERVE, **options: str) -> Iterator[LocalCloud]:
    """A context with a server. Its data is deleted at the end."""
    server = start(root, data, command=command, **options)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.data)


def run_larder(*arguments: str | Path, timeout_s: float, environment: Mapping[str, str] | None = None) -> Any:
    """Run `larder ... --json` and return its output. By default it has the caller's environment."""
    done = subprocess.run(
        [Path(sys.executable).with_name("larder"), *arguments, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


PORTS = range(20_000, 32_000)
"""Below the ports that Linux and macOS give to connections and to servers that ask for any."""


def free_port() -> int:
    """A port that no process listens on, and that the system gives to no other process in the meantime."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_running(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True)
class Request:
    """One line of the server's request log. `path` is without the query. `line` is the complete line."""

    method: str
    path: str
    status: int
    line: str


BANNER_END = b"stop: Ctrl-C"

COUNTS_AFTER_S = 2.5
"""Longer than the two seconds after which uploads count in a team that is protected now."""


@dataclass
class LocalCloud:
    """A running local cloud. `data` survives `stop`, `kill` and `restart`."""

    root: Path
    data: Path
    port: int
    options: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = SERVE
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        if self.process is not None:
            raise RuntimeError("this local cloud runs already")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_SETTINGS)}
        environment |= {"PORT": str(self.port), "DATA": str(self.data), "PYTHONUNBUFFERED": "1"}
        # As in a stack by default. Tests of the edge and of company sign-in turn them on.
        environment |= {"EDGE": "0", "PROVIDER": "0", **self.options}
        with self.log_path.open("ab") as log:
            begin = self.log_path.stat().st_size
            self.process = subprocess.Popen(
                self.command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A separate process group, so that `kill` also ends the processes that the server started.
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        # It answers before it prints the banner.
        while not (self._answers() and BANNER_END in self.log_path.read_bytes()[begin:]):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the local cloud did not start:\n{self.log_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Send SIGTERM, and wait until the server has ended."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None

    def kill(self) -> None:
        """Send SIGKILL to the server and its process group."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)
        self.process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def log_path(self) -> Path:
        return self.data.with_suffix(".log")

    @property
    def turbo_environment(self) -> dict[str, str]:
        """The lines that the server printed for turbo: TURBO_API, TURBO_TOKEN, TURBO_TEAM."""
        lines = (self.data / "turbo.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith("TURBO_"))

    @property
    def url(self) -> str:
        return self.turbo_environment["TURBO_API"]

    @property
    def token(self) -> str:
        return self.turbo_environment["TURBO_TOKEN"]

    @property
    def team(self) -> str:
        return self.turbo_environment["TURBO_TEAM"]

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_size(self) -> int:
        """A position in the log, for `requests_since`."""
        return self.log_path.stat().st_size

    def requests_since(self, mark: int = 0) -> list[Request]:
        """The requests in the log after `mark` bytes. A request is logged shortly after its reply."""
        size = -1
        while size != (size := self.log_size()):
            time.sleep(LOG_QUIET_SECONDS)
        # The lines are in order. The gateway refuses this request before it calls a function or counts it.
        last = f"/{secrets.token_hex(8)}"
        httpx.get(self.url + last, headers=TOO_LARGE_HEADERS, trust_env=False, timeout=60)
        deadline = time.monotonic() + START_SECONDS
        while last not in (text := self.log_path.read_bytes()[mark:].decode(errors="replace")):
            assert time.monotonic() < deadline, "the log does not show a request that was answered"
            time.sleep(0.05)
        return [request for request in _requests(text) if request.path != last]

    def larder(self, *arguments: str) -> Any:
        """Run the operator's command and return its output."""
        return run_larder("--local", self.data, *arguments, timeout_s=120)

    def mail(self) -> Iterator[dict[str, Any]]:
        """The messages in the outbox, newest first, as a user of this machine reads them."""
        query: dict[str, str] = {}
        while True:
            outbox = f"{self.url}/_local/outbox.json"
            page = httpx.get(outbox, params=query, trust_env=False).json()
            yield from page["messages"]
            if page["next_before"] is None:
                return
            query = {"before": page["next_before"]}

    def items(self, table_variable: str) -> list[dict[str, Any]]:
        """Every item of a table, in plain Python types."""
        return self.table(table_variable).scan(ConsistentRead=True)["Items"]

    def table(self, variable: str) -> Any:
        """The table in this environment variable of the functions."""
        environment = json.loads((self.data / "cloud.json").read_text())["environment"]
        dynamodb = boto3.resource(
            "dynamodb",
            endpoint_url=environment["AWS_ENDPOINT_URL_DYNAMODB"],
            region_name=environment.get("AWS_REGION", "us-east-1"),
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        )
        return dynamodb.Table(environment[variable])

    def _answers(self) -> bool:
        try:
            status = httpx.get(
                f"{self.url}/v8/artifacts/status",
                params={"slug": self.team},
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=5,
                trust_env=False,
            )
        except (OSError, KeyError, httpx.HTTPError):
            return False
        return status.status_code == 200


def _requests(text: str) -> Iterator[Request]:
    for line in text.splitlines():
        if found := _REQUEST.search(line):
            yield Request(found[1], found[2].split("?")[0], int(found[3]), line)
