"""The runs that `larder run` reports."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from larder_proxy.reports import Inputs, new_reports

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
    write_nx(tmp_path, nx_task("a", "remote-cache-hit"), nx_task("b", "local-cache-hit"), nx_task("c", "cache-miss", 1))
    (report,) = new_reports(str(tmp_path), {}, 0, [], Inputs({}))
    times = {"startTime": AT_MS, "endTime": AT_MS + 765}
    assert report["execution"] == {**times, "exitCode": 1}
    assert [(task["package"], task["task"], task["cache"]) for task in report["tasks"]] == [
        ("a", "build", {"status": "HIT", "source": "REMOTE"}),
        ("b", "build", {"status": "HIT", "source": "LOCAL"}),
        ("c", "build", {"status": "MISS"}),
    ]
    assert report["tasks"][0]["hash"] == "nx-14506911707521740662"
    assert report["client"] == "nx"
    assert len(report["id"]) == 64
    assert "secret" not in json.dumps(report)


def moon_action(name: str, status: str, **changed: Any) -> dict[str, Any]:
    """An action of moon 2.5.5, as its report has it."""
    hashed = {"meta": {"type": "hash-generation", "hash": "3759c805"}, "status": "passed"}
    return {
        "label": f"RunTask({name})",
        "node": {"action": "run-task", "params": {"target": name, "args": ["--secret"]}},
        "operations": [hashed, {"meta": {"type": "task-execution", "command": "secret"}}],
        "startedAt": AT.replace("Z", "000000"),
        "finishedAt": LATER.replace("Z", "000000"),
        "status": status,
        **changed,
    }


def write_moon(folder: Path, status: str, *actions: dict[str, Any]) -> None:
    file = folder / ".moon" / "cache" / "runReport.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"actions": actions, "status": status, "context": "secret"}))


def test_a_run_of_moon(tmp_path: Path) -> None:
    write_moon(
        tmp_path,
        "aborted",
        moon_action("", "passed", node={"action": "sync-workspace"}, operations=[]),
        moon_action("a:build", "cached-from-remote"),
        moon_action("b:build", "cached"),
        moon_action("c:build", "failed"),
        moon_action("d:build", "passed"),
        moon_action("e:build", "skipped", startedAt=None, finishedAt=None),
    )
    (report,) = new_reports(str(tmp_path), {}, 0, [], Inputs({}))
    times = {"startTime": AT_MS, "endTime": AT_MS + 765}
    assert report["client"] == "moon"
    assert report["execution"] == {**times, "exitCode": 1}
    assert [(task["package"], task["task"], task["cache"]) for task in report["tasks"]] == [
        ("a", "build", {"status": "HIT", "source": "REMOTE"}),
        ("b", "build", {"status": "HIT", "source": "LOCAL"}),
        ("c", "build", {"status": "MISS"}),
        ("d", "build", {"status": "MISS"}),
    ]
    assert [task["execution"]["exitCode"] for task in report["tasks"]] == [0, 0, 1, 0]
    assert report["tasks"][0]["hash"] == "moon-ac-3759c805"
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
    (report,) = new_reports(str(tmp_path), {}, 0, [], Inputs({}))
    assert report == {
        "id": "x", "turboVersion": "2.11.11", "execution": times, "scm": {"sha": "a"},
        "tasks": [{
            "package": "web", "task": "build", "hash": "1" * 16,
            "cache": {"status": "HIT", "source": "REMOTE", "timeSaved": 5}, "execution": times,
        }],
    }  # fmt: skip


def test_a_build_in_a_folder_of_the_repository_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "packages" / "web"
    folder.mkdir(parents=True)
    write_nx(tmp_path, nx_task("a", "cache-miss"))
    assert len(new_reports(str(folder), {}, 0, [], Inputs({}))) == 1
    elsewhere = tmp_path.parent
    for build in (["turbo", "--cwd", str(folder)], ["turbo", f"--cwd={tmp_path.name}"]):
        assert len(new_reports(str(elsewhere), {}, 0, build, Inputs({}))) == 1
    assert new_reports(str(elsewhere), {}, 0, ["turbo"], Inputs({})) == []


def test_only_new_and_whole_files_are_reported(tmp_path: Path) -> None:
    file = write_nx(tmp_path, nx_task("a", "cache-miss"))
    assert new_reports(str(tmp_path), {}, time.time() + 60, [], Inputs({})) == []
    for damaged in ("{", "[]", "{}", '{"run": {}, "tasks": [1]}', "[" * 200_000):
        file.write_text(damaged)
        assert new_reports(str(tmp_path), {}, 0, [], Inputs({})) == []
    assert new_reports(str(tmp_path / "not-there"), {}, 0, [], Inputs({})) == []


def test_files_of_turbo_without_hashes_and_those_that_are_gone_are_left_out(tmp_path: Path) -> None:
    runs = tmp_path / ".turbo" / "runs"
    runs.mkdir(parents=True)
    (runs / "gone.json").symlink_to(tmp_path / "gone")
    task = {"package": "web", "task": "build", "cache": {}}
    run = {"id": "r", "execution": {}, "tasks": [task]}
    (runs / "no-hash.json").write_text(json.dumps(run))
    assert new_reports(str(tmp_path), {}, 0, [], Inputs({})) == []
