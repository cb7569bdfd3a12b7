"""Reports of runs with inputs, as the command line and CI send them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import time_machine

from larder import aws, clock
from larder.clock import to_ms
from larder.conditions import begins_with, equals
from larder.settings import settings
from larder.tables import USAGE
from larder.teams.models import RunInputs
from larder.teams.teams import TeamChange, change_team
from larder.why import storage
from larder.why.inputs import report_of
from larder.why.models import StoredRun
from larder.why.summaries import parse_summary
from tests.larder.why.summaries import document, task_record
from tests.requests import Cloud, Reply, Sender

GITHUB = {"x-artifact-client-ci": "GITHUB_ACTIONS"}
LIB = task_record("lib#build", "1" * 16)
UI = task_record("ui#build", "2" * 16, "lib#build")
CHANGED = {"package.json": "1" * 40, "src/a.js": "3" * 40}
LIB_2 = task_record("lib#build", "3" * 16, inputs=CHANGED)
UI_2 = task_record("ui#build", "4" * 16, "lib#build")
MAIN, BRANCH = "a" * 40, "b" * 40

_ids = count(1)


def keep(cloud: Cloud, kept: RunInputs = RunInputs.VALUES) -> None:
    change_team(cloud.team.id, TeamChange(run_inputs=kept), by=None, now=clock.now())


def report(
    *tasks: dict[str, Any],
    sha: str = MAIN,
    branch: str = "main",
    ancestors: tuple[str, ...] = (),
    shared: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """The body of a run that ended now."""
    scm = {"type": "git", "sha": sha, "branch": branch}
    file = parse_summary(document(*tasks, scm=scm, shared=shared or {}))
    ended_at = to_ms(clock.now())
    return {
        **report_of(file, ancestors=ancestors, dirty=False),
        "id": f"run{next(_ids)}",
        "execution": {"startTime": ended_at - 1_000, "endTime": ended_at, "exitCode": 0},
        **changes,
    }


def send(sender: Sender, body: Any, *, ci: bool = True) -> Reply:
    return sender("POST", "/v1/runs", json_body=body, headers=GITHUB if ci else None)


def ask(sender: Sender, body: Any, *, ci: bool = True, against: str | None = None) -> Reply:
    path = "/v1/causes" if against is None else f"/v1/causes?against={against}"
    return sender("POST", path, json_body=body, headers=GITHUB if ci else None)


def causes(reply: Reply) -> list[tuple[str, str]]:
    assert reply.status == 200, reply.body
    assert reply.json["causes"], reply.json
    return [(cause["kind"], cause["subject"]) for cause in reply.json["causes"]["causes"]]


@contextmanager
def later(minutes: float = 1) -> Iterator[None]:
    with time_machine.travel(clock.now() + timedelta(minutes=minutes), tick=True):
        yield


def objects() -> dict[str, bytes]:
    """The objects with inputs, by name."""
    bucket, s3 = settings().artifacts_bucket, aws.s3()
    listed = s3.list_object_versions(Bucket=bucket, Prefix="inputs/")
    assert not listed.get("DeleteMarkers")
    return {
        version["Key"]: s3.get_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])["Body"].read()
        for version in listed.get("Versions", ())
    }


def lose_inputs(cloud: Cloud, sha: str) -> None:
    """Delete the object with the inputs of the run of a commit."""
    (item,) = USAGE.scan(equals(owner=cloud.team.id, sha=sha) & begins_with(day="run#"))
    run = StoredRun(item["day"].removeprefix("run#"), None, None, item["inputs"])  # type: ignore[arg-type]
    storage.delete(cloud.team.id, run)
