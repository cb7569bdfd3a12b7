"""A queue of files for functions. Files that are left after a crash are delivered after the next start."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
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
        self._waiting: deque[Path] = deque()
        self._under_way: set[Path] = set()

    def wake(self) -> None:
        self._new_files.set()

    async def run(self) -> None:
        """Deliver until cancelled, in the order of the names."""
        # Requests take precedence, so that events of earlier uploads do not occupy every worker.
        await asyncio.gather(*(self._deliver_all() for _ in range(_AT_ONCE)))

    async def _deliver_all(self) -> None:
        while True:
            # The folder is read again when its files are delivered, not for each new one.
            if not self._waiting:
                self._new_files.clear()
                new = set(self._folder.glob("*.json")) - self._under_way
                self._waiting.extend(sorted(new))
            if not self._waiting:
                # A crash may lose the wake-up, but not the files.
                # Not wait_for: in Python 3.11 it may ignore a cancellation.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN_S):
                        await self._new_files.wait()
                continue
            path = self._waiting.popleft()
            self._under_way.add(path)
            try:
                await self._take(path)
            finally:
                self._under_way.remove(path)

    async def _take(self, path: Path) -> None:
        if await self._deliver(_read(path)):
            _remove(path)
        else:
            _put_aside(path)


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
