"""The runs that `larder run` reports."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from larder_proxy.reports import new_reports

AT = "2026-11-26T03:05:34.440Z"
LATER = "2026-11-26T03:05:35.205Z"
AT_MS = 1_795_662_334_440


def nx_task(name: str, status: str, exit_code: int = 0) -> dict[str, Any]:
    return {
        "taskId": f"{name}:build",
        "target": "build",
        "projectName": name,
        "hash": "14506911707521740662",
        "startTime": AT,
        "endTime": LATER,
        "params": "--secret",
        "cacheStatus": status,
        "status": exit_code,
    }


def write_nx(folder: Path, *tasks: dict[str, Any]) -> Path:
    file = folder / ".nx" / "cache" / "run.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    run = {"command": "nx run-many --secret", "startTime": AT, "endTime": LATER, "inner": False}
    file.write_text(json.dumps({"run": run, "tasks": list(tasks)}))
    return file


def test_a_run_of_nx(tmp_path: Path) -> None:
    write_nx(
        tmp_path,
        nx_task("a", "remote-cache-hit"),
        nx_task("b", "local-cache-hit"),
        nx_task("c", "cache-miss", 1),
    )
    (report,) = new_reports(tmp_path, {}, 0)
    times = {"startTime": AT_MS, "endTime": AT_MS + 765}
    assert report["execution"] == {**times, "exitCode": 1}
    assert [(one["package"], one["task"], one["cache"]) for one in report["tasks"]] == [
        ("a", "build", {"status": "HIT", "source": "REMOTE"}),
        ("b", "build", {"status": "HIT", "source": "LOCAL"}),
        ("c", "build", {"status": "MISS"}),
    ]
    assert report["tasks"][0]["hash"] == "nx-14506911707521740662"
    assert len(report["id"]) == 64
    assert "secret" not in json.dumps(report)


def test_a_run_of_turbo_has_only_what_larder_reads(tmp_path: Path) -> None:
    file = tmp_path / ".turbo" / "runs" / "x.json"
    file.parent.mkdir(parents=True)
    times = {"startTime": 1, "endTime": 2, "exitCode": 0}
    task = {
        "package": "web", "task": "build", "hash": "1" * 16, "command": "secret", "inputs": {"a": "b"},
        "cache": {"status": "HIT", "source": "REMOTE", "timeSaved": 5, "local": False},
        "execution": {**times, "error": ""},
    }  # fmt: skip
    document = {"id": "x", "turboVersion": "2.11.11", "user": "secret"}
    ran = {**times, "command": "secret"}
    scm = {"sha": "a", "branch": None}
    file.write_text(json.dumps({**document, "execution": ran, "scm": scm, "tasks": [task]}))
    (report,) = new_reports(tmp_path, {}, 0)
    assert report == {
        "id": "x", "turboVersion": "2.11.11", "execution": times, "scm": {"sha": "a"},
        "tasks": [{
            "package": "web", "task": "build", "hash": "1" * 16,
            "cache": {"status": "HIT", "source": "REMOTE", "timeSaved": 5}, "execution": times,
        }],
    }  # fmt: skip


def test_only_new_and_whole_files_are_reported(tmp_path: Path) -> None:
    file = write_nx(tmp_path, nx_task("a", "cache-miss"))
    assert new_reports(tmp_path, {}, time.time() + 60) == []
    for damaged in ("{", "[]", "{}", '{"run": {}, "tasks": [1]}'):
        file.write_text(damaged)
        assert new_reports(tmp_path, {}, 0) == []
    assert new_reports(tmp_path / "not-there", {}, 0) == []
