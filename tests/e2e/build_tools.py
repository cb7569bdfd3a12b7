"""Builds through `larder.pyz run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from . import turbo
from .cloud import LocalCloud

LINE = re.compile(
    r"^Larder: (?:no cache: .+\. )?(\d+) hits(?: \(\d+ s saved\))?, (\d+) misses, "
    r"(\d+) stored(?: \([\d.]+ (?:[kMG]B|bytes?)\))?(?:, (\d+) not stored \(.+\))?$",
    re.MULTILINE,
)
SECONDS = 120


class Counts(NamedTuple):
    """What `larder run` prints at its end."""

    hits: int
    misses: int
    stored: int
    not_stored: int


def counted(output: str) -> Counts:
    """The counts of the closing line."""
    found = LINE.search(output)
    assert found, output
    return Counts(*(int(count or 0) for count in found.groups()))


def settings(cloud: LocalCloud, home: Path, token: str | None = None) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TURBO_API": cloud.url,
        "TURBO_TEAM": cloud.team,
        "TURBO_TOKEN": token or cloud.token,
    }


def reading_key(cloud: LocalCloud) -> str:
    """A key that can only read."""
    created = cloud.larder(
        *("keys", "create", "--owned-by-team", "--team", cloud.team, "--name", "reader"),
        *("--permissions", "artifacts=read"),
    )
    return str(created["key"])


def run(larder: Path, root: Path, env: Mapping[str, str], *build: str) -> tuple[Counts, str]:
    """Run a build that must succeed. Returns the counts and the output."""
    done = subprocess.run(
        [sys.executable, str(larder), "run", "--", *build],
        cwd=root,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return counted(done.stderr), done.stdout + done.stderr


def through(larder: Path, client: turbo.Client) -> turbo.Client:
    """The same client, started by `larder run`."""
    script = larder.with_name(f"turbo-{client.version}")
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {larder} run -- {client.command} "$@"\n')
    script.chmod(0o755)
    return replace(client, command=script)
