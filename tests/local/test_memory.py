"""The memory of an environment: its peak is recorded, and a process over the limit is killed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from local.lambda_runtime.memory import OutOfMemory, held_to_memory, peak_mb

HOLD_FOR_A_MOMENT = """
held = b"x" * (80 << 20)
del held
print("let go", flush=True)
input()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A process that used 80 MB and freed them."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", HOLD_FOR_A_MOMENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "let go\n"
        yield process
        process.kill()


async def hold(process: subprocess.Popen[str], limit_mb: int, *, for_s: float = 0) -> None:
    async with held_to_memory(process.pid, limit_mb):
        await asyncio.sleep(for_s)


def test_a_peak_is_recorded_after_the_memory_was_freed(process: subprocess.Popen[str]) -> None:
    assert 80 < peak_mb(process.pid) < 130


def test_a_process_within_its_limit_is_not_killed(process: subprocess.Popen[str]) -> None:
    asyncio.run(hold(process, 130, for_s=0.1))
    assert process.poll() is None


def test_a_peak_between_two_checks_is_found_at_the_end(process: subprocess.Popen[str]) -> None:
    with pytest.raises(OutOfMemory, match="used more than its 70 MB of memory"):
        asyncio.run(hold(process, 70))
    assert process.wait(5) == -9


def test_a_process_over_its_limit_is_killed_at_once(process: subprocess.Popen[str]) -> None:
    with pytest.raises(OutOfMemory):
        asyncio.run(hold(process, 70, for_s=1))
    assert process.wait(5) == -9


def test_an_ended_process_uses_no_memory(process: subprocess.Popen[str]) -> None:
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert peak_mb(process.pid) == 0
    process.wait(5)
    assert peak_mb(process.pid) == 0
