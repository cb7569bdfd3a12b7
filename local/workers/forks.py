"""The parent's side of the fork server: start a worker, end one, and replace a fork server that has ended."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from local.child_processes import ChildProcesses
from local.workers.fork_server import NUMBER, START
from local.workers.messages import Gone

_STOP_TIMEOUT_S = 1.0
_KILLED = -9


class ForkServers:
    """The current fork server. `arguments` are those of a worker."""

    def __init__(
        self, children: ChildProcesses, arguments: list[str], environ: dict[str, str], log: Path
    ) -> None:
        self._children = children
        self._arguments = arguments
        self._environ = environ
        self._log = log
        self._current: _ForkServer | None = None

    async def start(self, connection: socket.socket) -> ForkedProcess:
        """A new worker that serves events on `connection`, which is closed here. Raises Gone."""
        if self._current is None:
            self._current = self._start_server()
        elif self._current.process.poll() is not None:
            self._current.stop()
            self._current = self._start_server()
        return await asyncio.to_thread(self._current.fork, connection)

    async def stop(self) -> None:
        """End the fork server and all workers."""
        if self._current:
            await asyncio.to_thread(self._current.stop)

    def _start_server(self) -> _ForkServer:
        parent_end, child_end = socket.socketpair()
        with child_end:
            process = self._children.start(
                "local.workers.fork_server",
                ["--socket", str(child_end.fileno()), *self._arguments],
                environ=self._environ,
                descriptors=[child_end.fileno()],
                log=self._log,
            )
        return _ForkServer(process, parent_end)


@dataclass(slots=True)
class ForkedProcess:
    """A worker process."""

    _server: _ForkServer
    _pid: int
    _status: int | None = None
    _ending: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> int:
        """Kill it if it has not ended. Returns its exit status. Blocks for a moment."""
        with self._ending:
            if self._status is None:
                self._status = self._server.end(self._pid)
            return self._status


@dataclass(slots=True)
class _ForkServer:
    process: subprocess.Popen[bytes]
    _connection: socket.socket
    _is_ready: bool = False
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def fork(self, connection: socket.socket) -> ForkedProcess:
        with connection:
            return ForkedProcess(self, self._ask(START, connection))

    def end(self, pid: int) -> int:
        try:
            return self._ask(pid)
        except Gone:
            # Its workers end with it.
            return _KILLED

    def stop(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)
        if self._is_ready:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_TIMEOUT_S)
        self.process.kill()
        with self._asking:
            self._connection.close()

    def _ask(self, number: int, *attached: socket.socket) -> int:
        descriptors = [one.fileno() for one in attached]
        with self._asking:
            try:
                socket.send_fds(self._connection, [NUMBER.pack(number)], descriptors)
                answer = self._connection.recv(NUMBER.size)
            except OSError as error:
                raise Gone from error
        if not answer:
            raise Gone
        self._is_ready = True
        (result,) = NUMBER.unpack(answer)
        return int(result)
