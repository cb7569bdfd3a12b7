"""ministack with checked permissions, on Lambda's version of Python.

It runs the functions itself, as processes, from the uploaded archives and with the keys of the role. So it has its own
environment (`.tools/emulator`, tools/emulator-requirements.txt) with Lambda's version of Python.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from local.child_processes import ChildProcesses
from local.environment import process_environment
from local.template import REGION
from tests.e2e.cloud import free_port

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".tools" / "emulator" / "bin" / "python"
KEYS = ("testing", "testing")
"""The account's root."""

_START_TIMEOUT_S = 60.0
_LOOK_PAUSE_S = 0.1


class Emulator:
    """The process, and clients of the account's root. All data is lost when it ends."""

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        """Start it, with more variables. Its data and its log are in `folder`."""
        assert PYTHON.is_file(), "the emulator is not installed: `make deployed` installs it"
        folder.mkdir()
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "ministack.log"
        self._children = ChildProcesses()
        self._clients: dict[str, Any] = {}
        with self.log.open("wb") as output:
            self._process = self._children.run(
                [str(PYTHON), "-m", "tests.rehearsal.server"],
                environ=process_environment(
                    {
                        **self.variables,
                        "AUTH": "true",
                        "BIND_HOST": "127.0.0.1",
                        "GATEWAY_PORT": self.url.rpartition(":")[2],
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

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                httpx.get(f"{self.url}/_ministack/health", timeout=2, trust_env=False)
                return
            time.sleep(_LOOK_PAUSE_S)
        raise RuntimeError(f"ministack did not start: {self.log.read_text()[-2_000:]}")

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

    def stop(self) -> None:
        self._children.kill_all()
