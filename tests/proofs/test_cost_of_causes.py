"""What a report with inputs costs: time of the processor, bytes and memory."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.clock import to_ms
from larder.settings import settings
from larder.teams.models import RunInputs
from larder.teams.teams import TeamChange, change_team
from larder.web.bodies.run_inputs import MAX_PACKED
from larder.why import repository
from larder.why.baseline import MAX_RUNS
from larder.why.inputs import report_of
from tests.bulk import put_all
from tests.functions.usage.reports import GITHUB, later
from tests.larder.why.summaries import summary, task_record, variables
from tests.processor_time import fastest_s
from tests.proofs.test_cost_of_runs import large_run
from tests.requests import Cloud

TASKS, FILES = 1_000, 40
MOST_CPU_S = 0.58
"""A second of a function with 1,024 MB, which has 0.58 of a processor. With 200 earlier runs of 5,000 tasks."""

MOST_MEMORY = 100_000_000
HEADERS = {**GITHUB, "content-encoding": "gzip", "content-type": "application/json"}


def digest(*of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()


def large_report(id: str, *, changed: bool) -> bytes:
    """A chain of packages with three tasks each. If it is `changed`, every package has another file."""
    tasks = []
    for number in range(TASKS):
        package, name = number // 3, ("build", "test", "lint")[number % 3]
        files = {f"src/component-{file}/index.ts": digest(package, file) for file in range(FILES)}
        if changed:
            files["src/component-0/index.ts"] = digest(package)
        tasks.append(
            task_record(
                f"package-{package}#{name}",
                digest(number, changed)[:16],
                *([f"package-{package - 1}#build"] if package else []),
                inputs=files,
                environmentVariables=variables((f"API_URL={digest('url')}", "CI=")),
            )
        )
    ended_at = to_ms(clock.now())
    body: dict[str, Any] = report_of(summary(*tasks))
    body |= {"id": id, "execution": {"startTime": ended_at - 1_000, "endTime": ended_at}}
    return gzip.compress(json.dumps(body, separators=(",", ":")).encode())


@pytest.mark.slow
def test_a_thousand_tasks_are_explained_in_little_time(new_team: Cloud, report_lines: list[str]) -> None:
    change_team(new_team.team.id, TeamChange(run_inputs=RunInputs.VALUES), by=None, now=clock.now())

    def send(body: bytes) -> Any:
        reply = new_team.send("POST", "/v1/runs", body=body, headers=HEADERS)
        assert reply.status == 200, reply.body
        return reply.json

    one, expires_at = large_run(hostile=False), clock.now() + timedelta(days=1)
    item = repository.item_of(new_team.team.id, one, expires_at=expires_at)
    places = [
        replace(one, id=f"x{number}", started_at=clock.now() - timedelta(hours=1, seconds=number))
        for number in range(MAX_RUNS - 1)
    ]
    put_all(settings().usage_table, ({**item, "day": f"run#{each.place}"} for each in places))
    send(large_report("first", changed=False))
    with later():
        body = large_report("second", changed=True)
        reply = send(body)
        assert (reply["causes"]["changed"], len(reply["causes"]["causes"])) == (TASKS, 20)
        spent = fastest_s(lambda: send(body), enough=MOST_CPU_S)
    report_lines.append(f"POST /v1/runs of {TASKS} tasks, {len(body):,} bytes: {spent:.2f} of {MOST_CPU_S} s CPU")
    assert len(body) < 200_000
    assert spent <= MOST_CPU_S


def test_a_report_of_gigabytes_is_refused_within_100_mb(cloud: Cloud) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = packing.compress(b"0" * 1_000_000) + packing.flush(zlib.Z_FULL_FLUSH)
    # After a full flush, a part refers to no earlier one, so it can be repeated.
    megabyte = packing.compress(b"0" * 1_000_000) + packing.flush(zlib.Z_FULL_FLUSH)
    body = first + megabyte * 4_000
    assert len(body) < MAX_PACKED
    tracemalloc.start()
    try:
        reply = cloud.send("POST", "/v1/runs", body=body, headers=HEADERS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (reply.status, reply.code) == (413, "run_too_large")
    assert peak < MOST_MEMORY
