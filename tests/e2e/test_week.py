"""A working week of eight people and CI with the real turbo: what the overview says at the end of each day.

Each day has one trouble, which the next morning ends. What a day cost is added up from turbo's own records of the runs.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from . import console, turbo, twelve_tasks
from .browser import Browser
from .cloud import LocalCloud
from .console import Person
from .twelve_tasks import Monorepo

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

NAMES = ("Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana")
TASKS = ("build", "test", "lint")
SECONDS = {"build": 0.4, "test": 0.2, "lint": 0.1}
CHANGED, UNUSED = "a change", "did not use the cache"
"""What explains what a run built, if no other trouble does."""


@dataclass
class Team:
    """`cost_ms` is the build time of each trouble, and `outcomes` counts the tasks of runs that used the cache."""

    cloud: LocalCloud
    larder: Path
    origin: Monorepo
    folder: Path
    slug: str
    keys: dict[str, str]
    cost_ms: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    saved_ms: int = 0

    def checkout(self, name: str) -> Monorepo:
        """Where someone works, at the newest commit. CI begins with nothing each time."""
        root = self.folder / name
        if name == "ci":
            shutil.rmtree(root, ignore_errors=True)
        checkout = Monorepo(root, self.origin.command, self.origin.version, self.origin.home)
        if root.exists():
            checkout.git("pull", "--quiet")
        else:
            self.origin.git("clone", "--quiet", str(self.origin.root), str(root))
        return checkout

    def builds(self, name: str, *, because: str = CHANGED, before: Any = None, **variables: str) -> None:
        """Build the newest commit. `because` is the trouble that explains what is not restored."""
        checkout = self.checkout(name)
        if before is not None:
            before(checkout)
        remote = {"TURBO_API": self.cloud.url, "TURBO_TEAM": self.slug, "TURBO_TOKEN": self.keys[name]}
        ci: dict[str, str] = {}
        if name == "ci":
            head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=checkout.root, text=True).strip()
            ci = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "main", "GITHUB_SHA": head}
        flags = ["--cache=local:rw"] if because == UNUSED else []
        runs = checkout.root / ".turbo" / "runs"
        known = set(runs.glob("*.json"))
        done = subprocess.run(
            [sys.executable, self.larder, "run", "--", checkout.command, "run", *TASKS, *flags],
            cwd=checkout.root,
            env={**checkout.environment, **remote, **ci, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (file,) = set(runs.glob("*.json")) - known
        for task in json.loads(file.read_text())["tasks"]:
            is_hit = task["cache"]["status"] == "HIT"
            if not is_hit:
                self.cost_ms[because] += task["execution"]["endTime"] - task["execution"]["startTime"]
            if because != UNUSED:
                self.outcomes["hits" if is_hit else "built"] += 1
                self.saved_ms += task["cache"]["timeSaved"]


def _set_scripts(scripts: dict[str, str], manifest: dict[str, Any]) -> None:
    manifest["scripts"] = scripts


@pytest.fixture
def acme(server: LocalCloud, page: Browser, tools: Path, larder: Path, tmp_path: Path, home: Path) -> Team:
    origin_folder = tmp_path / "origin"
    origin_folder.mkdir()
    command = turbo.installed(turbo.NEWEST, tools / "turbo")
    origin = twelve_tasks.made(origin_folder, command, turbo.NEWEST, home)
    for package in twelve_tasks.DEPENDENCIES:
        scripts = {task: f"sleep {seconds}" for task, seconds in SECONDS.items()}
        scripts["build"] += f" && mkdir -p dist && echo {package} > dist/out"
        origin.change_json(f"packages/{package}/package.json", partial(_set_scripts, scripts))
    origin.commit()

    ada = Person()
    console.sign_up(page, server, ada)
    slug = f"week-{origin_folder.stat().st_ino}"
    with console.api(page, server) as api:
        team = console.sent(api, "/v1/teams", {"name": "Acme", "slug": slug})
        keys = {
            name: console.sent(api, "/api/auth/api-key/create", {"name": name, "teamId": team["id"]})["key"]
            for name in ("ci", *NAMES)
        }
    return Team(server, larder, origin, tmp_path, slug, keys)


def seconds_of(text: str) -> float:
    units = {"ms": 0.001, "s": 1, "min": 60, "h": 3_600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (ms|s|min|h)\b", text))


def check_overview(page: Browser, acme: Team, *troubles: str) -> None:
    """The sentence has the figures of turbo's own records, and the findings are these troubles by their cost."""
    page.open(f"{acme.cloud.url}/console/t/{acme.slug}")
    page.wait_for_text("What to fix")
    tasks = acme.outcomes.total()
    page.wait_for_text(f"of {tasks:,} tasks came from a cache")
    sentence = page.run("return document.querySelector('.answer').innerText")
    share = float(sentence.partition("%")[0])
    assert share == pytest.approx(100 * acme.outcomes["hits"] / tasks, abs=0.5)
    assert f"and {acme.outcomes['built']:,} were built." in sentence
    saved = sentence.partition("That saved ")[2].partition(" of building")[0]
    assert seconds_of(saved) == pytest.approx(acme.saved_ms / 1_000, rel=0.02)
    found = page.run("return [...document.querySelectorAll('.findings li')].map((one) => one.innerText)")
    wanted = sorted(troubles, key=lambda trouble: -acme.cost_ms[trouble])
    assert [next((one for one in troubles if one in text), text) for text in found] == wanted
    for trouble, text in zip(wanted, found, strict=True):
        assert seconds_of(text.split("\n")[0]) == pytest.approx(acme.cost_ms[trouble] / 1_000, rel=0.05, abs=0.6)
    if troubles:
        assert f"{len(troubles)} thing{'s' * (len(troubles) > 1)} to fix" in sentence


def commit(acme: Team, name: str, text: str) -> None:
    """Someone changes a file, and CI builds it."""
    acme.origin.write(name, text)
    acme.origin.commit()


def test_a_week_of_eight_people(acme: Team, page: Browser) -> None:
    number = itertools.count()

    def everyone(**options: Any) -> None:
        for name in NAMES:
            acme.builds(name, **options)

    # Monday: three changes. Nothing is wrong.
    for package in ("web", "api", "lib"):
        commit(acme, f"packages/{package}/src/a.js", f"export const at = {next(number)};\n")
        acme.builds("ci")
    everyone()
    check_overview(page, acme)

    # Tuesday: the time of the build gets into the hashes of CI.
    variable = "NEXT_PUBLIC_BUILD_TIME"
    acme.origin.change_task("build", env=["API_URL", variable])
    acme.origin.commit()
    acme.builds("ci", **{variable: "0"})
    for _ in range(4):
        acme.builds("ci", because=variable, **{variable: str(next(number))})
    check_overview(page, acme, variable)

    # Wednesday: that is over, and a script writes a file into the sources of api.
    acme.origin.change_task("build", env=["API_URL"])
    acme.origin.commit()
    acme.builds("ci")
    written = "packages/api/src/build-info.js"
    for _ in range(4):
        acme.builds("ci", because=written, before=lambda one: one.write(written, f"at = {next(number)};\n"))
    check_overview(page, acme, variable, written)

    # Thursday: git ignores it. Four people have other line endings than CI.
    commit(acme, ".gitignore", f"{acme.origin.path('.gitignore').read_text()}{written}\n")
    acme.builds("ci")
    endings = "packages/ui/src/a.js"

    def convert(checkout: Monorepo) -> None:
        checkout.write(endings, checkout.path(endings).read_text().replace("\n", "\r\n"))

    for name in NAMES[:4]:
        acme.builds(name, because=endings, before=convert)
        acme.checkout(name).git("checkout", "--quiet", "--", ".")
    check_overview(page, acme, variable, written, endings)

    # Friday: two new computers build without the cache.
    for name in NAMES[6:]:
        shutil.rmtree(acme.folder / name)
        acme.builds(name, because=UNUSED)
    check_overview(page, acme, variable, written, endings, UNUSED)
