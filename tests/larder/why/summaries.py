"""Summaries in turbo's format, as small as a comparison needs."""

from __future__ import annotations

from typing import Any

from larder.why.summaries import Summary, parse_summary

NO_PACKAGES = "459c029558afe716"


def task_record(id: str, hash: str, *dependencies: str, **changes: Any) -> dict[str, Any]:
    """A task with one input, `src/a.js`."""
    package, _, task = id.partition("#")
    return {
        "taskId": id,
        "task": task,
        "package": package,
        "hash": hash,
        "inputs": {"package.json": "1" * 40, "src/a.js": "2" * 40},
        "hashOfExternalDependencies": NO_PACKAGES,
        "cache": {"local": False, "remote": False, "status": "MISS", "timeSaved": 0},
        "command": f"echo {task}",
        "cliArguments": [],
        "directory": f"packages/{package}",
        "dependencies": list(dependencies),
        "resolvedTaskDefinition": {
            "outputs": ["dist/**"],
            "cache": True,
            "dependsOn": ["^build"],
            "inputs": [],
            "outputLogs": "full",
            "env": [],
            "passThroughEnv": None,
        },
        "envMode": "strict",
        "environmentVariables": variables(),
        "execution": {"startTime": 1_000, "endTime": 2_000, "exitCode": 0},
    } | changes


def variables(
    configured: tuple[str, ...] = (),
    inferred: tuple[str, ...] = (),
    passed: tuple[str, ...] = (),
    **specified: list[str],
) -> dict[str, Any]:
    return {
        "specified": {"env": [], "passThroughEnv": None} | specified,
        "configured": list(configured),
        "inferred": list(inferred),
        "passthrough": list(passed),
    }


def document(*tasks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The file of a run. `shared` changes what enters every hash."""
    shared = {
        "rootKey": "the key of this algorithm",
        "files": {},
        "hashOfExternalDependencies": NO_PACKAGES,
        "hashOfInternalDependencies": "",
        "environmentVariables": variables(),
        "engines": None,
    } | changes.pop("shared", {})
    return {
        "id": "36BZkPZ2WvAw4rLnTqMzCx0Ed8s",
        "version": "1",
        "turboVersion": "2.11.11",
        "monorepo": True,
        "globalCacheInputs": shared,
        "execution": {"startTime": 500, "endTime": 3_000, "exitCode": 0},
        "envMode": "strict",
        "frameworkInference": True,
        "tasks": list(tasks),
        "user": "",
        "scm": {"type": "git", "sha": "a" * 40, "branch": "main"},
    } | changes


def summary(*tasks: dict[str, Any], **changes: Any) -> Summary:
    return parse_summary(document(*tasks, **changes))
