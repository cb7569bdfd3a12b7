"""The commands of the skill for assistants (clients/skill), run by a script in repositories of each package manager.

Each repository ends in hits, or in a message that says what to do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from . import node, turbo
from .cloud import LocalCloud
from .workspaces import commit, write

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

SKILL = Path(__file__).parents[2] / "clients" / "skill" / "SKILL.md"
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", SKILL.read_text(), re.DOTALL | re.MULTILINE)
BIN = Path(sys.executable).parent
BUILD = (
    "require('fs').mkdirSync('dist',{recursive:true});require('fs').writeFileSync('dist/out', String(Math.random()))"
)

MANAGERS = {
    "npm": ("npm@10.9.0", "", "npx"),
    "pnpm": ("pnpm@9.12.0", "pnpm@9.12.0", "pnpm exec"),
    "yarn": ("yarn@4.5.0", "@yarnpkg/cli-dist@4.5.0", "yarn"),
    "bun": ("bun@1.2.0", "bun@1.2.0", "bunx"),
}
"""What package.json names, the package of npm that has it, and how it starts turbo."""


_OF_NETWORK = re.compile("registry|proxy|cert|cafile", re.IGNORECASE)
"""The variables with which this machine reaches the registry."""


def environment(cloud: LocalCloud, tools: Path, manager: str, home: Path) -> dict[str, str]:
    """What a person has set, with the token of `turbo login` in a variable."""
    _, package, _ = MANAGERS[manager]
    path = [str(BIN), os.environ["PATH"]]
    if package:
        folder = node.made_once(
            tools / "managers" / package.replace("/", "-"),
            lambda made: node.npm("install", "--prefix", str(made), "--no-audit", "--no-fund", package),
        )
        path.insert(0, str(folder / "node_modules" / ".bin"))
    kept = {name: value for name, value in os.environ.items() if _OF_NETWORK.search(name)}
    return {
        **kept,
        "PATH": ":".join(path),
        "HOME": str(home),
        "YARN_ENABLE_IMMUTABLE_INSTALLS": "false",
        "YARN_ENABLE_TELEMETRY": "0",
        "YARN_ENABLE_GLOBAL_CACHE": "false",
        **turbo.QUIET,
        **cloud.turbo_environment,
    }


def repository(root: Path, manager: str, *, signature: bool = False) -> None:
    """A monorepo of two packages, as the person has it after step 1 of the skill."""
    build = f'node -e "{BUILD}"'
    files: dict[str, Any] = {
        "package.json": {
            "name": "shop",
            "private": True,
            "packageManager": MANAGERS[manager][0],
            "workspaces": ["packages/*"],
            "devDependencies": {"turbo": turbo.NEWEST},
        },
        "turbo.json": turbo.turbo_json(turbo.NEWEST, signature=signature),
        **{
            f"packages/{name}/package.json": {"name": name, "version": "1.0.0", "scripts": {"build": build}}
            for name in ("one", "two")
        },
    }
    texts = {name: json.dumps(content) for name, content in files.items()}
    texts |= {".gitignore": "node_modules\ndist\n.turbo\n.yarn\n"}
    if manager == "pnpm":
        texts["pnpm-workspace.yaml"] = "packages: [packages/*]\n"
    if manager == "yarn":
        texts[".yarnrc.yml"] = "nodeLinker: node-modules\n"
    # Two repositories have other hashes.
    texts["packages/one/source"] = str(root)
    texts["packages/two/source"] = str(root)
    write(root, texts)


def run(root: Path, env: Mapping[str, str], command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], cwd=root, env=dict(env), capture_output=True, text=True, timeout=180)


def follow(root: Path, env: Mapping[str, str], manager: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Run the commands of the skill: what `doctor` finds, what turbo prints at last, and what `why` says."""
    if not (root / "node_modules").exists():
        installed = run(root, env, f"{manager} install")
        assert installed.returncode == 0, installed.stdout + installed.stderr
        commit(root)
    doctor, twice, why = (command.replace("npx ", f"{MANAGERS[manager][2]} ") for command in COMMANDS)
    report = run(root, env, doctor)
    first, second = twice.splitlines()
    built = run(root, env, first)
    assert built.returncode == 0, built.stdout + built.stderr
    for output in root.glob("packages/*/dist"):
        shutil.rmtree(output)
    again = run(root, env, second)
    explained = run(root, env, why)
    assert explained.returncode == 0, explained.stderr
    return json.loads(report.stdout), again.stdout + again.stderr, json.loads(explained.stdout)


@pytest.mark.parametrize("manager", MANAGERS)
def test_the_commands_end_in_hits(
    local_cloud: LocalCloud, tools: Path, home: Path, tmp_path: Path, manager: str
) -> None:
    root = tmp_path / "shop"
    repository(root, manager)
    report, said, _ = follow(root, environment(local_cloud, tools, manager, home), manager)
    assert [one["id"] for one in report["findings"] if one["level"] == "problem"] == []
    assert "FULL TURBO" in said


def test_signed_artifacts_end_in_hits_or_in_what_to_do(
    local_cloud: LocalCloud, tools: Path, home: Path, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    repository(root, "npm", signature=True)
    env = environment(local_cloud, tools, "npm", home)
    report, said, _ = follow(root, env, "npm")
    assert "FULL TURBO" not in said
    (problem,) = [one for one in report["findings"] if one["level"] == "problem"]
    assert "TURBO_REMOTE_CACHE_SIGNATURE_KEY" in json.dumps(problem)
    report, said, _ = follow(
        root, {**env, "TURBO_REMOTE_CACHE_SIGNATURE_KEY": "a key of 32 or more bytes: 0123456789"}, "npm"
    )
    assert "FULL TURBO" in said
