"""`larder why` against a local cloud, with the real turbo: CI reports runs by ci/report-run.sh, and a laptop asks."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from larder_cli.main import cli
from tests.functions.usage.reports import GITHUB
from tests.functions.usage.test_hostile_reports import HOSTILE, body_of

from . import console, turbo, twelve_tasks
from .browser import Browser
from .cloud import COUNTS_AFTER_S, LocalCloud
from .console import Person
from .front import Fault, Passing, front
from .outbox import link_to
from .test_why import PLAYED, ROWS, VERSIONS, Row, causes
from .twelve_tasks import Monorepo

pytestmark = pytest.mark.e2e

SCRIPT = Path(__file__).resolve().parents[2] / "clients" / "ci" / "report-run.sh"
TASKS = ("build", "test", "lint")
EVERY_ROW = os.environ.get("WHY_VERSIONS") == "all"
SAMPLE = ("a source file in a commit",)
"""Rows of test_why.py that are also played here. `make proofs` plays all."""


@dataclass
class Team:
    """A team, the session and a key of its owner, and a checkout of its monorepo."""

    cloud: LocalCloud
    slug: str
    session: str
    token: str
    monorepo: Monorepo
    home: Path
    ci: dict[str, str] = field(default_factory=lambda: {"LARDER_CI": "GITHUB_ACTIONS"})

    def keeps(self, inputs: str) -> None:
        reply = httpx.patch(
            f"{self.cloud.url}/v2/teams/{self.slug}",
            json={"runInputs": inputs},
            headers={"Authorization": f"Bearer {self.session}"},
            trust_env=False,
        )
        assert reply.json()["runInputs"] == inputs

    @property
    def variables(self) -> dict[str, str]:
        return {"TURBO_API": self.cloud.url, "TURBO_TOKEN": self.token, "TURBO_TEAM": self.slug}

    def reports(self, *tasks: str, inputs: str = "values", **variables: str) -> dict[str, Any]:
        """Run the tasks in CI and report the run. Returns the summary of turbo."""
        file = self.monorepo.summarize(*(tasks or TASKS), **variables)
        self.report(file, inputs=inputs)
        return dict(json.loads(file.read_text()))

    def report(self, file: Path, *, inputs: str = "values") -> None:
        done = subprocess.run(
            ["sh", str(SCRIPT), str(file)],
            cwd=self.monorepo.root,
            env={**self.monorepo.environment, **self.variables, **self.ci, "LARDER_INPUTS": inputs},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")

    def why(self, *arguments: str, status: int = 0, **variables: str) -> str:
        """What `larder why` prints on a laptop."""
        environment = {**self.monorepo.environment, **self.variables, **variables}
        environment["PATH"] = f"{self.monorepo.command.parent}{os.pathsep}{environment['PATH']}"
        result = CliRunner().invoke(cli, ["why", *arguments], prog_name="larder", env=environment)
        assert result.exit_code == status, result.output
        assert self.token not in result.output
        return result.output


@pytest.fixture(scope="module")
def commands(request: pytest.FixtureRequest) -> dict[str, Path]:
    tools = request.config.rootpath / ".tools" / "turbo"
    return {version: turbo.installed(version, tools) for version in VERSIONS}


@pytest.fixture
def owner(local_cloud: LocalCloud) -> tuple[str, str]:
    """The address and the session of a user who has proven the address. Each may compare 60 runs an hour."""
    person = {"email": f"ada-{os.urandom(4).hex()}@acme.example", "name": "Ada", "password": os.urandom(12).hex()}
    with httpx.Client(base_url=local_cloud.url, trust_env=False, follow_redirects=True) as client:
        signed_up = client.post("/api/auth/sign-up/email", json=person)
        # Only who has signed up with an address can prove it.
        client.get(link_to(local_cloud, person["email"], "verify-email"))
    return person["email"], signed_up.json()["token"]


@pytest.fixture
def team(
    local_cloud: LocalCloud,
    commands: dict[str, Path],
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: tuple[str, str],
) -> Callable[..., Team]:
    """Makes a team that keeps codes of values, and works in its monorepo."""
    for name in [name for name in os.environ if name.startswith(("TURBO_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)

    def make(version: str = turbo.NEWEST, *, keeps: str = "values") -> Team:
        number = len(list(tmp_path.iterdir()))
        slug = f"acme-{os.urandom(4).hex()}"
        local_cloud.larder("teams", "create", "--name", "Acme", "--slug", slug, "--owner", owner[0])
        key = local_cloud.larder("keys", "create", "--user", owner[0], "--team", slug)["key"]
        folder = tmp_path / f"monorepo-{number}"
        folder.mkdir()
        monorepo = twelve_tasks.made(folder, commands[version], version, home)
        monorepo.variables["API_URL"] = "one"
        monkeypatch.chdir(folder)
        made = Team(local_cloud, slug, owner[1], key, monorepo, home)
        if keeps != "names":
            made.keeps(keeps)
        return made

    return make


def first_line(output: str) -> str:
    return output.splitlines()[0]


def test_a_team_that_does_not_explain_misses(team: Callable[..., Team]) -> None:
    acme = team(keeps="off")
    assert f"larder teams run-inputs {acme.slug} names" in acme.why("build", status=1)


def test_a_new_team_needs_one_build_and_no_setting(team: Callable[..., Team], larder: Path) -> None:
    """The build that the message names, and then a change."""
    acme = team(keeps="names")
    refused = acme.why("build", status=1)
    assert refused.startswith("Error: no baseline: no run has been reported yet")
    remedy = refused.strip().partition("A build reports itself: ")[2]
    assert remedy == "larder run -- npx turbo run build"
    line = remedy.replace("npx turbo", str(acme.monorepo.command)).replace("larder", f"{sys.executable} {larder}", 1)
    environment = {**acme.monorepo.environment, **acme.monorepo.variables, **acme.variables}
    subprocess.run(line.split(), cwd=acme.monorepo.root, env=environment, check=True, timeout=60)

    acme.monorepo.write("packages/lib/src/a.js", "other;\n")
    output = acme.why("build")
    assert "Compared 4 tasks with run " in output
    assert "1. file: packages/lib/src/a.js changed" in output


@pytest.mark.parametrize("version", PLAYED)
def test_a_laptop_with_another_value_than_ci(team: Callable[..., Team], version: str) -> None:
    acme = team(version)
    acme.reports(API_URL="https://ci")
    output = acme.why(*TASKS)
    head = first_line(output)
    assert head.startswith("Compared 12 tasks with run ")
    assert " of main at " in head
    assert "(the nearest commit, 20" in head
    assert head.endswith("4 with the same hash, 8 with another.")
    ((first, reach, _),) = causes(output)
    assert first.startswith("variable: API_URL changed -> 8 tasks")
    assert first.endswith("[setup]")
    assert reach == "api#build, lib#build, ui#build, web#build; then 4 that depend on them"
    acme.why(*TASKS, "--fail-on", "setup", status=3)
    # Values are not kept any longer, so a change between two values is only suspected.
    acme.keeps("names")
    ((first, *_),) = causes(acme.why(*TASKS))
    assert first.startswith("variable: perhaps the value of API_URL changed -> 8 tasks")


def test_the_edits_for_causes_that_the_deployment_has_found(team: Callable[..., Team]) -> None:
    acme = team()
    acme.reports()
    for name in (".eslintcache", "tsc.log"):
        acme.monorepo.write(f"packages/lib/{name}", "[]")
    shown = json.loads(acme.why(*TASKS, "--fix", "--yes", "--json"))
    assert [cause["more"] for cause in shown["causes"]] == [1]
    (fix,) = shown["fix"]["fixes"]
    assert (fix["status"], fix["keep"], shown["fix"]["applied"]) == ("proven", [3, 12], True)
    assert acme.monorepo.path(".gitignore").read_text().endswith("*.log\n.eslintcache\n")
    assert "nothing changed" in acme.why(*TASKS)


@pytest.mark.parametrize("name", ROWS if EVERY_ROW else SAMPLE)
def test_a_reported_run_has_the_causes_of_its_file(team: Callable[..., Team], name: str) -> None:
    """Also its classes, commits and hints, which come from git here."""
    row: Row = ROWS[name]
    acme = team()
    row.before(acme.monorepo)
    acme.monorepo.commit()
    row.uncommitted(acme.monorepo)
    acme.reports(*row.tasks)
    (file,) = (acme.monorepo.root / ".turbo" / "runs").glob("*.json")
    row.change(acme.monorepo)
    asked = json.loads(acme.why(*row.tasks, "--json"))
    compared = json.loads(acme.why(*row.tasks, "--against", str(file), "--json"))
    assert [without_texts(cause) for cause in asked["causes"]] == [without_texts(cause) for cause in compared["causes"]]
    for part in ("tasks", "changed", "sameHash", "new", "gone"):
        assert asked[part] == compared[part]


def without_texts(cause: dict[str, Any]) -> dict[str, Any]:
    """The deployment has digests of engines."""
    return {**cause, "values": []} if cause["kind"] == "engines" else cause


@pytest.mark.parametrize(
    "sort", [pytest.param(sort, marks=() if sort == "files" else pytest.mark.thorough) for sort in HOSTILE]
)
def test_a_hostile_report_of_the_commit_takes_no_cause_away(team: Callable[..., Team], sort: str) -> None:
    acme = team()
    commit = acme.reports()["scm"]["sha"]
    acme.monorepo.write("packages/ui/src/a.js", "other;\n")
    before = json.loads(acme.why(*TASKS, "--json"))
    body = body_of(sort, "a", changed=False) | {"id": f"hostile{sort}"}
    body["scm"] = {"type": "git", "sha": commit, "branch": "main"}
    reply = httpx.post(
        f"{acme.cloud.url}/v1/runs?slug={acme.slug}",
        content=gzip.compress(json.dumps(body).encode()),
        headers={**GITHUB, "content-encoding": "gzip", "authorization": f"Bearer {acme.token}"},
        timeout=30,
        trust_env=False,
    )
    assert reply.json()["recorded"]
    after = json.loads(acme.why(*TASKS, "--json"))
    # Each dry run has an id of its own.
    assert {**after, "run": None} == {**before, "run": None}
    ((cause, *_),) = causes(acme.why(*TASKS))
    assert cause.startswith("file: packages/ui/src/a.js changed")


@pytest.mark.thorough
def test_another_baseline(team: Callable[..., Team]) -> None:
    acme = team()
    main = acme.reports(API_URL="one")
    acme.monorepo.git("checkout", "--quiet", "-b", "branch")
    acme.monorepo.write("packages/ui/src/a.js", "other;\n")
    acme.monorepo.commit()
    branch = acme.reports(API_URL="one")
    assert "nothing changed" in acme.why(*TASKS)
    for against in ("main", main["id"]):
        shown = json.loads(acme.why(*TASKS, "--against", against, "--json"))
        assert (shown["baseline"]["id"], shown["baseline"]["chosen"]) == (main["id"], "asked")
        assert [cause["subject"] for cause in shown["causes"]] == ["packages/ui/src/a.js"]
    for against in ("ci", "last"):
        shown = json.loads(acme.why(*TASKS, "--against", against, "--json"))
        assert shown["baseline"]["id"] == branch["id"]
    assert "no reported run that can be compared is --against 36" in acme.why("build", "--against", "36CC", status=1)


@pytest.mark.thorough
def test_two_versions_of_turbo(team: Callable[..., Team], commands: dict[str, Path]) -> None:
    acme = team("2.3.4")
    acme.reports()
    acme.monorepo.command = commands[turbo.NEWEST]
    output = acme.why(*TASKS)
    assert "nothing changed: every hash is that of the baseline" in output
    assert f"note: turbo 2.3.4 -> {turbo.NEWEST}: both versions give the same hashes" in output


def test_what_became_of_a_hash(team: Callable[..., Team]) -> None:
    acme = team()
    run = acme.reports("build", **acme.variables)
    hash = next(task["hash"] for task in run["tasks"] if task["taskId"] == "lib#build")
    shown = acme.why(hash).splitlines()
    assert shown[0].startswith(f"lib#build {hash}: built 1 time (")
    assert shown[3:] == [
        "  branches    main",
        f"  commits     {run['scm']['sha'][:8]}",
        "  on          GITHUB_ACTIONS",
        "  stored      yes",
    ]
    assert acme.why("0" * 16).startswith(f"No reported run has {'0' * 16}.")


@pytest.mark.thorough
def test_arguments_of_a_reported_run(team: Callable[..., Team]) -> None:
    """A report has only a digest of them. The beginning of the id is enough."""
    acme = team()
    acme.reports("build")
    run = acme.reports("build", "--", "--watch")
    ((first, *_),) = causes(acme.why("--run", run["id"][:8]))
    assert first.startswith("arguments: arguments after -- changed -> 4 tasks, ")
    assert "has the id 36CC" in acme.why("--run", "36CC", status=1)


CLOCK_SKEW_S = 6


def built_again(acme: Team, *arguments: str, **variables: str) -> str:
    """Build in a new checkout, report the run, and return what is said about its hashes."""
    shutil.rmtree(acme.monorepo.root / ".turbo" / "cache", ignore_errors=True)
    # Events of the seconds before a run count as its own, because clocks differ.
    time.sleep(CLOCK_SKEW_S)
    run = acme.reports("build", *arguments, **{**acme.variables, **variables})
    (line,) = same_hash(acme.why("--run", run["id"]))
    return line


def same_hash(output: str) -> list[str]:
    """What `larder why` says about tasks with a known hash."""
    start = "same hash, not restored: "
    return [line.removeprefix(start) for line in output.splitlines() if line.startswith(start)]


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


EVERY_TASK = "api#build, lib#build, ui#build, web#build"


@pytest.mark.thorough
def test_a_forced_run(team: Callable[..., Team]) -> None:
    acme = team()
    acme.reports("build", **acme.variables)
    forced = built_again(acme, "--force")
    assert forced == f"4 tasks, the run did not ask the cache (forced): {EVERY_TASK}"


@pytest.mark.thorough
def test_a_run_without_the_remote_cache(team: Callable[..., Team]) -> None:
    acme = team()
    acme.reports("build", "--cache=local:rw", **acme.variables)
    assert built_again(acme, "--cache=local:rw") == (
        "4 tasks, probably the run did not ask the cache (the remote cache was off, or had no token): " + EVERY_TASK
    )


@pytest.mark.thorough
def test_another_signature_key(team: Callable[..., Team]) -> None:
    acme = team()
    acme.monorepo.change_turbo_json(remoteCache={"signature": True})
    acme.monorepo.commit()
    key = "TURBO_REMOTE_CACHE_SIGNATURE_KEY"
    acme.reports("build", **acme.variables, **{key: "one" * 20})
    assert built_again(acme, **{key: "two" * 20}) == (
        "4 tasks, probably Larder had it, and turbo could not use the answer (signature, error or connection): "
        + EVERY_TASK
    )


@pytest.mark.thorough
def test_a_deleted_artifact(team: Callable[..., Team]) -> None:
    acme = team()
    run = acme.reports("build", **acme.variables)
    hash = next(task["hash"] for task in run["tasks"] if task["taskId"] == "lib#build")
    manage(acme, "DELETE", f"/v1/artifacts/{hash}")
    assert built_again(acme) == f"1 task, deleted on {today()}: lib#build"


def make_web_write(acme: Team, size: int) -> None:
    """Let the build of web write that much, which does not compress."""
    write = f"mkdir -p dist && head -c {size} /dev/urandom > dist/large"
    acme.monorepo.change_json("packages/web/package.json", lambda one: one["scripts"].update(build=write))
    acme.monorepo.commit()


@pytest.mark.thorough
def test_an_artifact_that_is_too_large_without_preflight(team: Callable[..., Team]) -> None:
    acme = team()
    make_web_write(acme, 6_000_000)
    acme.reports("build", **acme.variables)
    assert built_again(acme) == (
        '1 task, too large without preflight, so never stored. Set "preflight": true: web#build'
    )


# The other reasons of docs/usage.md#same-hash-built-again ------------------------------------------


@pytest.mark.thorough
def test_no_token(team: Callable[..., Team]) -> None:
    acme = team()
    acme.reports("build", **acme.variables)
    assert built_again(acme, TURBO_TOKEN="") == (
        "4 tasks, probably the run did not ask the cache (the remote cache was off, or had no token): " + EVERY_TASK
    )


UNUSABLE = "4 tasks, probably Larder had it, and turbo could not use the answer (signature, error or connection): "


def failing(passing: Passing) -> None:
    passing.status, passing.body = 500, b"{}"
    passing.drop(b"content-length")


def cut(passing: Passing) -> None:
    """Half of the body, and the end of the connection as the end of the body."""
    passing.body = passing.body[: len(passing.body) // 2]
    passing.drop(b"content-length")


@pytest.mark.parametrize("change", [pytest.param(failing, marks=pytest.mark.thorough), cut])
def test_an_answer_that_turbo_cannot_use(team: Callable[..., Team], change: Callable[[Passing], None]) -> None:
    acme = team()
    acme.reports("build", **acme.variables)

    def back(passing: Passing) -> None:
        is_artifact = passing.method == "GET" and passing.path.startswith("/v8/artifacts/")
        if is_artifact and passing.status in (200, 302):
            change(passing)

    with front(acme.cloud.url, Fault(back=back, follows_redirects=True)) as url:
        assert built_again(acme, TURBO_API=url) == UNUSABLE + EVERY_TASK


@pytest.mark.thorough
def test_two_jobs_at_once(team: Callable[..., Team]) -> None:
    acme = team()
    slow = "sleep 3 && mkdir -p dist && echo built > dist/a"
    acme.monorepo.change_json("packages/lib/package.json", lambda one: one["scripts"].update(build=slow))
    acme.monorepo.commit()
    # Runs are compared with one that began before.
    acme.reports("build", API_URL="zero")
    copy = acme.monorepo.root.with_name("other-job")
    shutil.copytree(acme.monorepo.root, copy, symlinks=True)
    other = replace(acme, monorepo=replace(acme.monorepo, root=copy))
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(job.monorepo.summarize, "build", **job.variables) for job in (acme, other)]
        files = [job.result() for job in jobs]
    runs = sorted(
        ((json.loads(file.read_text()), file) for file in files), key=lambda one: one[0]["execution"]["startTime"]
    )
    for _, file in runs:
        acme.report(file)
    run, _ = runs[1]
    (line,) = same_hash(acme.why("--run", run["id"]))
    assert line.endswith(f", another run built it at the same time: {EVERY_TASK}")


def manage(acme: Team, method: str, path: str, **query: str | int) -> None:
    reply = httpx.request(
        method,
        f"{acme.cloud.url}{path}",
        params={"slug": acme.slug, **query},
        headers={"Authorization": f"Bearer {acme.session}"},
        trust_env=False,
    )
    assert reply.is_success, reply.text


@pytest.mark.thorough
def test_a_quota_that_is_too_small(team: Callable[..., Team]) -> None:
    acme = team()
    make_web_write(acme, 300_000)
    acme.cloud.larder("teams", "set", acme.slug, "--quota", "100kB", "--yes")
    acme.reports("build", **acme.variables)
    assert built_again(acme) == (f"1 task, probably the upload was refused (the quota is full) on {today()}: web#build")


@pytest.mark.thorough
def test_without_git_the_causes_are_the_same(team: Callable[..., Team]) -> None:
    acme = team()
    acme.reports(API_URL="two")
    (acme.monorepo.root / ".git").rename(acme.monorepo.root / "no-git")
    shown = json.loads(acme.why(*TASKS, "--json"))
    assert "API_URL" in [cause["subject"] for cause in shown["causes"]]


@pytest.mark.thorough
def test_what_to_fix_is_what_was_broken(team: Callable[..., Team], local_cloud: LocalCloud, page: Browser) -> None:
    """A script that writes into the sources, other line endings on a laptop, a quota that one artifact exceeds, and an
    update of the lockfile.
    """
    acme = team()
    local_cloud.larder("teams", "set", acme.slug, "--quota", "200kB", "--yes")
    time.sleep(COUNTS_AFTER_S)
    large = {"build": "mkdir -p dist && head -c 300000 /dev/urandom > dist/large"}
    acme.monorepo.change_json("packages/web/package.json", lambda one: one["scripts"].update(large))
    acme.monorepo.commit()
    written, converted = (acme.monorepo.path(f"packages/{name}") for name in ("api/src/build-info.js", "ui/src/a.js"))
    for lodash in ("4.17.20", "4.17.21"):
        written.unlink(missing_ok=True)
        lockfile = json.dumps(twelve_tasks.npm_lockfile(lodash=lodash), indent=2)
        acme.monorepo.write("package-lock.json", f"{lockfile}\n")
        acme.monorepo.commit()
        for ci, ending in (("GITHUB_ACTIONS", b"\n"), ("", b"\r\n"), ("GITHUB_ACTIONS", b"\n")):
            acme.ci = {"LARDER_CI": ci}
            written.write_text(f"export const at = {time.time_ns()};\n")
            converted.write_bytes(converted.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", ending))
            shutil.rmtree(acme.monorepo.root / ".turbo" / "cache", ignore_errors=True)
            acme.reports("build", **acme.variables)

    person = Person()
    console.sign_up(page, local_cloud, person)
    local_cloud.larder("teams", "add-member", acme.slug, person.email, "--unverified")
    page.open(f"{local_cloud.url}/console/t/{acme.slug}/runs")
    page.wait_for_text("What to fix")
    findings = page.run("return document.querySelector('.findings').innerText")
    for finding in (
        "packages/api/src/build-info.js changed (not in git)",
        "although the hash was known: the upload was refused",
        "computers and CI differ: file: packages/ui/src/a.js changed (only its line endings differ)",
        "lockfile: external dependencies of",
    ):
        assert finding in findings
    assert page.errors() == []
