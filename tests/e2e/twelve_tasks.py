"""A monorepo of four packages with build, test and lint, for turbo's own records of its hashes. Nothing is built."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import turbo

DEPENDENCIES = {"lib": [], "ui": ["lib"], "api": ["lib"], "web": ["ui"]}
EXTERNAL = {"lib": {"lodash": "4.17.20"}, "api": {"express": "4.18.0"}}
_GIT = ("git", "-c", "user.name=Sample", "-c", "user.email=sample@example.com")


@dataclass
class Monorepo:
    """A repository in git, and the turbo that reads it."""

    root: Path
    command: Path
    version: str
    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(text.encode())

    def change_json(self, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        document = json.loads(self.path(name).read_text())
        change(document)
        self.write(name, json.dumps(document, indent=2) + "\n")

    def change_task(self, task: str, **settings: object) -> None:
        tasks = "pipeline" if self.version.startswith("1.") else "tasks"
        self.change_json("turbo.json", lambda document: document[tasks][task].update(settings))

    def change_turbo_json(self, **settings: object) -> None:
        self.change_json("turbo.json", lambda document: document.update(settings))

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Change")

    def git(self, *arguments: str) -> None:
        subprocess.run([*_GIT, *arguments], cwd=self.root, env=self.environment, check=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """Only these, so that turbo detects no CI and no configuration of a user."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), **turbo.QUIET, **self.variables}

    def dry_run(self, *arguments: str, tasks: tuple[str, ...] = ("build", "test", "lint")) -> bytes:
        """The summary of `turbo run TASKS --dry=json`."""
        done = subprocess.run(
            [self.command, "run", *tasks, "--dry=json", *arguments],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise AssertionError(f"turbo --dry=json ended with {done.returncode}:\n{done.stderr!r}")
        return done.stdout

    def summarize(self, *tasks: str, **variables: str) -> Path:
        """Run the tasks and return the file of the run."""
        runs = self.root / ".turbo" / "runs"
        before = set(runs.glob("*.json"))
        subprocess.run(
            [self.command, "run", *tasks],
            cwd=self.root,
            env={**self.environment, "TURBO_RUN_SUMMARY": "true", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=True,
        )
        (written,) = set(runs.glob("*.json")) - before
        return written


def made(root: Path, command: Path, version: str, home: Path) -> Monorepo:
    """Write and commit it. `command` is the turbo of this version."""
    monorepo = Monorepo(root, command, version, home)
    build = {"dependsOn": ["^build"], "outputs": ["dist/**"], "env": ["API_URL"]}
    tasks = {"build": build, "test": {"dependsOn": ["build"], "outputs": []}, "lint": {}}
    settings = {"pipeline" if version.startswith("1.") else "tasks": tasks}
    monorepo.write("turbo.json", json.dumps(settings, indent=2) + "\n")
    package = {"name": "twelve-tasks", "private": True, "packageManager": "npm@10.9.0", "workspaces": ["packages/*"]}
    monorepo.write("package.json", json.dumps(package, indent=2) + "\n")
    monorepo.write(".gitignore", "node_modules/\ndist/\n.turbo/\ngenerated/\n.env\n")
    for name, workspaces in DEPENDENCIES.items():
        monorepo.write(f"packages/{name}/src/a.js", f"export const name = '{name}';\n")
        manifest = {
            "name": name,
            "version": "1.0.0",
            "scripts": {task: f"echo {task}" for task in ("build", "test", "lint")},
            "dependencies": {**dict.fromkeys(workspaces, "*"), **EXTERNAL.get(name, {})},
        }
        monorepo.write(f"packages/{name}/package.json", json.dumps(manifest, indent=2) + "\n")
    monorepo.write("package-lock.json", json.dumps(npm_lockfile(), indent=2) + "\n")
    monorepo.git("init", "--quiet", "--initial-branch=main")
    monorepo.commit()
    return monorepo


def npm_lockfile(**versions: str) -> dict[str, Any]:
    """The lockfile of npm. `versions` replaces those of external packages."""
    packages: dict[str, Any] = {"": {"name": "twelve-tasks", "workspaces": ["packages/*"]}}
    for name, workspaces in DEPENDENCIES.items():
        external = EXTERNAL.get(name, {})
        packages[f"node_modules/{name}"] = {"resolved": f"packages/{name}", "link": True}
        packages[f"packages/{name}"] = {
            "version": "1.0.0",
            "dependencies": {**dict.fromkeys(workspaces, "*"), **external},
        }
        for package, version in {**external, **{k: v for k, v in versions.items() if k in external}}.items():
            address = f"https://registry.npmjs.org/{package}/-/{package}-{version}.tgz"
            packages[f"node_modules/{package}"] = {"version": version, "resolved": address}
    return {"name": "twelve-tasks", "lockfileVersion": 3, "requires": True, "packages": packages}
