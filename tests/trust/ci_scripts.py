"""Runs the scripts of ci/ as the runner of a CI does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CI = Path(__file__).resolve().parents[2] / "clients" / "ci"
TOKEN = "larder_ci_" + "a" * 70


def run(command: list[str], variables: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        # Retries do not wait.
        env={"PATH": f"{Path(__file__).parent / 'impatient'}:{os.environ['PATH']}", **variables},
        input=b"id.token",
        capture_output=True,
        timeout=60,
        cwd=cwd,
    )


def check_log(text: bytes) -> None:
    """No line begins with a command of GitHub, and no byte changes a terminal."""
    assert all(char in b"\n" or 32 <= char < 127 for char in text), text
    for line in text.splitlines():
        assert not line.lstrip().startswith(b"::"), line
        assert b"##[" not in line
        assert len(line) < 700


@cache
def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CI / "github" / "action.yml").read_text())
    return found


def step(folder: Path, script: str, inputs: Mapping[str, str], **variables: str) -> bytes:
    """Run a script of the action as a runner does, with the defaults of its inputs. Returns its log."""
    known = action()["inputs"]
    assert inputs.keys() <= known.keys()
    given = {name: one.get("default", "") for name, one in known.items()} | dict(inputs)
    for name in ("env", "output", "state", "summary"):
        (folder / name).touch()
    done = run(
        ["node", str(CI / "github" / action()["runs"][script])],
        {
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
            **{f"GITHUB_{name.upper()}": str(folder / name) for name in ("env", "output", "state")},
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            **variables,
        },
        folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
