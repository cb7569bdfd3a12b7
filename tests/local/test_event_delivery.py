"""Event patterns and schedules."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from local.child_processes import ChildProcesses
from local.environment import process_environment
from local.event_delivery import matches
from local.request_log import RequestLog
from local.retry_queue import RetryQueue
from local.schedules import run_schedules
from local.template import Function, Schedule
from local.workers.pool import WorkerPool
from tests.local.stub_service import eventually

EVENT = {
    "source": "aws.s3",
    "detail-type": "Object Created",
    "detail": {"bucket": {"name": "b"}, "object": {"key": "artifacts/o/h/1.bin", "size": 3}},
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["aws.s3"]}, True),
        ({"source": ["aws.ec2", "aws.s3"]}, True),
        ({"source": ["aws.ec2"]}, False),
        ({"account": ["1"]}, False),
        ({"detail": {"object": {"key": [{"prefix": "artifacts/"}]}}}, True),
        ({"detail": {"object": {"key": [{"prefix": "other/"}]}}}, False),
        ({"detail": {"object": {"key": [{"suffix": ".bin"}]}}}, True),
        ({"detail": {"object": {"key": [{"wildcard": "artifacts/*/*/*.*"}]}}}, True),
        ({"detail": {"object": {"key": [{"wildcard": "artifacts/*/*/*/*"}]}}}, False),
        ({"detail": {"object": {"key": [{"wildcard": "artifacts/*/h"}]}}}, False),
        ({"detail": {"object": {"size": [{"anything-but": [3]}]}}}, False),
        ({"detail": {"bucket": {"name": ["b"]}, "object": {"size": [3]}}}, True),
        ({"detail": {"bucket": {"name": ["c"]}, "object": {"size": [3]}}}, False),
        ({"source": {"inner": ["x"]}}, False),
    ],
)
def test_a_pattern_matches_as_eventbridge_does(pattern: dict[str, Any], expected: bool) -> None:
    assert matches(pattern, EVENT) is expected


@pytest.mark.parametrize("pattern", [{"source": "aws.s3"}, {"source": [{"cidr": "10.0.0.0/8"}]}])
def test_an_unsupported_pattern_is_an_error(pattern: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pattern"):
        matches(pattern, EVENT)


def test_a_function_runs_on_its_schedule_even_after_a_failure(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    (tmp_path / "hourly.py").write_text(
        "import json\n"
        "def handler(event, context):\n"
        f"    with open({str(seen)!r}, 'a') as file:\n"
        "        file.write(json.dumps(event) + '\\n')\n"
        "    raise RuntimeError('each time')\n"
    )
    function = Function("Hourly", "hourly.handler", tmp_path, timeout_s=5, memory_mb=128)
    schedule = Schedule("EveryHour", timedelta(milliseconds=50), function)

    def runs() -> list[dict[str, Any]]:
        return [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []

    async def until_it_ran_twice() -> None:
        children, log = ChildProcesses(), RequestLog()
        pool = WorkerPool(
            children, [function], process_environment({}), size=1, log=tmp_path / "functions.log", report=log.note
        )
        try:
            await pool.start()
            schedules = asyncio.create_task(run_schedules([schedule], pool, log))
            assert await asyncio.to_thread(eventually, lambda: len(runs()) >= 2)
            schedules.cancel()
            await asyncio.gather(schedules, return_exceptions=True)
            await pool.stop()
        finally:
            children.kill_all()
            log.close()

    asyncio.run(until_it_ran_twice())
    first = runs()[0]
    assert (first["detail-type"], first["source"]) == ("Scheduled Event", "aws.events")
    assert first["resources"][0].endswith(":rule/EveryHour")


def test_files_are_delivered_in_order_past_one_that_waits_and_the_folder_is_read_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number:03}" for number in range(100)]
    delivered: list[str] = []
    reads = 0
    glob = Path.glob

    def counted(folder: Path, pattern: str) -> Iterator[Path]:
        nonlocal reads
        reads += 1
        return glob(folder, pattern)

    async def run() -> None:
        release, all_delivered, new_delivered = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def deliver(payload: bytes) -> bool:
            delivered.append(payload.decode())
            if payload == b"000":
                await release.wait()
                new_delivered.set()
            queue.wake()
            await asyncio.sleep(0)
            if len(delivered) == len(names):
                all_delivered.set()
            if payload == b"new":
                release.set()
            return payload != b"001"

        def add(name: str) -> None:
            (tmp_path / f"{name}.json").write_text(name)
            queue.wake()

        queue = RetryQueue(tmp_path, deliver)
        for name in names:
            add(name)
        running = asyncio.create_task(queue.run())
        await all_delivered.wait()
        add("new")
        await new_delivered.wait()
        running.cancel()

    monkeypatch.setattr(Path, "glob", counted)
    asyncio.run(asyncio.wait_for(run(), 30))
    assert delivered == [*names, "new"]
    assert [path.name for path in (tmp_path / "failed").iterdir()] == ["001.json"]
    assert reads < len(names) / 2
