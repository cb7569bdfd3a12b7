"""The parent's side of the workers: pass events to idle ones, replace dead ones, end late ones."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from local.child_processes import ChildProcesses
from local.function_pool import FunctionFailed
from local.template import Function
from local.workers import messages
from local.workers.forks import ForkedProcess, ForkServers

_RESPAWN_PAUSE_S = 1.0
_START_TIMEOUT_S = 60.0


class _Worker(NamedTuple):
    process: ForkedProcess
    conversation: messages.Conversation


def default_size() -> int:
    return max(4, 2 * (os.cpu_count() or 1))


class WorkerPool:
    """A fixed number of worker processes. `report` gets errors that functions logged, for the screen."""

    def __init__(
        self,
        children: ChildProcesses,
        functions: list[Function],
        environ: dict[str, str],
        *,
        size: int,
        log: Path,
        report: Callable[[str], None],
    ) -> None:
        self._size = size
        self._report = report
        self._processes = ForkServers(children, _worker_arguments(functions), environ, log)
        # The last to finish is the first to get an event, because its caches are warm.
        self._idle: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()
        self._starts: set[asyncio.Task[None]] = set()
        self._first_ready = asyncio.Event()
        self._complaints: set[str] = set()
        self._stopping = False

    async def start(self) -> None:
        """Returns when the first worker is ready. The others start one after the other. Raises TimeoutError."""
        self._in_background(self._start_all())
        await asyncio.wait_for(self._first_ready.wait(), _START_TIMEOUT_S)

    async def invoke(
        self, function: Function, event: bytes, request_id: str, binary_body: bytes = b""
    ) -> bytes:
        """As FunctionPool describes it. Waits for an idle worker."""
        worker = await self._take()
        healthy = False
        try:
            # Not wait_for: in Python 3.11 it may return a reply despite a cancellation.
            async with asyncio.timeout(function.timeout_s):
                head, reply, _ = await worker.conversation.exchange(
                    _head(function, request_id), event, binary_body
                )
            healthy = True
        except TimeoutError:
            raise FunctionFailed(f"took longer than its {function.timeout_s} s") from None
        except messages.Gone:
            status = await asyncio.to_thread(worker.process.end)
            raise FunctionFailed(f"ended its process (exit status {status})") from None
        finally:
            if healthy:
                self._idle.put_nowait(worker)
            else:
                self._replace(worker)
        for error in head["errors"]:
            self._report(f"{function.logical_id}: {error} (request {request_id})")
        if not head["ok"]:
            raise FunctionFailed(head["error"])
        return reply

    async def stop(self) -> None:
        """End the workers. Running invocations are cut off."""
        self._stopping = True
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        while not self._idle.empty():
            self._idle.get_nowait().conversation.close()
        await self._processes.stop()

    async def _take(self) -> _Worker:
        while True:
            worker = await self._idle.get()
            if not worker.conversation.has_ended():
                return worker
            self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        worker.conversation.close()
        if not self._stopping:
            self._in_background(self._start_instead_of(worker))

    async def _start_instead_of(self, worker: _Worker) -> None:
        await asyncio.to_thread(worker.process.end)
        await self._start_until_ready()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start_all(self) -> None:
        # Starting all at once would compete for the cores and delay the first request.
        for _ in range(self._size):
            await self._start_until_ready()

    async def _start_until_ready(self) -> None:
        for attempt in itertools.count():
            if attempt:
                self._report("a worker ended before it was ready; trying again")
                await asyncio.sleep(_RESPAWN_PAUSE_S)
            try:
                worker = await self._start_worker()
            except messages.Gone:
                continue
            try:
                head, _, _ = await worker.conversation.receive()
            except messages.Gone:
                worker.conversation.close()
                continue
            except asyncio.CancelledError:
                worker.conversation.close()
                raise
            self._report_once(head["errors"])
            self._idle.put_nowait(worker)
            self._first_ready.set()
            return

    async def _start_worker(self) -> _Worker:
        parent_end, child_end = socket.socketpair()
        try:
            process = await self._processes.start(child_end)
            return _Worker(process, await messages.Conversation.on(parent_end))
        except BaseException:
            parent_end.close()
            # Still open if the start was canceled before it began.
            child_end.close()
            raise

    def _report_once(self, errors: list[str]) -> None:
        # Every worker reports the same error for a module that cannot be imported.
        for error in errors:
            if error not in self._complaints:
                self._complaints.add(error)
                self._report(error)


def _worker_arguments(functions: list[Function]) -> list[str]:
    folders = dict.fromkeys(
        folder
        for function in functions
        for folder in (function.source_folder, function.code_folder)
    )
    code = [text for folder in folders for text in ("--code", str(folder))]
    warm = [text for function in functions for text in ("--warm", function.handler)]
    return code + warm


def _head(function: Function, request_id: str) -> dict[str, Any]:
    return {
        "function": function.logical_id,
        "handler": function.handler,
        "timeout_s": function.timeout_s,
        "memory_mb": function.memory_mb,
        "request_id": request_id,
    }
