"""One environment: a process that serves one function, one event at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from local.child_processes import ChildProcesses
from local.function_log import logged_errors
from local.function_pool import FunctionFailed
from local.lambda_runtime.api import RuntimeApi
from local.lambda_runtime.memory import held_to_memory, peak_mb
from local.template import Function

_INIT_TIMEOUT_S = 10.0
"""Lambda's own limit for the initialization."""
_END_TIMEOUT_S = 2.0
_READ_BYTES = 2**16
_LONGEST_LINE_BYTES = 2**18


class Environment:
    """The process, its Runtime API, and its output. Made by `start_environment`."""

    def __init__(
        self, function: Function, api: RuntimeApi, log: Path, report: Callable[[str], None]
    ) -> None:
        self._function = function
        self._api = api
        self._log = log
        self._report = report
        self._request_id: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._follower: asyncio.Task[None] | None = None
        self.init_ms = 0.0

    async def start(
        self, children: ChildProcesses, command: Sequence[str], environ: dict[str, str]
    ) -> None:
        """Returns when the environment is ready for its first event. Raises InitFailed, OutOfMemory, FunctionFailed."""
        started = time.perf_counter()
        environ = {**environ, "AWS_LAMBDA_RUNTIME_API": await self._api.open()}
        output, child_end = os.pipe()
        try:
            self._process = children.run(
                command,
                environ=environ,
                folder=self._function.code_folder,
                output=child_end,
            )
        except OSError as error:
            os.close(output)
            raise FunctionFailed(f"could not be started: {error}") from error
        finally:
            os.close(child_end)
        self._follower = asyncio.create_task(self._follow(self._process, output))
        try:
            async with (
                asyncio.timeout(_INIT_TIMEOUT_S),
                held_to_memory(self._process.pid, self._function.memory_mb),
            ):
                await self._api.initialized()
        except TimeoutError:
            message = f"was not initialized within {_INIT_TIMEOUT_S:.0f} s"
            raise FunctionFailed(message) from None
        self.init_ms = (time.perf_counter() - started) * 1000

    async def invoke(self, event: bytes, request_id: str) -> bytes:
        """The reply. Only after HandlerFailed can the environment be used again, not after other FunctionFailed."""
        if self._process is None:
            raise FunctionFailed("was not started")
        self._request_id = request_id
        try:
            async with held_to_memory(self._process.pid, self._function.memory_mb):
                return await self._api.invoke(event, request_id)
        except TimeoutError:
            raise FunctionFailed(f"took longer than its {self._function.timeout_s} s") from None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def peak_mb(self) -> float:
        """The most memory that the process has held so far; 0 when it has ended."""
        return peak_mb(self._process.pid) if self._process else 0.0

    @property
    def cpu_ms(self) -> float:
        """The processor's time that the process has used so far; 0 when it has ended."""
        if not self.alive() or self._process is None:
            return 0.0
        # The clock id of another process, as in clock_getcpuclockid(3).
        return time.clock_gettime(~self._process.pid << 3 | 2) * 1000

    async def end(self) -> None:
        """Kill the process and wait for the rest of its output."""
        if self._process and self._process.poll() is None:
            # Kill its children too, because they hold its output open.
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._follower:
            await asyncio.wait([self._follower], timeout=_END_TIMEOUT_S)
            self._follower.cancel()
        self._api.close(FunctionFailed("was ended"))

    async def _follow(self, process: subprocess.Popen[bytes], output: int) -> None:
        reader = asyncio.StreamReader()
        with os.fdopen(output, "rb") as pipe:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), pipe
            )
            try:
                await self._copy(reader)
            finally:
                transport.close()
        status = await asyncio.to_thread(process.wait)
        self._api.close(FunctionFailed(f"ended its process (exit status {status})"))

    async def _copy(self, reader: asyncio.StreamReader) -> None:
        rest = b""
        with os.fdopen(
            os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb", buffering=0
        ) as log:
            while chunk := await reader.read(_READ_BYTES):
                log.write(chunk)
                lines, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    self._report_errors(lines.decode("utf-8", "replace"))
                rest = rest[-_LONGEST_LINE_BYTES:]

    def _report_errors(self, lines: str) -> None:
        for line in lines.splitlines():
            for error in logged_errors(line):
                self._report(f"{self._function.logical_id}: {error} (request {self._request_id})")
