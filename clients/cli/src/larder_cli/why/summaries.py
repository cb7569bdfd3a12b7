"""The summaries that are compared: from a file, the newest of the repository, or a dry run."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from larder.why.summaries import InvalidSummary, Summary, parse_summary

MAX_BYTES = 100_000_000
"""The largest file that is read. turbo writes 5 MB for 1,000 tasks with 40 inputs each."""

RUNS = Path(".turbo", "runs")
NO_CACHE = "--cache=local:,remote:"
"""With it, a dry run sends nothing. The hashes are the same."""

_NOWHERE = "--api=http://127.0.0.1:9"
"""turbo 1 has no such option. It asks this address in vain."""

_SECONDS = 600
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def read_summary(path: Path) -> Summary:
    """Raises click.ClickException."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise click.ClickException(
                f"{path} has more than {MAX_BYTES // 1_000_000} MB: larder why reads no larger file"
            )
        content = path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    return _parsed(content, str(path))


def newest(root: Path, count: int) -> list[Path]:
    """The newest summaries of the repository, the oldest of them first. Raises click.ClickException."""
    try:
        found = sorted(
            (root / RUNS).glob("*.json"), key=lambda one: (one.stat().st_mtime_ns, one.name)
        )
    except OSError as error:
        raise click.ClickException(f"cannot read {root / RUNS}: {error.strerror}") from error
    if len(found) < count:
        raise click.ClickException(
            f"{root / RUNS} has {len(found)} of the {count} run summaries that --last compares: "
            "set TURBO_RUN_SUMMARY=true, and run turbo again"
        )
    return found[-count:]


def dry_run(
    root: Path,
    folder: Path,
    tasks: Sequence[str],
    *,
    is_offline: bool,
    variables: Mapping[str, str] | None = None,
) -> Summary:
    """Run `turbo run TASKS --dry=json` in `folder`, with the turbo of `root`. Raises click.ClickException."""
    turbo = _turbo(root)
    command = [turbo, "run", *tasks, "--dry=json"]
    added = variables or {}
    done = _run([*command, NO_CACHE] if is_offline else command, folder, added)
    if is_offline and done.returncode and "'--cache'" in done.stderr:
        done = _run([*command, _NOWHERE], folder, added)
    if done.returncode:
        said = [line.strip() for line in _ANSI.sub("", done.stderr).splitlines() if line.strip()]
        reason = next((line for line in said if "ERROR" in line or line.startswith("x ")), "")
        reason = reason or (said[0] if said else f"status {done.returncode}")
        raise click.ClickException(f"turbo run {' '.join(tasks)} --dry=json failed: {reason}")
    return _parsed(done.stdout.encode(errors="surrogateescape"), "the output of turbo --dry=json")


def _turbo(root: Path) -> str:
    installed = shutil.which("turbo", path=str(root / "node_modules" / ".bin"))
    found = installed or shutil.which("turbo")
    if found is None:
        raise click.ClickException(
            f"turbo is neither in {root / 'node_modules'} nor on PATH: install the packages of the repository"
        )
    return found


def _run(
    command: Sequence[str], folder: Path, added: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **added}
    if "TURBO_RUN_SUMMARY" in environment:
        environment["TURBO_RUN_SUMMARY"] = "false"
    try:
        return subprocess.run(  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise click.ClickException(f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise click.ClickException(f"turbo did not end within {_SECONDS} s") from error


def _parsed(content: bytes, name: str) -> Summary:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(
            f"{name} is not valid JSON: write it again with TURBO_RUN_SUMMARY=true"
        ) from error
    try:
        return parse_summary(document)
    except InvalidSummary as error:
        raise click.ClickException(f"cannot compare {name}: {error}") from error
