"""A queue of files for functions. Files that are left after a crash are delivered after the next start."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from local.function_pool import FunctionFailed, FunctionPool
from local.request_log import RequestLog
from local.template import Function

_PAUSES_S = (1, 4)
"""Before another attempt. Lambda waits one minute, then two. What an upload waits for, such as an eviction, ends."""
_AT_ONCE = 2
_LOOK_AGAIN_S = 30.0


class RetryQueue:
    """Passes every file in `folder` to `deliver`, which returns whether it is done. Call `wake` after adding a file.

    A file that cannot be delivered moves to `failed/`, the dead-letter queue of one machine.
    """

    def __init__(self, folder: Path, deliver: Callable[[bytes], Awaitable[bool]]) -> None:
        self._folder = folder
        self._deliver = deliver
        self._new_files = asyncio.Event()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        # Requests take precedence, so that events of earlier uploads do not occupy every worker.
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def wake(self) -> None:
        self._new_files.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            while True:
                self._new_files.clear()
                for path in sorted(self._folder.glob("*.json")):
                    if path.name not in self._under_way:
                        self._under_way[path.name] = asyncio.create_task(self._take(path))
                # A crash may lose the wake-up, but not the files.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._new_files.wait(), _LOOK_AGAIN_S)
        finally:
            for task in self._under_way.values():
                task.cancel()

    async def _take(self, path: Path) -> None:
        try:
            async with self._turns:
                if await self._deliver(_read(path)):
                    _remove(path)
                else:
                    _put_aside(path)
        finally:
            del self._under_way[path.name]


async def invoke_with_retries(
    functions: FunctionPool, function: Function, payload: bytes, log: RequestLog, *, what: str
) -> bool:
    """Invoke a function until it succeeds, at most three times. `what` describes the payload on the screen."""
    attempts = len(_PAUSES_S) + 1
    for attempt, pause_s in enumerate((*_PAUSES_S, 0), start=1):
        try:
            await functions.invoke(function, payload, str(uuid.uuid4()))
            return True
        except FunctionFailed as error:
            name = function.logical_id
            log.note(f"{name} failed on {what}, attempt {attempt} of {attempts}: {error}")
            await asyncio.sleep(pause_s)
    return False


# The file is small and on a local disk, so reading it needs no thread.
def _read(path: Path) -> bytes:
    return path.read_bytes()


def _remove(path: Path) -> None:
    path.unlink()


def _put_aside(path: Path) -> None:
    failed = path.parent / "failed"
    failed.mkdir(mode=0o700, exist_ok=True)
    path.rename(failed / path.name)
