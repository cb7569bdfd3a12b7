"""S3 and DynamoDB as child processes, on sockets that the parent holds. They restart when they end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from local.child_processes import ChildProcesses
from local.request_log import RequestLog

_LOOK_PAUSE_S = 0.2
_MAX_RESTARTS = 3
_RESTART_WINDOW_S = 30.0
_READY_TIMEOUT_S = 120.0


class ServiceFailed(Exception):
    """A service does not start, or keeps ending. The message names it and its log."""


@dataclass(frozen=True, slots=True)
class Service:
    """How to start a service. `listener` stays open in the parent, so that clients wait during a restart."""

    name: str
    module: str
    arguments: list[str]
    listener: socket.socket
    descriptors: list[int]
    log: Path

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


class RunningService:
    """A service and its process."""

    def __init__(
        self, service: Service, children: ChildProcesses, environ: dict[str, str], log: RequestLog
    ) -> None:
        self._service = service
        self._children = children
        self._environ = environ
        self._log = log
        self._stopping = False
        self._process = self._start()

    async def wait_until_ready(self) -> None:
        """Returns when the service responds. Raises ServiceFailed if it ends first."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for pause_s in itertools.chain([0.05] * 20, itertools.repeat(0.2)):
            if await _answers(self._service.port):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceFailed(self._failure("does not start"))
            await asyncio.sleep(pause_s)

    async def keep_running(self) -> None:
        """Restart the service when it ends. Raises ServiceFailed if that happens repeatedly."""
        ends: list[float] = []
        while True:
            await asyncio.sleep(_LOOK_PAUSE_S)
            status = self._process.poll()
            if status is None or self._stopping:
                continue
            now = time.monotonic()
            ends = [end for end in ends if end > now - _RESTART_WINDOW_S] + [now]
            if len(ends) > _MAX_RESTARTS:
                raise ServiceFailed(self._failure("keeps ending"))
            self._log.note(f"{self._service.name} ended (exit status {status}) and is restarted")
            self._process = self._start()

    async def stop(self, timeout_s: float) -> None:
        """Ask the service to save and end. Kill it if that takes too long."""
        self._stopping = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        # A process is no event to wait for.
        while self._process.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if self._process.poll() is None:
            self._log.note(f"{self._service.name} did not stop in time and is killed")
            self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        service = self._service
        return self._children.start(
            service.module,
            ["--socket", str(service.listener.fileno()), *service.arguments],
            environ=self._environ,
            descriptors=[service.listener.fileno(), *service.descriptors],
            log=service.log,
        )

    def _failure(self, what: str) -> str:
        lines = self._service.log.read_text(errors="replace").splitlines() or ["its log is empty"]
        return f"{self._service.name} {what}: {lines[-1]} (see {self._service.log})"


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return bool(await asyncio.wait_for(reader.read(1), 2.0))
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
