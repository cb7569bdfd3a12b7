"""Runs in the usage table: `(owner, "run#<time of start>#<turbo's id>")`, with a time to live.

A run that is reported twice has one item. Its tasks are one compressed attribute: a run of 500 tasks takes 10 kB.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from larder.actor import Actor
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import between, equals, missing
from larder.errors import InvalidValue
from larder.runs.models import Outcome, Run, RunsPage, RunTask
from larder.tables import USAGE, Item, commit

_PREFIX = "run#"

MAX_PACKED = 200_000
"""The most characters of the compressed tasks of a run. An item of DynamoDB has 400 kB at most."""


def add(owner: str, run: Run, *, expires_at: datetime) -> bool:
    """Store a run. False if it is stored already; it then stays as it is.

    Raises InvalidValue if its tasks take too much room.
    """
    packed = _packed(run.tasks)
    if len(packed) > MAX_PACKED:
        raise InvalidValue(
            "tasks",
            f"take {len(packed)} characters compressed, and can take at most {MAX_PACKED}: the names are too long",
        )
    item = {
        "owner": owner,
        "day": f"{_PREFIX}{run.place}",
        "expires_at": to_epoch_seconds(expires_at),
        "started_at": to_ms(run.started_at),
        "duration_ms": round(run.duration / timedelta(milliseconds=1)),
        "exit_code": run.exit_code,
        "turbo_version": run.turbo_version,
        "branch": run.branch,
        "sha": run.sha,
        "ci": run.ci,
        "key_id": run.reporter.credential_id,
        "user_id": run.reporter.user_id,
        "tasks": packed,
    }
    return commit(USAGE.put(item, when=missing("owner")))


def read_page(
    owner: str, first: datetime, end: datetime, *, before: str | None, limit: int, now: datetime
) -> RunsPage:
    """A page of the runs that started from `first` on, but before `end`, newest first. It can have fewer than `limit`.

    `before` is the last page's `before`.
    """
    within = between("day", _place(first), _place(end))
    after = None if before is None else {"owner": owner, "day": f"{_PREFIX}{before}"}
    items, last = USAGE.page(
        equals(owner=owner) & within, consistent=False, backwards=True, limit=limit, after=after
    )
    # DynamoDB's time to live deletes expired items up to two days late.
    kept = [_run(item) for item in items if item["expires_at"] > to_epoch_seconds(now)]
    return RunsPage(
        runs=kept, before=None if last is None else str(last["day"]).removeprefix(_PREFIX)
    )


def _place(moment: datetime) -> str:
    return f"{_PREFIX}{to_ms(moment):012x}"


def _packed(tasks: Sequence[RunTask]) -> str:
    packages = list(dict.fromkeys(task.package for task in tasks))
    names = list(dict.fromkeys(task.task for task in tasks))
    place = {name: number for number, name in enumerate(packages)}
    named = {name: number for number, name in enumerate(names)}
    rows = [
        [place[task.package], named[task.task], task.hash, task.outcome.value, task.ms]
        for task in tasks
    ]
    text = json.dumps([packages, names, rows], separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _unpacked(packed: str) -> list[RunTask]:
    packages, names, rows = json.loads(zlib.decompress(base64.b64decode(packed)))
    return [
        RunTask(packages[package], names[task], hash, _OUTCOMES[outcome], ms)
        for package, task, hash, outcome, ms in rows
    ]


_OUTCOMES: dict[str, Any] = {outcome.value: outcome for outcome in Outcome}


def _run(item: Item) -> Run:
    return Run(
        id=str(item["day"]).rpartition("#")[2],
        started_at=from_ms(item["started_at"]),
        duration=timedelta(milliseconds=item["duration_ms"]),
        exit_code=item.get("exit_code"),
        turbo_version=item.get("turbo_version"),
        branch=item.get("branch"),
        sha=item.get("sha"),
        ci=item.get("ci"),
        reporter=Actor(item["key_id"], item.get("user_id")),
        tasks=_unpacked(item["tasks"]),
    )
