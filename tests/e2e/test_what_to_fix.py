"""*What to fix* in the console, from runs of the real turbo: what was broken, in order of the build time.

CI and a laptop of a team build a monorepo in which four things cost hits: an update of the lockfile, a task that writes
into its sources, other line endings on the laptop, and a quota that is too small for one artifact.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from . import console, twelve_tasks
from .browser import Browser
from .console import Person
from .test_why_reports import Team, commands, owner, team

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

__all__ = ["commands", "owner", "team"]

SECONDS = {"lib": 0.2, "ui": 2, "api": 1.5, "web": 0.3}
"""How long each build takes. They decide the order."""

LARGE = "head -c 300000 /dev/urandom > dist/large"
UNSTABLE = "date +%N > src/build-info.js"


def scripts(acme: Team) -> None:
    writes = {"web": LARGE, "api": UNSTABLE}
    for name, seconds in SECONDS.items():
        path = f"packages/{name}/package.json"
        manifest = json.loads(acme.monorepo.path(path).read_text())
        write = writes.get(name, "echo > dist/a")
        manifest["scripts"]["build"] = f"sleep {seconds} && mkdir -p dist && {write}"
        acme.monorepo.write(path, json.dumps(manifest))


def builds(acme: Team, times: int = 1) -> None:
    """Build as jobs of CI do: without a local cache."""
    for _ in range(times):
        shutil.rmtree(acme.monorepo.root / ".turbo" / "cache", ignore_errors=True)
        acme.reports("build", **acme.variables)


def test_the_findings_are_what_was_broken(team: Callable[..., Team], page: Browser) -> None:
    acme = team()
    scripts(acme)
    acme.monorepo.commit()
    acme.cloud.larder("teams", "set", acme.slug, "--quota", "200kB")
    builds(acme, times=4)
    lockfile = twelve_tasks.npm_lockfile(lodash="4.17.21")
    acme.monorepo.write("package-lock.json", json.dumps(lockfile))
    # Only the lockfile: what the unstable task writes is not in git.
    acme.monorepo.git("commit", "--quiet", "--message=Update lodash", "package-lock.json")
    builds(acme)
    acme.ci = {}
    source = acme.monorepo.path("packages/ui/src/a.js")
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    builds(acme)

    person = Person()
    page.look(width=1280)
    console.sign_up(page, acme.cloud, person)
    acme.cloud.larder("teams", "add-member", acme.slug, person.email, "--unverified")
    page.open(f"{acme.cloud.url}/console/t/{acme.slug}/runs")
    page.wait_for_text("What to fix")
    found = page.run(
        "return [...document.querySelectorAll('.findings li')].map((one) => one.innerText)"
    )
    wanted = (
        "packages/api/src/build-info.js changed (not in git)",
        "external dependencies of lib changed",
        "computers and CI differ: file: packages/ui/src/a.js changed (only its line endings differ)",
        "web#build: built 3 times although the hash was known: the upload was refused",
    )
    assert len(found) == len(wanted), found
    for text, line in zip(wanted, found, strict=True):
        assert text in line
    assert page.errors() == []
