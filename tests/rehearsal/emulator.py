"""ministack as a process that checks permissions, and the redirection of all requests to it.

Clients sign their requests for Amazon's own addresses. The requests go to the emulator unchanged, and it checks each
signature for these addresses. The access key `ROOT` is that of the account's root.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from urllib3.exceptions import HTTPError

from local.child_processes import ChildProcesses
from local.environment import process_environment
from tests.e2e.cloud import free_port
from tests.rehearsal.aws_behaviour import ANY_TIME
from tests.rehearsal.roles import REGION

ROOT = ("testing", "testing")

_START_TIMEOUT_S = 60.0
_LOOK_PAUSE_S = 0.05


class Emulator:
    """The process. `send` is safe to call from many threads."""

    def __init__(self, folder: Path) -> None:
        """Start it. Its output goes to a file in `folder`."""
        self._port = free_port()
        self._log = folder / "ministack.log"
        self._children = ChildProcesses()
        self._process = self._children.start(
            "tests.rehearsal.server",
            [],
            environ=process_environment(
                {
                    ANY_TIME: "true",
                    "AUTH": "true",
                    "AWS_ACCESS_KEY_ID": ROOT[0],
                    "AWS_SECRET_ACCESS_KEY": ROOT[1],
                    "BIND_HOST": "127.0.0.1",
                    "GATEWAY_PORT": str(self._port),
                    "IOT_MTLS_ENABLED": "0",
                    "LOG_LEVEL": "WARNING",
                    "MINISTACK_REGION": REGION,
                    "SFTP_ENABLED": "0",
                    "TMPDIR": str(folder),
                }
            ),
            descriptors=[],
            log=self._log,
        )
        self._pool = urllib3.HTTPConnectionPool("127.0.0.1", self._port, maxsize=20)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(HTTPError):
                self._pool.request("GET", "/_ministack/health", retries=False, timeout=2)
                return
            time.sleep(_LOOK_PAUSE_S)
        raise RuntimeError(f"ministack did not start: {self._log.read_text()[-2_000:]}")

    def stop(self) -> None:
        self._pool.close()
        self._children.kill_all()

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """Send a request that was made for Amazon, and return the reply."""
        headers = dict(request.headers.items())
        # Headers and body are sent together, without waiting for a 100.
        headers.pop("Expect", None)
        reply: Any = self.ask(request.method, request.url, body=request.body, headers=headers)
        return AWSResponse(request.url, reply.status, reply.headers, reply)

    def ask(
        self, method: str, url: str, *, body: Any, headers: dict[str, Any]
    ) -> urllib3.BaseHTTPResponse:
        """Send any HTTP request to the host of `url`. The body of the reply is not read yet."""
        address = urlsplit(url)
        target = address.path or "/"
        return self._pool.urlopen(
            method,
            f"{target}?{address.query}" if address.query else target,
            body=body,
            headers={**headers, "Host": address.netloc},
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
