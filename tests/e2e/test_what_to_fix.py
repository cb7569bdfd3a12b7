"""*What to fix* in the console, from a week of a team of eight with the real turbo: what was broken, in order of time.

Everyone works as on the working days of tools/benchmarks/working_day, and reports each build. Four things cost hits: an
update of the lockfile, a script that writes into the sources, other line endings on a laptop, and a quota that is too
small for one artifact.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.issuer import serving
from tools.benchmarks.working_day.model import Place, Policy
from tools.benchmarks.working_day.plan import Day, Step
from tools.benchmarks.working_day.play import Builder, Team

from . import console, turbo
from .browser import Browser
from .cloud import COUNTS_AFTER_S, LocalCloud
from .console import Person

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

SCRIPT = Path(__file__).resolve().parents[2] / "clients" / "ci" / "report-run.sh"
DAY = Day(engineers=8, changes=2, pushes=1, builds=1, packages=12, seed=5)
DAYS = 5

LARGE = "package-11"
"""Its artifact has more bytes than the quota."""
UNSTABLE = "package-10"
EXTERNAL = {"package-00": "lodash", "package-01": "lodash", "package-08": "express"}
"""What packages use. `lodash` is updated, and all packages depend on one that uses it."""
CONVERTED = "package-02"
"""Its line endings differ on one laptop."""
OTHER_LAPTOP = "laptop-7"

MINUTES = {UNSTABLE: 1}
"""How long the summaries say that a build takes, two minutes by default. It decides the order."""


def week() -> list[Step]:
    """Five working days, with changes of other engineers on each."""
    days = [replace(DAY, seed=DAY.seed + number).steps() for number in range(DAYS)]
    return [
        replace(
            step,
            engineer=(step.engineer + number * DAY.changes) % DAY.engineers,
            change=step.change and step.change + number * DAY.changes,
        )
        for number, steps in enumerate(days)
        for step in steps
    ]


class Week(Team):
    """A team in which everyone reports each build."""

    def break_something(self) -> None:
        """Before the first day. The laptops get it when they pull."""
        self._ci.restart_at_main()
        root = self._ci.root
        for name, external in EXTERNAL.items():
            manifest = root / "packages" / name / "package.json"
            content = json.loads(manifest.read_text())
            content["dependencies"][external] = "^4.0.0"
            manifest.write_text(json.dumps(content, indent=2) + "\n")
        script = root / "packages" / LARGE / "build.sh"
        script.write_text(script.read_text() + "head -c 300000 /dev/urandom > dist/large\n")
        self.update_lockfile("4.17.20")

    def update_lockfile(self, version: str) -> None:
        """Merge an update of `lodash`."""
        self._ci.restart_at_main()
        lockfile = self._ci.root / "package-lock.json"
        content = json.loads(lockfile.read_text())
        packages = content["packages"]
        for name, external in EXTERNAL.items():
            packages[f"packages/{name}"].setdefault("dependencies", {})[external] = "^4.0.0"
            packages[f"node_modules/{external}"] = {
                "version": version if external == "lodash" else "4.18.0",
                "resolved": f"https://registry.npmjs.org/{external}",
            }
        lockfile.write_text(json.dumps(content, indent=2) + "\n")
        self._ci.commit(f"Update lodash to {version}")
        self._ci.git("push", "--quiet", "origin", "HEAD:main")

    def build(self, builder: Builder) -> None:
        root = builder.checkout.root
        with self._written(builder):
            super().build(builder)
            (summary,) = (root / ".turbo" / "runs").glob("*.json")
            self._report(builder, summary)
        summary.unlink()

    @contextlib.contextmanager
    def _written(self, builder: Builder) -> Iterator[None]:
        """What is not in git, but there when turbo runs."""
        packages = builder.checkout.root / "packages"
        generated = packages / UNSTABLE / "src" / "build-info.js"
        generated.write_text(f"export const builtAt = {time.time_ns()};\n")
        converted = packages / CONVERTED / "src" / "index.js"
        content = converted.read_bytes()
        if builder.site.machine == OTHER_LAPTOP:
            converted.write_bytes(content.replace(b"\n", b"\r\n"))
        yield
        generated.unlink()
        converted.write_bytes(content)

    def _report(self, builder: Builder, summary: Path) -> None:
        content = json.loads(summary.read_text())
        for task in content["tasks"]:
            if task["cache"]["status"] == "MISS":
                minutes = MINUTES.get(task["package"].removeprefix("@sample/"), 2)
                ran = task["execution"]
                ran["endTime"] = ran["startTime"] + minutes * 60_000
        summary.write_text(json.dumps(content))
        ci = "" if builder.site.place is Place.LAPTOPS else "GITHUB_ACTIONS"
        done = subprocess.run(
            ["sh", str(SCRIPT), str(summary)],
            cwd=builder.checkout.root,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(builder.client.home),
                **builder.client.remote_cache,
                "LARDER_CI": ci,
                "LARDER_INPUTS": "values",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def team(server: LocalCloud, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Week]:
    command = turbo.installed(turbo.NEWEST, request.config.rootpath / ".tools" / "turbo")
    with serving() as issuers:
        server.larder("issuers", "add", issuers.url)
        made = Week(
            Policy.OPEN,
            DAY,
            cloud=server,
            issuer=issuers.issuer(),
            command=command,
            folder=tmp_path / "team",
        )
        server.larder("teams", "set", made.slug, "--quota", "200kB")
        server.larder("teams", "run-inputs", made.slug, "values")
        time.sleep(COUNTS_AFTER_S)
        yield made


def test_the_findings_are_what_was_broken(team: Week, server: LocalCloud, page: Browser) -> None:
    team.break_something()
    team.begin()
    steps = week()
    for number, step in enumerate(steps):
        if number == len(steps) // 2:
            team.update_lockfile("4.17.21")
        team.play(step)

    person = Person()
    console.sign_up(page, server, person)
    server.larder("teams", "add-member", team.slug, person.email, "--unverified")
    page.open(f"{server.url}/console/t/{team.slug}/runs")
    page.wait_for_text("What to fix")
    found = page.run(
        "return [...document.querySelectorAll('.findings li')].map((one) => one.innerText)"
    )
    wanted = (
        f"packages/{UNSTABLE}/src/build-info.js changed (not in git)",
        f"{LARGE}#build: built 35 times although the hash was known: the upload was refused",
        f"computers and CI differ: file: packages/{CONVERTED}/src/index.js changed (only its line endings differ)",
        "lockfile: external dependencies of",
    )
    assert len(found) == len(wanted), found
    for text, line in zip(wanted, found, strict=True):
        assert text in line, found
    assert page.errors() == []
