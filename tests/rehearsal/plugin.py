"""A plugin for pytest (`-p tests.rehearsal.plugin`): records the permissions of each test, or runs tests without one.

Each process writes a file of JSON lines to the folder in REHEARSAL. If the folder has `removals.json`, with permissions
by the node id of a test that uses them, each of these tests runs once without each of its permissions. It passes if it
fails for this reason.
"""

import json
import os
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.rehearsal.acting import Refusal, Rehearsal
from tests.rehearsal.roles import Permission

REMOVALS = "removals.json"


@dataclass(slots=True)
class _Run:
    """The state of this process. Hooks and fixtures of pytest share no other object."""

    uses: dict[Permission, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    removed: Permission | None = None
    refused: list[Refusal] = field(default_factory=list)


_run = _Run()


def _folder() -> Path:
    return Path(os.environ["REHEARSAL"])


@cache
def _removals() -> dict[str, list[dict[str, str]]]:
    file = _folder() / REMOVALS
    found: dict[str, list[dict[str, str]]] = json.loads(file.read_text()) if file.exists() else {}
    return found


@pytest.fixture(autouse=True)
def lacking(rehearsed: Rehearsal) -> Iterator[None]:
    """Removes the permission without which this run of the test has to fail."""
    _run.uses = rehearsed.used
    if _run.removed is None:
        yield
        return
    rehearsed.refused.clear()
    with rehearsed.stack.without(_run.removed):
        yield
    _run.refused = list(rehearsed.refused)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    removals = [Permission(**removal) for removal in _removals().get(item.nodeid, [])]
    if not removals:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    needless = []
    for removal in removals:
        # Keep the fixtures of the module and above until the last run of the test.
        following: Any = nextitem if removal is removals[-1] else item.parent
        failed = _fails_without(removal, item, following)
        needless += [] if failed else [removal]
        _run.outcomes.append({"permission": asdict(removal), "test": item.nodeid, "failed": failed})
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed" if needless else "passed",
        longrepr="\n".join(f"does not need {removal}" for removal in needless) or None,
        when="call",
    )
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _fails_without(removal: Permission, item: pytest.Item, following: Any) -> bool:
    _run.removed, _run.refused = removal, []
    try:
        reports = runtestprotocol(item, log=False, nextitem=following)
    finally:
        _run.removed = None
    return any(report.failed for report in reports) and any(
        refusal.function == removal.function and removal.grant in refusal.grants for refusal in _run.refused
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    _run.seconds[item.nodeid] = _run.seconds.get(item.nodeid, 0.0) + call.duration
    return (yield)


def pytest_sessionfinish() -> None:
    """Write the records of this process."""
    lines = _run.outcomes or [
        {"permission": asdict(permission), "tests": {test: _run.seconds[test] for test in sorted(tests)}}
        for permission, tests in sorted(_run.uses.items())
    ]
    with (_folder() / f"{os.getpid()}.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
