"""ministack as a process that checks permissions, and requests to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.config import Config
from urllib3.exceptions import HTTPError

from local.child_processes import ChildProcesses
from local.environment import process_environment
from local.template import REGION
from tests.e2e.cloud import free_port

ROOT = Path(__file__).resolve().parents[2]
LAMBDAS_PYTHON = ROOT / ".tools" / "emulator" / "bin" / "python"
"""It has Lambda's version, because the emulator runs deployed functions with its own Python."""
KEYS = ("testing", "testing")
"""The account's root."""

_START_TIMEOUT_S = 60.0
_LOOK_PAUSE_S = 0.05


@dataclass
class Emulator:
    """A running emulator. `ask` is safe to call from many threads."""

    url: str
    log: Path
    _clients: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pool = urllib3.connection_from_url(self.url, maxsize=20)

    @property
    def variables(self) -> dict[str, str]:
        """The variables with which SAM, the operator's command and the functions call only the emulator."""
        return {
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            # The functions also sign URLs of the bucket in path style with it.
            "AWS_ENDPOINT_URL_S3": self.url,
            "NO_PROXY": "*",
            "no_proxy": "*",
        }

    def client(self, service: str) -> Any:
        """A client with the root's keys. It does not retry."""
        if service not in self._clients:
            self._clients[service] = boto3.session.Session(*KEYS, region_name=REGION).client(  # type: ignore[call-overload]
                service,
                endpoint_url=self.url,
                config=Config(
                    read_timeout=300,
                    max_pool_connections=50,
                    retries={"total_max_attempts": 1},
                    s3={"addressing_style": "path"},
                ),
            )
        return self._clients[service]

    def ask(
        self, method: str, url: str, *, body: Any = None, headers: Mapping[str, Any] | None = None
    ) -> urllib3.BaseHTTPResponse:
        """Send a request for a host of Amazon's to the emulator, unchanged. The body of the reply is not read yet."""
        address = urlsplit(url)
        target = address.path or "/"
        return self._pool.urlopen(
            method,
            f"{target}?{address.query}" if address.query else target,
            body=body,
            headers={**(headers or {}), "Host": address.netloc},
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )


@contextmanager
def emulator(
    folder: Path, environ: Mapping[str, str] | None = None, *, python: Path = LAMBDAS_PYTHON
) -> Iterator[Emulator]:
    """A context with a ready emulator, started with these variables too. Its data and its log are in the new `folder`.

    Raises RuntimeError if it does not start.
    """
    assert python.is_file(), "the emulator is not installed: `make deployed` installs it"
    folder.mkdir()
    port, children = free_port(), ChildProcesses()
    started = Emulator(f"http://127.0.0.1:{port}", folder / "ministack.log")
    with started.log.open("wb") as output:
        process = children.run(
            [str(python), "-m", "tests.emulator.server"],
            environ=process_environment(
                {
                    **started.variables,
                    "AUTH": "true",
                    "BIND_HOST": "127.0.0.1",
                    "GATEWAY_PORT": str(port),
                    "HOME": str(folder),
                    "IOT_MTLS_ENABLED": "0",
                    "LOG_LEVEL": "WARNING",
                    "MINISTACK_REGION": REGION,
                    "PYTHONPATH": "",
                    "SFTP_ENABLED": "0",
                    "TMPDIR": str(folder),
                    **(environ or {}),
                }
            ),
            folder=ROOT,
            output=output.fileno(),
        )
    try:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _responds(started):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ministack did not start: {started.log.read_text()[-2_000:]}")
            time.sleep(_LOOK_PAUSE_S)
        yield started
    finally:
        started._pool.close()
        children.kill_all()


def _responds(started: Emulator) -> bool:
    with suppress(HTTPError):
        started._pool.request("GET", "/_ministack/health", retries=False, timeout=2)
        return True
    return False
