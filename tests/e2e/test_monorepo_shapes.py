"""Repositories of the shape of seven public monorepos: what turbo restores and what `larder doctor` says, both also in
`larder run`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from larder_cli.doctor.here import MANY_ARTIFACTS

from . import turbo
from .build_tools import counted, through
from .workspaces import commit, write

pytestmark = pytest.mark.e2e

LARDER = Path(sys.executable).with_name("larder")
KINDS = ("build", "test", "lint", "types", "docs", "check")
UNCACHED = "report"
# In place of a package manager, to which turbo gives "run" and a task.
MANAGER = '#!/bin/sh\n[ "$1" = run ] || exit 1\nmkdir -p dist && head -c 200 /dev/urandom > "dist/$2"\n'
LOCK_FILES = {"npm": "package-lock.json", "pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock", "bun": "bun.lock"}
LOCKED = {
    "npm": """{"lockfileVersion": 3, "packages": {"": {}, "node_modules/turbo": {"version": "VERSION"}}}""",
    "pnpm": """lockfileVersion: '9.0'

importers:

  .:
    devDependencies:
      turbo:
        specifier: WANTED
        version: VERSION

packages:

  turbo@VERSION:
    resolution: {integrity: sha512-A}

snapshots:

  turbo@VERSION: {}
""",
    "yarn": """__metadata:
  version: 8

"shape@workspace:.":
  version: 0.0.0-use.local
  resolution: "shape@workspace:."
  dependencies:
    turbo: "npm:WANTED"
  languageName: unknown
  linkType: soft

"turbo@npm:WANTED":
  version: VERSION
  resolution: "turbo@npm:VERSION"
  languageName: node
  linkType: hard
""",
    "bun": """{"lockfileVersion": 1, "workspaces": {"": {"name": "shape", "devDependencies": {"turbo": "WANTED"}}},
"packages": {
    "turbo": ["turbo@VERSION", "", {}, "sha512-A"],
}}""",
}
PACKAGE_MANAGERS = {"npm": "npm@10.9.0", "pnpm": "pnpm@9.12.0", "yarn": "yarn@4.5.0", "bun": "bun@1.2.0"}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """`files` counts those of turbo.json, `tasks` all tasks, `uncached` those with `cache: false`."""

    packages: int
    tasks: int
    files: int = 1
    uncached: int = 0
    manager: str = "pnpm"
    version: str = turbo.NEWEST
    wanted: str = ""
    """The version in package.json, by default the exact one."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    warns: tuple[str, ...] = ("preflight-off",)
    """What doctor warns of in a fresh clone, and after few builds."""
    notes: tuple[str, ...] = ()


SIGNED = {"remoteCache": {"signature": True}}
LATER = ("signature-without-preflight",)
OLD = ("preflight-off", "old-turbo")
SHAPES = {
    "clerk": Shape(packages=31, files=6, tasks=71, settings=SIGNED, warns=LATER),
    "astro": Shape(packages=29, tasks=30, version="2.8.21", warns=OLD),
    "kit": Shape(packages=67, tasks=105, manager="yarn", settings=SIGNED, warns=LATER),
    "documenso": Shape(packages=16, tasks=5, uncached=1, manager="npm"),
    "devtools": Shape(
        packages=75, files=5, tasks=142, uncached=66, version="1.11.0", warns=OLD, notes=("untested-turbo",)
    ),
    "ledger-live": Shape(packages=6, tasks=26, uncached=3, manager="bun", settings={"ui": "tui", "daemon": True}),
    "n8n": Shape(packages=7, tasks=42, wanted="catalog:"),
}
ROWS = [name if name == "documenso" else pytest.param(name, marks=pytest.mark.thorough) for name in SHAPES]


def made(shape: Shape, root: Path) -> None:
    """The packages depend on each other like a binary tree. The first kind of task has one in each, and so on."""
    cached = shape.tasks - shape.uncached
    section = "pipeline" if shape.version.startswith("1.") else "tasks"
    tasks: dict[str, Any] = {kind: {"dependsOn": ["^build"], "outputs": [f"dist/{kind}"]} for kind in KINDS}
    wanted, lock = shape.wanted or shape.version, LOCKED[shape.manager]
    package = {
        "name": "shape",
        "private": True,
        "packageManager": PACKAGE_MANAGERS[shape.manager],
        "workspaces": ["packages/*"],
        "devDependencies": {"turbo": wanted},
    }
    files = {
        ".gitignore": "dist/\n.turbo/\nnode_modules/\n",
        "unique.txt": "",
        "turbo.json": json.dumps(
            {section: {**tasks, UNCACHED: {"cache": False}}, "globalDependencies": ["unique.txt"], **shape.settings}
        ),
        "package.json": json.dumps(package),
        "pnpm-workspace.yaml": f"packages: ['packages/*']\ncatalog:\n  turbo: {shape.version}\n",
        LOCK_FILES[shape.manager]: lock.replace("WANTED", wanted).replace("VERSION", shape.version),
    }
    for number in range(shape.packages):
        kinds = [KINDS[one // shape.packages] for one in range(number, cached, shape.packages)]
        kinds += [UNCACHED] if number < shape.uncached else []
        manifest = {
            "name": f"p{number}",
            "version": "1.0.0",
            "scripts": {kind: f"make {kind}" for kind in kinds},
            "dependencies": {f"p{(number - 1) // 2}": "workspace:*"} if number else {},
        }
        files[f"packages/p{number}/package.json"] = json.dumps(manifest)
        if number < shape.files - 1:
            own = {"extends": ["//"], section: {"lint": {"inputs": ["**"]}}}
            files[f"packages/p{number}/turbo.json"] = json.dumps(own)
    write(root, files)
    commit(root)


def outputs(root: Path) -> dict[str, str]:
    """Random bytes, so equal ones were restored."""
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.glob("packages/*/dist/*")
        if file.name != UNCACHED
    }


@pytest.fixture
def managers(tmp_path: Path) -> Path:
    for name in LOCK_FILES:
        program = tmp_path / "bin" / name
        write(tmp_path / "bin", {name: MANAGER})
        program.chmod(0o755)
    return tmp_path / "bin"


@pytest.mark.parametrize("name", ROWS)
def test_every_cached_task_is_restored_and_doctor_finds_no_problem(
    name: str, client: Callable[..., turbo.Client], larder: Path, managers: Path, tmp_path: Path
) -> None:
    shape, root = SHAPES[name], tmp_path / name
    made(shape, root)
    path = {"PATH": f"{managers}:{os.environ['PATH']}"}
    direct = client(shape.version, ci=path)
    in_sidecar = through(larder, direct)

    def cached(one: turbo.Client) -> tuple[int, str]:
        """How many tasks turbo has from a cache, in a fresh clone."""
        subprocess.run(["git", "clean", "-fdxq"], cwd=root, check=True)
        text = turbo.command(one, root, "run", *KINDS, UNCACHED)
        found = turbo.CACHED.search(text)
        assert found, text
        assert int(found[2]) == shape.tasks
        return int(found[1]), text

    def finds(*way: str | Path, signed: bool = shape.settings == SIGNED) -> tuple[int, tuple[str, ...]]:
        """The exit status of doctor with turbo's settings, and what it finds, the worst first."""
        signs = {"TURBO_REMOTE_CACHE_SIGNATURE_KEY": direct.signature_key} if signed else {}
        done = subprocess.run(
            [*way, LARDER, "doctor", root, "--json"],
            env={"HOME": str(direct.home), **path, **direct.remote_cache, **signs},
            cwd=root,
            capture_output=True,
            text=True,
            timeout=60,
        )
        report = json.loads(done.stdout)
        version = {"name": "turbo", "value": shape.version, "where": LOCK_FILES[shape.manager]}
        assert report["settings"][0] == version
        return done.returncode, tuple(finding["id"] for finding in report["findings"])

    run, wanted = (sys.executable, larder, "run", "--"), shape.tasks - shape.uncached
    off = ("summaries-off", *shape.notes)
    assert finds() == (0, (*shape.warns, *off))
    assert finds(*run) == (0, shape.notes)
    assert cached(direct)[0] == 0
    built = outputs(root)
    assert len(built) == wanted
    for one in (direct, in_sidecar):
        hits, text = cached(one)
        assert (hits, outputs(root)) == (wanted, built)
        assert finds() == (0, (*(shape.warns if wanted < MANY_ARTIFACTS else ()), *off))
        assert finds(*run) == (0, shape.notes)
        assert one is direct or counted(text) == (wanted, 0, 0, 0)
    (root / "unique.txt").write_text(name)
    hits, text = cached(in_sidecar)
    assert (hits, counted(text)) == (0, (0, wanted, wanted, 0))
    assert cached(in_sidecar)[0] == wanted
    if shape.settings == SIGNED:
        without_key = (1, ("signature-without-key", *shape.notes))
        assert finds(*run, signed=False) == without_key
        assert finds(signed=False) == (1, (*without_key[1], "summaries-off"))
