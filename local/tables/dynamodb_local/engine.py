"""DynamoDB Local as a separate process, and requests to it.

It accepts any signature and listens on every address of the machine, and no option changes that. But it keeps separate
tables for each access key id. So the id in these requests is a secret that no client knows, and a client that bypasses
the front finds no tables.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from local.child_processes import ChildProcesses
from local.environment import process_environment
from local.tables.dynamodb_local.installation import Installation
from local.tables.front import Reply
from local.template import REGION

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5.0
_REPLY_TIMEOUT_S = 30.0
_LOOK_PAUSE_S = 0.05
_KEEP_IDLE_S = 5.0
"""The engine closes connections that are idle for 30 s. A request at that moment would be lost."""

_KEPT_HEADERS = ("content-type", "x-amzn-requestid", "x-amz-crc32")

# A small heap and the simplest collector and compiler halve the start time, and are enough for one team.
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# Java cannot end with its parent by itself. So the shell starts a child that waits for the end of its input, as in
# local/child_processes.py, and then becomes Java itself: `$$` is the same process id for both.
_JAVA_THAT_ENDS_WITH_PARENT = (
    'exec 3<&0; (cat <&3 >/dev/null; kill -9 $$ 2>/dev/null) & exec "$@" 3<&- </dev/null'
)


class EngineFailed(Exception):
    """The engine does not start, or has ended."""


class Engine:
    """The process. Its methods may be called by many threads at once."""

    def __init__(
        self,
        installation: Installation,
        access_key_id: str,
        *,
        folder: Path | None,
        output: int,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start it with the tables in `folder`, or in memory. Its output goes to the descriptor `output`.

        `descriptors` stay open as long as it runs.
        """
        self._port = _free_port()
        self._headers = {
            "authorization": "AWS4-HMAC-SHA256 "
            f"Credential={access_key_id}/20000101/{REGION}/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=0",
            "content-type": "application/x-amz-json-1.0",
        }
        self._local = _Connection()
        self._children = ChildProcesses()
        self._process = self._children.run(
            [
                *("/bin/sh", "-c", _JAVA_THAT_ENDS_WITH_PARENT, "sh"),
                *(str(installation.java), *_JAVA_OPTIONS),
                f"-Djava.library.path={installation.jar.parent / 'DynamoDBLocal_lib'}",
                *("-jar", str(installation.jar), "-port", str(self._port)),
                *(["-inMemory"] if folder is None else ["-dbPath", str(folder)]),
                # Without these it would send telemetry to AWS and allow any web page to call it.
                *("-disableTelemetry", "-cors", "localhost"),
            ],
            environ=process_environment({}),
            folder=installation.jar.parent,
            output=output,
            descriptors=descriptors,
        )

    @property
    def port(self) -> int:
        return self._port

    def wait_until_ready(self) -> None:
        """Returns when it responds. Raises EngineFailed."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self.ended():
            try:
                self.call("ListTables", b"{}")
            except (OSError, http.client.HTTPException):
                if time.monotonic() > deadline:
                    break
                time.sleep(_LOOK_PAUSE_S)
            else:
                return
        raise EngineFailed("DynamoDB Local does not start")

    def call(self, action: str, body: bytes) -> Reply:
        """Send a request. Raises OSError or HTTPException without a reply: the engine may have run it or not."""
        connection = self._local.connection(self._port)
        headers = {**self._headers, "x-amz-target": f"DynamoDB_20120810.{action}"}
        try:
            connection.request("POST", "/", body, headers)
            reply = connection.getresponse()
            kept = {name: value for name in _KEPT_HEADERS if (value := reply.headers.get(name))}
            return reply.status, kept, reply.read()
        except (OSError, http.client.HTTPException):
            self._local.drop()
            raise

    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        self._local.drop()
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # Every acknowledged write is in its file.
            self._children.kill_all()


class _Connection(threading.local):
    """One connection per thread."""

    def __init__(self) -> None:
        self._open: http.client.HTTPConnection | None = None
        self._last_used = 0.0

    def connection(self, port: int) -> http.client.HTTPConnection:
        now = time.monotonic()
        if self._open is not None and now - self._last_used > _KEEP_IDLE_S:
            self.drop()
        if self._open is None:
            self._open = http.client.HTTPConnection("127.0.0.1", port, timeout=_REPLY_TIMEOUT_S)
            self._open.connect()
            # Head and body are separate packets. Nagle's algorithm would delay the body by 40 ms a request.
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_used = now
        return self._open

    def drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
