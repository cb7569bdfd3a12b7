"""What GET /v1/runs costs if a team has reported many runs with as many tasks as a report may have."""

import base64
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.actor import Actor
from larder.why import repository
from larder.why.models import MAX_KEPT_TASKS, MAX_TASKS, Outcome, Run, RunTask, kept, names_of, totals_of
from tests.processor_time import fastest_s
from tests.requests import Cloud

RUNS = 1_000
MOST_BYTES = 1_000_000
MOST_CPU_S = 0.5
"""It takes 0.2 to 0.3 with either kind of names."""


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", [pytest.param(False, marks=pytest.mark.thorough), True], ids=["usual names", "long names"]
)
def test_a_thousand_large_runs_are_listed_in_little_time(
    new_team: Cloud, hostile: bool, report_lines: list[str]
) -> None:
    item = repository.item_of(new_team.team.id, large_run(hostile=hostile), expires_at=clock.now() + timedelta(days=1))
    one = large_run(hostile=hostile)
    for number in range(RUNS):
        place = replace(one, id=f"x{number}", started_at=clock.now() - timedelta(seconds=number))
        assert repository.add({**item, "day": f"run#{place.place}"})
    path = f"/v1/runs?from={(clock.now() - timedelta(days=1)).date()}&limit=100"
    reply = new_team.send("GET", path)
    spent = fastest_s(lambda: new_team.send("GET", path), enough=MOST_CPU_S)
    runs, bytes_sent = reply.json["figures"]["runs"], len(reply.body)
    report_lines.append(f"GET /v1/runs of {runs} runs: {spent:.2f} of {MOST_CPU_S} s CPU, {bytes_sent} bytes")
    assert bytes_sent < MOST_BYTES
    assert spent <= MOST_CPU_S
