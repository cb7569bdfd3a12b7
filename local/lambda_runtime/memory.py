"""The memory that an environment may hold, as Lambda holds it to that: a process that passes it is killed.

In the cloud the environment is a machine of that size. A control group would do the same here, but making one takes
root, or a session of systemd's; a limit of the address space counts what is reserved and never used, and has Python
raise an error that handlers can catch. So the kernel's own count is watched: the most memory that was resident at one
time. It forgets no peak, however short: what comes and goes between two looks is seen at the next one.
Source: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html (VmHWM)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from local.function_pool import FunctionFailed

_PEAK = re.compile(rb"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_BETWEEN_LOOKS_S = 0.01
_MB = 2**20
"""As Lambda's settings mean it."""


class OutOfMemory(FunctionFailed):
    """The function held more memory than the template gives it; its process was killed."""


def peak_mb(pid: int) -> float:
    """The most memory that a process has held at one time; 0 of one that has ended."""
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # One that nobody has waited for still has a status, without memory.
    return int(found[1]) * 1024 / _MB if found else 0.0


@contextlib.asynccontextmanager
async def held_to_memory(pid: int, limit_mb: int) -> AsyncIterator[None]:
    """Within, the process and its group are killed as soon as it holds more than `limit_mb`.

    Raises OutOfMemory in that case, in place of whatever the death of the process led to.
    """
    watch = asyncio.create_task(_wait_until_over(pid, limit_mb))
    try:
        yield
    finally:
        over = watch.done() or peak_mb(pid) > limit_mb
        watch.cancel()
        if over:
            _kill(pid)
            raise OutOfMemory(f"used more than its {limit_mb} MB of memory") from None


async def _wait_until_over(pid: int, limit_mb: int) -> None:
    while peak_mb(pid) <= limit_mb:  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(_BETWEEN_LOOKS_S)
    _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
