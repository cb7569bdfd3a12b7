"""What GET /v1/runs costs if a team has reported many runs with as many tasks as a report may have."""

import base64
import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import process_time

import pytest

from larder import clock
from larder.actor import Actor
from larder.runs import repository
from larder.runs.models import (
    MAX_KEPT_TASKS,
    MAX_TASKS,
    Outcome,
    Run,
    RunTask,
    kept,
    names_of,
    totals_of,
)
from tests.requests import Cloud

RUNS = 1_000
MOST_BYTES = 1_000_000
MOST_CPU_S = 0.3
"""On a machine that decodes the yardstick in `YARDSTICK_S`. A slower one gets more, so that only the code counts."""
YARDSTICK = json.dumps(list(range(200_000)))
YARDSTICK_S = 0.012
ATTEMPTS = 5


def noise(number: int) -> str:
    """Text that does not compress well."""
    return base64.b64encode(random.Random(number).randbytes(75)).decode()


def large_run(*, hostile: bool) -> Run:
    """With names as long as they are kept, if it is hostile."""
    tasks = [
        RunTask(
            noise(number) if hostile else f"@acme/package-{number // 4}",
            noise(-number) if hostile else ("build", "test", "lint", "types")[number % 4],
            Outcome.BUILT if number % 3 else Outcome.REMOTE_HIT,
            number * 7 % 60_000,
        )
        for number in range(MAX_TASKS)
    ]
    return Run(
        id="run",
        started_at=clock.now(),
        duration=timedelta(minutes=5),
        exit_code=0,
        turbo_version="2.11.11",
        branch="main",
        sha="1f0bd0a4c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3",
        ci="GITHUB_ACTIONS",
        reporter=Actor("key", "user"),
        names=names_of(tasks),
        totals=totals_of(tasks),
        tasks=kept(tasks),
        hashes=[random.Random(number).randbytes(8).hex() for number in range(MAX_KEPT_TASKS)],
    )


def cpu_s(call: Callable[[], object], *, enough: float = 0) -> float:
    """The CPU time of the fastest of several calls. The first one that is fast enough ends them."""
    spent: list[float] = []
    while not spent or (min(spent) > enough and len(spent) < ATTEMPTS):
        before = process_time()
        call()
        spent.append(process_time() - before)
    return min(spent)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    [pytest.param(False, marks=pytest.mark.thorough), True],
    ids=["usual names", "long names"],
)
def test_a_thousand_large_runs_are_listed_in_little_time(
    new_team: Cloud, hostile: bool, report_lines: list[str]
) -> None:
    item = repository.item_of(
        new_team.team.id, large_run(hostile=hostile), expires_at=clock.now() + timedelta(days=1)
    )
    one = large_run(hostile=hostile)
    for number in range(RUNS):
        place = replace(one, id=f"x{number}", started_at=clock.now() - timedelta(seconds=number))
        assert repository.add({**item, "day": f"run#{place.place}"})
    path = f"/v1/runs?from={(clock.now() - timedelta(days=1)).date()}&limit=100"
    reply = new_team.send("GET", path)
    most = MOST_CPU_S * max(1, cpu_s(lambda: json.loads(YARDSTICK)) / YARDSTICK_S)
    spent = cpu_s(lambda: new_team.send("GET", path), enough=most)
    runs, bytes_sent = reply.json["figures"]["runs"], len(reply.body)
    report_lines.append(
        f"GET /v1/runs of {runs} runs: {spent:.2f} of {most:.2f} s CPU, {bytes_sent} bytes"
    )
    assert bytes_sent < MOST_BYTES
    assert spent < most
