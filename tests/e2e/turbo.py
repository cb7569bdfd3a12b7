"""The real `turbo` client: installed from npm once per version, and run with a remote cache. Its report is parsed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import node

# npm's `latest` at the last update of the tests. The end of a run says if npm has a newer one.
NEWEST = os.environ.get("TURBO_VERSION", "2.11.11")
# Any text. turbo uses it as the HMAC key of `remoteCache.signature`.
SIGNATURE_KEY = "a signature key of the sample monorepo"
# Versions whose `turbo run` starts a background process by default.
DAEMON_VERSIONS = ("1.", "2.0.")

QUIET = {"DO_NOT_TRACK": "1", "TURBO_TELEMETRY_DISABLED": "1", "TURBO_NO_UPDATE_NOTIFIER": "1"}
"""Variables with which turbo reports nothing about its use, and asks for no newer version."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CACHED = re.compile(r"Cached:\s+(\d+) cached, (\d+) total")


def installed(version: str, tools: Path) -> Path:
    """Path of the `turbo` command of exactly this version. Safe to call from several processes at once."""

    def fill(folder: Path) -> None:
        wanted = f"turbo@{version}"
        node.npm("install", "--prefix", str(folder), "--no-audit", "--no-fund", wanted)

    return node.made_once(tools / version, fill) / "node_modules" / ".bin" / "turbo"


def newest_on_npm() -> str:
    """The current `latest` version of npm."""
    return node.npm("view", "turbo", "version").strip()


def turbo_json(version: str, *, signature: bool = False) -> dict[str, object]:
    """The monorepo's turbo.json in the format of this version."""
    build = {"dependsOn": ["^build"], "outputs": ["dist/**"]}
    tasks = "pipeline" if version.startswith("1.") else "tasks"
    return {tasks: {"build": build}, "remoteCache": {"signature": signature}}


def build(client: Client, monorepo: Path) -> Run:
    """Run `turbo run build`, which must succeed for any reply of the remote cache."""
    summaries = monorepo / ".turbo" / "runs"
    before = set(summaries.glob("*.json"))
    started = time.monotonic()
    done = _run(client, monorepo, "--summarize")
    seconds = time.monotonic() - started
    written = set(summaries.glob("*.json")) - before
    text = _ANSI.sub("", done.stdout + done.stderr)
    cached = CACHED.search(text)
    if done.returncode != 0 or cached is None or len(written) != 1:
        raise AssertionError(f"turbo run build ended with {done.returncode}:\n{text}")
    return Run(
        text=text,
        cached=int(cached[1]),
        total=int(cached[2]),
        full_turbo="FULL TURBO" in text,
        tasks=_tasks(json.loads(written.pop().read_text())),
        seconds=seconds,
    )


def dry_run(client: Client, monorepo: Path) -> tuple[Task, ...]:
    """Run `turbo run build --dry=json`, which lists what turbo would restore."""
    done = _run(client, monorepo, "--dry=json")
    if done.returncode != 0:
        raise AssertionError(f"turbo --dry=json ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return _tasks(json.loads(done.stdout))


def command(client: Client, monorepo: Path, *arguments: str) -> str:
    """Run any other command of turbo, which must succeed, and return its output."""
    done = _turbo(client, monorepo, *arguments)
    text = _ANSI.sub("", done.stdout + done.stderr)
    if done.returncode != 0:
        raise AssertionError(f"turbo {' '.join(arguments)} ended with {done.returncode}:\n{text}")
    return text


def _tasks(summary: dict[str, Any]) -> tuple[Task, ...]:
    return tuple(
        Task(
            package=task["package"].removeprefix("@sample/"),
            hash=task["hash"],
            local=task["cache"]["local"],
            remote=task["cache"]["remote"],
            time_saved_ms=task["cache"].get("timeSaved", 0),
            took_ms=_took_ms(task),
            cache=task["cache"],
        )
        for task in summary["tasks"]
    )


def _took_ms(task: dict[str, Any]) -> int:
    """How long the task ran. 0 if it did not, as in a dry run."""
    ran = task.get("execution") or {"startTime": 0, "endTime": 0}
    return int(ran["endTime"]) - int(ran["startTime"])


def _run(client: Client, monorepo: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    arguments = ["run", "build", *flags]
    if client.preflight:
        arguments.append("--preflight")
    if client.version.startswith(DAEMON_VERSIONS):
        arguments.append("--no-daemon")
    return _turbo(client, monorepo, *arguments)


def _turbo(client: Client, monorepo: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(client.command), *arguments],
        cwd=monorepo,
        env=client.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@dataclass(frozen=True)
class Client:
    """An installed turbo and its options. `remote_cache` has TURBO_API, TURBO_TOKEN and TURBO_TEAM. `ci` has the
    variables that a CI sets in its jobs.
    """

    command: Path
    version: str
    remote_cache: Mapping[str, str]
    home: Path
    preflight: bool = False
    signature_key: str = SIGNATURE_KEY
    ci: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Only PATH is from the caller's environment, so that turbo detects no CI and no configuration of a user."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **QUIET,
            "TURBO_REMOTE_CACHE_SIGNATURE_KEY": self.signature_key,
            # Long, so that large artifacts do not become misses on a busy machine.
            "TURBO_REMOTE_CACHE_TIMEOUT": "240",
            "TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT": "240",
            **self.remote_cache,
            **self.ci,
        }


@dataclass(frozen=True)
class Task:
    """One task of a run's summary. `cache` is turbo's own record, whose keys differ between versions."""

    package: str
    hash: str
    local: bool
    remote: bool
    time_saved_ms: int
    took_ms: int
    cache: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Run:
    """turbo's report about one `turbo run build`."""

    text: str = field(repr=False)
    cached: int
    total: int
    full_turbo: bool
    tasks: tuple[Task, ...]
    seconds: float

    @property
    def remote_hits(self) -> frozenset[str]:
        """The packages whose outputs came from the remote cache."""
        return frozenset(task.package for task in self.tasks if task.remote)
