"""Enforce the memory limit of an environment as Lambda does: kill a process that exceeds it.

In the cloud the environment is a machine of that size. A control group would do the same here, but creating one needs
root or a systemd session. A limit of the address space counts memory that is reserved but never used, and makes Python
raise an error that handlers can catch. So this watches the kernel's peak of resident memory, which also records short
peaks between two checks.
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
"""MB as in Lambda's settings."""


class OutOfMemory(FunctionFailed):
    """The function used more memory than its limit in the template, and its process was killed."""


def peak_mb(pid: int) -> float:
    """The peak memory of a process, or 0 if it has ended."""
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # A zombie process still has a status, without memory.
    return int(found[1]) * 1024 / _MB if found else 0.0


@contextlib.asynccontextmanager
async def held_to_memory(pid: int, limit_mb: int) -> AsyncIterator[None]:
    """Kill the process and its group as soon as it uses more than `limit_mb`.

    Raises OutOfMemory in that case, instead of the error that the kill caused.
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
    while peak_mb(pid) <= limit_mb:  # noqa: ASYNC110 - the kernel sends no event
        await asyncio.sleep(_BETWEEN_LOOKS_S)
    _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
