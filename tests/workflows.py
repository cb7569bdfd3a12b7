"""Workflows of GitHub Actions, as data."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def read_workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    parsed: dict[str, Any] = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
    return parsed


def steps(job: dict[str, Any], action: str) -> list[dict[str, Any]]:
    """The steps of a job that use an action."""
    return [step for step in job["steps"] if step.get("uses", "").startswith(f"{action}@")]


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def actions(workflow: dict[str, Any]) -> Iterator[str]:
    for job in workflow["jobs"].values():
        yield from (step["uses"] for step in job["steps"] if "uses" in step)


def unpinned(path: Path) -> list[str]:
    """The actions that are not named by a commit and, in a comment, their version."""
    used = re.findall(r"uses: (.+)$", path.read_text(), re.MULTILINE)
    return [one for one in used if not _PINNED.fullmatch(one)]
