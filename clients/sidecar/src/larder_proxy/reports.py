"""The runs that Nx, moon and turbo describe in files of their own, as `POST /v1/runs` takes them.

Those of turbo are read by the script that CI runs, too (clients/ci/run-report.mjs), because turbo comes with node. It
adds the inputs of the tasks, by which Larder explains misses. Without node, and with LARDER_INPUTS=off, they have none.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress

from larder_proxy.settings import folders_above, is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_RUNS = 20
"""The most runs of a build that are reported: the newest."""

MOST_WITH_INPUTS = 3
"""The newest of these have inputs. Each takes a process, and git looks at the repository."""

_SCRIPT_SECONDS = 30

_LOADER = """
import { readSync } from "node:fs";
const script = Buffer.alloc(Number(process.argv[1]));
for (let at = 0; at < script.length; ) at += readSync(0, script, { offset: at }) || process.exit();
await import(`data:text/javascript;base64,${script.toString("base64")}`);
"""

_MOST_BYTES = 50_000_000
_OF_THE_SCRIPT = ("PATH", "HOME", "LARDER_INPUTS", "GITHUB_EVENT_PATH")
"""Variables that the script gets: no token."""

_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError),
    # Numbers and nesting that Python does not hold.
    *(OverflowError, RecursionError),
)

_FAILURES = (*_UNREADABLE, subprocess.SubprocessError)


def new_reports(
    folder: str, environment: Mapping[str, str], since: float, build: list[str], inputs: Inputs
) -> list[dict[str, Any]]:
    """The runs since a time (time.time) in this folder, or that of a `--cwd`, and above. Unreadable files are left out.

    The root of a repository has the files of a build in one of its folders.
    """
    named = [one[6:] for one in build if one.startswith("--cwd=")]
    named += [value for one, value in zip(build, build[1:]) if one == "--cwd"]
    start = os.path.realpath(os.path.join(folder, named[0])) if named else folder
    files = [file for above in folders_above(start) for file in _files(above, environment)]
    newest = [file for file in dict.fromkeys(files) if _is_new(file, since, start)][-MOST_RUNS:]
    runs = [_read(file) for file in newest[:-MOST_WITH_INPUTS]]
    runs += [inputs.read(file) or _read(file) for file in newest[-MOST_WITH_INPUTS:]]
    inputs.close()
    return [run for run in runs if run is not None]


def _is_new(file: str, since: float, start: str) -> bool:
    with suppress(OSError):
        known = os.stat(file)
        is_right = known.st_mtime >= since and known.st_size <= _MOST_BYTES
        return is_right and is_trusted(file, start)
    return False


def _read(file: str) -> dict[str, Any] | None:
    """None if it is unreadable."""
    with suppress(*_UNREADABLE):
        with open(file, encoding="utf-8") as opened:
            document = json.load(opened)
        return _READERS.get(os.path.basename(file), _of_turbo)(document)
    return None


class Inputs:
    """The script that adds the inputs of tasks. It starts while turbo runs, because node and git take their time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._is_wanted = environment.get("LARDER_INPUTS") != "off"
        self._environment = {
            name: environment[name] for name in _OF_THE_SCRIPT if name in environment
        }
        self._lock = threading.Lock()
        self._started: tuple[str, subprocess.Popen[bytes]] | None = None

    def prepare(self, root: str) -> None:
        """Start the script in a repository."""
        with self._lock, suppress(OSError):
            if self._is_wanted and self._started is None:
                self._started = root, self._start(root)

    def read(self, file: str) -> dict[str, Any] | None:
        """What the script makes of a file of turbo. None for another one, or if it fails."""
        if os.path.basename(file) in _READERS or not self._is_wanted:
            return None
        root = os.path.dirname(os.path.dirname(os.path.dirname(file)))
        with self._lock:
            started, self._started = self._started, None
        if started is not None and started[0] == root:
            # Ctrl-C may have ended it.
            with suppress(*_FAILURES):
                return _described(started[1], file)
        elif started is not None:
            _end(started[1])
        with suppress(*_FAILURES):
            return _described(self._start(root), file)
        return None

    def close(self) -> None:
        """End a script that nobody needs."""
        with self._lock:
            self._is_wanted = False
            if self._started is not None:
                _end(self._started[1])

    def _start(self, root: str) -> subprocess.Popen[bytes]:
        """Raises OSError."""
        import pkgutil

        script = pkgutil.get_data("larder_proxy", "run-report.mjs") or b""
        process = subprocess.Popen(
            # The script is on standard input, because it may be in an archive. The name of the file follows.
            ["node", "--input-type=module", "--eval", _LOADER, str(len(script)), "report", "-"],  # noqa: S607
            cwd=root,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert process.stdin  # noqa: S101
        with suppress(OSError):
            process.stdin.write(script)
        return process


def _described(process: subprocess.Popen[bytes], file: str) -> dict[str, Any]:
    """Raises _FAILURES."""
    try:
        output, _ = process.communicate(file.encode(), timeout=_SCRIPT_SECONDS)
    finally:
        _end(process)
    described: dict[str, Any] = json.loads(output)
    # What is missing here is missing in the file.
    _of_turbo(described)
    return described


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.kill()


def _files(folder: str, environment: Mapping[str, str]) -> Iterator[str]:
    own = environment.get("NX_CACHE_DIRECTORY") or os.path.join(".nx", "cache")
    yield os.path.join(folder, own, "run.json")
    yield os.path.join(folder, ".moon", "cache", "runReport.json")
    runs = os.path.join(folder, ".turbo", "runs")
    # It may be missing, or one that this user must not read.
    with suppress(OSError):
        files = [os.path.join(runs, name) for name in os.listdir(runs) if name.endswith(".json")]
        yield from sorted(files, key=_changed_at)


def _changed_at(file: str) -> float:
    try:
        return os.stat(file).st_mtime
    except OSError:
        # The build has removed it.
        return 0


def _of_nx(document: Mapping[str, Any]) -> dict[str, Any]:
    """`run.json` of Nx. The times of a hit are those of its restore, so there is no time saved."""
    run, tasks = document["run"], document["tasks"]
    failed = [task["status"] for task in tasks if task["status"]]
    return {
        "id": _id([run, [task["hash"] for task in tasks]]),
        "client": "nx",
        "execution": _times(run, failed[0] if failed else 0),
        "tasks": [
            {
                "package": task["projectName"],
                "task": task["target"],
                "hash": f"nx-{task['hash']}",
                "cache": _cache_of_nx(str(task["cacheStatus"])),
                "execution": _times(task, task["status"]),
            }
            for task in tasks
        ],
    }


def _cache_of_nx(status: str) -> dict[str, str]:
    if status == "cache-miss":
        return {"status": "MISS"}
    return {"status": "HIT", "source": "REMOTE" if status.startswith("remote") else "LOCAL"}


def _times(one: Mapping[str, Any], status: int) -> dict[str, int]:
    return {
        "startTime": _ms(one["startTime"]),
        "endTime": _ms(one["endTime"]),
        "exitCode": int(status),
    }


def _id(run: object) -> str:
    # Loads OpenSSL, which builds without a report do not need.
    import hashlib

    return hashlib.sha256(json.dumps(run).encode()).hexdigest()


def _ms(text: str) -> int:
    from datetime import datetime

    # Python 3.9 reads no Z.
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000)


def _of_moon(document: Mapping[str, Any]) -> dict[str, Any]:
    """`runReport.json` of moon. It says how long a task took only if it ran."""
    actions = document["actions"]
    tasks = [task for task in map(_task_of_moon, actions) if task is not None]
    times = [_moon_times(action) for action in actions if action["startedAt"]]
    return {
        "id": _id(actions),
        "client": "moon",
        "execution": {
            "startTime": min(time["startTime"] for time in times),
            "endTime": max(time["endTime"] for time in times),
            "exitCode": int(document["status"] != "completed"),
        },
        "tasks": tasks,
    }


def _task_of_moon(action: Mapping[str, Any]) -> dict[str, Any] | None:
    """None for an action that is no task, or has not run."""
    if action["node"]["action"] != "run-task" or not action["startedAt"]:
        return None
    hashes = [
        operation["meta"]["hash"]
        for operation in action["operations"]
        if operation["meta"].get("hash")
    ]
    if not hashes:
        return None
    project, _, task = action["node"]["params"]["target"].rpartition(":")
    status = action["status"]
    times = {**_moon_times(action), "exitCode": int(status in ("failed", "timed-out", "aborted"))}
    return {
        "package": project,
        "task": task,
        "hash": f"moon-ac-{hashes[0]}",
        "cache": _MOON_HITS.get(status, {"status": "MISS"}),
        "execution": times,
    }


_MOON_HITS = {
    "cached": {"status": "HIT", "source": "LOCAL"},
    "cached-from-remote": {"status": "HIT", "source": "REMOTE"},
}


def _moon_times(action: Mapping[str, Any]) -> dict[str, int]:
    return {"startTime": _moon_ms(action["startedAt"]), "endTime": _moon_ms(action["finishedAt"])}


def _moon_ms(text: str) -> int:
    """moon writes UTC without a zone, with nanoseconds, which Python does not read."""
    return _ms(f"{text[:23]}+00:00")


def _of_turbo(document: Mapping[str, Any]) -> dict[str, Any]:
    """A file of `turbo run --summarize`, without inputs, commands and variables."""
    scm = document.get("scm") or {}
    return {
        "id": document["id"],
        "turboVersion": document.get("turboVersion"),
        "execution": _only(document["execution"], "startTime", "endTime", "exitCode"),
        "scm": _only(scm, "branch", "sha"),
        "tasks": [
            {
                **_only(task, "package", "task"),
                "hash": str(task["hash"]),
                "cache": _only(task["cache"], "status", "source", "timeSaved"),
                "execution": _only(task["execution"], "startTime", "endTime", "exitCode")
                if task.get("execution")
                else None,
            }
            for task in document["tasks"]
        ],
    }


def _only(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}


_READERS = {"run.json": _of_nx, "runReport.json": _of_moon}
