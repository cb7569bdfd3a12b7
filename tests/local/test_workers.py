"""The processes that run the functions: forks of one process that has imported them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from local.child_processes import ChildProcesses
from local.environment import process_environment
from local.function_pool import FunctionFailed
from local.template import Function
from local.workers.pool import WorkerPool
from tests.local.stub_service import ROOT, StubCloud, alive, eventually

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="workers are forks only on Linux")


class Pool:
    """A pool that runs one function, whose module has this source."""

    def __init__(self, folder: Path, source: str, *, size: int = 1) -> None:
        (folder / "tried.py").write_text(source)
        self.log = folder / "functions.log"
        self.screen: list[str] = []
        self._children = ChildProcesses()
        self._function = Function("Tried", "tried.handler", folder, timeout_s=10, memory_mb=128)
        self._workers = WorkerPool(
            self._children,
            [self._function],
            process_environment({}),
            size=size,
            log=self.log,
            report=self.screen.append,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Pool"]:
        try:
            await self._workers.start()
            yield self
            await self._workers.stop()
        finally:
            self._children.kill_all()

    async def call(self, event: object = None) -> Any:
        payload = json.dumps(event).encode()
        return json.loads(await self._workers.invoke(self._function, payload, str(uuid.uuid4())))


def has_ended(pid: int) -> bool:
    """Whether it runs no more. Its parent may not have asked for its status yet."""
    state = ["ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(state, capture_output=True, text=True).stdout.strip()[:1] in ("", "Z")


ABOUT_THE_PROCESS = """
import os, pathlib, random, sys, time
imported_by = os.getpid()
called = pathlib.Path(__file__).with_name("called")
called.mkdir(exist_ok=True)
def handler(event, context):
    if event == "exit":
        sys.exit(7)
    (called / str(os.getpid())).touch()
    # Until so many workers have a call.
    while event and len(list(called.iterdir())) < event:
        time.sleep(0.01)
    return {"pid": os.getpid(), "imported_by": imported_by, "random": random.random(), "uuid": os.urandom(8).hex()}
"""


@linux_only
def test_workers_share_one_import_and_no_random_numbers(tmp_path: Path) -> None:
    async def calls() -> list[dict[str, Any]]:
        async with Pool(tmp_path, ABOUT_THE_PROCESS, size=3).running() as pool:
            return await asyncio.gather(*(pool.call(3) for _ in range(3)))

    seen = asyncio.run(calls())
    assert len({one["imported_by"] for one in seen}) == 1
    for different in ("pid", "random", "uuid"):
        assert len({one[different] for one in seen}) == 3, different


def test_a_worker_that_exits_is_replaced_and_its_status_reported(tmp_path: Path) -> None:
    async def calls() -> tuple[str, int, int]:
        async with Pool(tmp_path, ABOUT_THE_PROCESS).running() as pool:
            first = await pool.call()
            with pytest.raises(FunctionFailed) as failure:
                await pool.call("exit")
            second = await pool.call()
            return str(failure.value), first["pid"], second["pid"]

    failure, first, second = asyncio.run(calls())
    assert failure == "ended its process (exit status 7)"
    assert first != second
    assert not alive(first)


def test_a_killed_idle_worker_fails_no_call(tmp_path: Path) -> None:
    async def calls() -> tuple[int, int]:
        async with Pool(tmp_path, ABOUT_THE_PROCESS).running() as pool:
            first = await pool.call()
            os.kill(first["pid"], signal.SIGKILL)
            assert eventually(lambda: has_ended(first["pid"]))
            return first["pid"], (await pool.call())["pid"]

    first, second = asyncio.run(calls())
    assert first != second


@linux_only
def test_the_workers_of_a_killed_fork_server_end_and_new_ones_serve(tmp_path: Path) -> None:
    async def calls() -> tuple[dict[str, Any], dict[str, Any]]:
        async with Pool(tmp_path, ABOUT_THE_PROCESS).running() as pool:
            first = await pool.call()
            os.kill(first["imported_by"], signal.SIGKILL)
            assert await asyncio.to_thread(eventually, lambda: not alive(first["pid"]))
            return first, await pool.call()

    first, second = asyncio.run(calls())
    assert first["imported_by"] != second["imported_by"]


STARTS_A_THREAD = """
import threading
ended = threading.Event()
waiting = threading.Thread(target=ended.wait, daemon=True)
waiting.start()
def handler(event, context):
    return waiting.is_alive()
"""


def test_a_function_keeps_the_thread_that_its_import_started(tmp_path: Path) -> None:
    async def call() -> Any:
        async with Pool(tmp_path, STARTS_A_THREAD).running() as pool:
            return await pool.call()

    assert asyncio.run(call()) is True


def test_a_module_that_fails_is_reported_once_and_fails_each_call(tmp_path: Path) -> None:
    async def call() -> tuple[list[str], str]:
        async with Pool(tmp_path, "raise ValueError('a reason')", size=2).running() as pool:
            with pytest.raises(FunctionFailed) as failure:
                await pool.call()
            return pool.screen, str(failure.value)

    screen, failure = asyncio.run(call())
    assert screen == ["cannot import tried.handler: ValueError: a reason"]
    assert failure == "ValueError: a reason"
    assert "a reason" in (tmp_path / "functions.log").read_text()


@linux_only
def test_with_all_functions_imported_there_is_one_thread_and_no_connection_to_inherit(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, template=ROOT / "template.yaml")
    try:
        server = cloud.child("local.workers.fork_server")
        links = [str(path.readlink()) for path in Path(f"/proc/{server}/fd").iterdir()]
        threads = list(Path(f"/proc/{server}/task").iterdir())
    finally:
        cloud.stop()
    assert len(threads) == 1
    # The one to its parent.
    assert len([link for link in links if link.startswith("socket:")]) == 1


PARENT = """
import os, sys, time
from pathlib import Path
from local.child_processes import ChildProcesses
folder = sys.argv[1]
arguments = ["--socket", "0", "--code", folder, "--warm", "slow.handler"]
log = Path(folder, "log")
ChildProcesses().start("local.workers.fork_server", arguments, environ=dict(os.environ), descriptors=[], log=log)
time.sleep(60)
"""


@linux_only
def test_a_process_that_still_imports_ends_with_its_parent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    (tmp_path / "slow.py").write_text(
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=ROOT)
    try:
        assert eventually(lambda: pid_file.exists() and pid_file.read_text() != "")
    finally:
        parent.kill()
        parent.wait()
    assert eventually(lambda: not alive(int(pid_file.read_text())))
