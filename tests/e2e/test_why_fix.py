"""`larder why --fix` with the real turbo, on repositories with one seeded cause each: the edit is proven, or refused
with the reason. What it says about hashes is compared with turbo's own, in the checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from larder_cli.main import cli

from . import turbo, twelve_tasks
from .twelve_tasks import Monorepo

pytestmark = pytest.mark.e2e

VERSIONS = ("2.3.4", turbo.NEWEST)
TASKS = ("build", "test", "lint")
TSC = {"build": "tsc", "test": "jest", "lint": "prettier --check ."}

Change = Callable[[Monorepo], object]
SOURCE = "packages/lib/src/a.js"


@dataclass(frozen=True)
class Seed:
    """A cause: `before` is committed, and the run has `change` more than its baseline.

    `edit` is the kind of edit, and `changed` the files that it changes, each with a text that it then has. If they are
    empty, the edit is refused, or there is none: `text` says why. `keep` are the tasks with the same hash, without and
    with the edit.
    """

    before: Change
    change: Change
    edit: str | None
    text: str = ""
    keep: tuple[int, ...] = ()
    changed: Mapping[str, str] | None = None
    builds: bool = False


def both(*changes: Change) -> Change:
    def change(monorepo: Monorepo) -> None:
        for one in changes:
            one(monorepo)

    return change


def write(name: str, text: str) -> Change:
    return lambda monorepo: monorepo.write(name, text)


def nothing(_: Monorepo) -> None:
    """No preparation."""


def commented(monorepo: Monorepo) -> None:
    """turbo.json with a comment and lists in lines, which the edit has to keep."""
    text = monorepo.path("turbo.json").read_text()
    monorepo.write("turbo.json", "// Ours, see docs.\n" + text.replace('"BUILD_TIME"', '"BUILD_TIME" // for the log'))


def variable(name: str) -> Change:
    def change(monorepo: Monorepo) -> None:
        monorepo.variables[name] = monorepo.variables.get(name, "1") + "1"

    return change


def commit(monorepo: Monorepo) -> None:
    monorepo.commit()


def commands(**scripts: str) -> Change:
    """The scripts of lib."""
    return lambda monorepo: monorepo.change_json(
        "packages/lib/package.json", lambda document: document["scripts"].update(scripts)
    )


def task(name: str, **settings: object) -> Change:
    return lambda monorepo: monorepo.change_task(name, **settings)


def shared(**settings: object) -> Change:
    return lambda monorepo: monorepo.change_turbo_json(**settings)


def lockfile(**versions: str) -> Change:
    return write("package-lock.json", json.dumps(twelve_tasks.npm_lockfile(**versions)))


def as_on_windows(monorepo: Monorepo) -> None:
    """The file has CRLF. Older versions of turbo read what git has written only for `inputs`, and newer ones never."""
    if monorepo.version == turbo.NEWEST:
        monorepo.write(SOURCE, monorepo.path(SOURCE).read_text().replace("\n", "\r\n"))
        return
    monorepo.git("config", "core.autocrlf", "true")
    monorepo.path(SOURCE).unlink()
    monorepo.git("checkout", "--quiet", "--", SOURCE)
    os.utime(monorepo.path(SOURCE), (1_000_000_000, 1_000_000_000))
    monorepo.git("update-index", "-q", "--refresh")


WRITES = "import {mkdirSync, writeFileSync} from 'node:fs'; mkdirSync('gen', {recursive: true}); "
WRITES += "writeFileSync('gen/x.js', String(process.hrtime.bigint()));"
BUILDS = both(commands(build="node build.mjs"), write("packages/lib/build.mjs", WRITES))
BUILD_TIME = task("build", env=["API_URL", "BUILD_TIME"])
README = "/".join(("packages", "lib", "README.md"))

FIXED = {
    "variable": Seed(both(BUILD_TIME, commented), variable("BUILD_TIME"), "variable", keep=(4, 12),
        changed={"turbo.json": '"passThroughEnv": ["BUILD_TIME"]'}),
    "global variable": Seed(shared(globalEnv=["CI_JOB_ID"]), variable("CI_JOB_ID"), "variable", keep=(0, 12),
        changed={"turbo.json": '"globalPassThroughEnv": ["CI_JOB_ID"]'}),
    "outputs": Seed(BUILDS, nothing, "outputs", keep=(0, 8), builds=True,
        changed={"turbo.json": '"gen/**"', ".gitignore": "/packages/lib/gen/"}),
    "inputs": Seed(both(commands(build="tsc -p .", test="jest", lint="tsc --noEmit"), write(README, "1\n")),
        both(write(README, "2\n"), commit), "inputs", keep=(3, 12),
        changed={"turbo.json": '"inputs": ["$TURBO_DEFAULT$", "!README.md"]'}),
    "lockfile": Seed(shared(globalDependencies=["package-lock.json"]), both(lockfile(express="4.18.1"), commit),
        "lockfile", keep=(0, 9), changed={"turbo.json": '"globalDependencies": []'}),
    "gitignore": Seed(nothing, write("packages/lib/.eslintcache", "[]"), "gitignore", keep=(3, 12),
        changed={".gitignore": ".eslintcache"}),
    "gitattributes": Seed(task("lint", inputs=["src/**"]), as_on_windows, "gitattributes",
        changed={".gitattributes": "* text=auto eol=lf"}),
}  # fmt: skip

REFUSED = {
    "a variable that a source reads": Seed(both(BUILD_TIME, write("packages/ui/src/b.js", "process.env.BUILD_TIME\n")),
        variable("BUILD_TIME"), "variable", "packages/ui/src/b.js:1 names BUILD_TIME"),
    "a variable of unknown use": Seed(nothing, variable("API_URL"), None, "Give it the same value everywhere."),
    "outputs with a file of git": Seed(task("build", outputs=["src/**"]), write(SOURCE, "2\n"), "outputs",
        f"`outputs` of lib#build has {SOURCE}, which is in git"),
    "a document that prettier reads": Seed(both(commands(**TSC), write(README, "1\n")),
        both(write(README, "2\n"), commit), "inputs", "nothing shows that `prettier --check .` of lib#lint"),
    "a document that a script reads": Seed(both(commands(build="node b.js"), write(README, "1\n"),
        write("packages/lib/b.js", "read('README')")), both(write(README, "2\n"), commit),
        "inputs", "packages/lib/b.js:1 names documents"),
    "a lockfile whose change reaches no package": Seed(shared(globalDependencies=["package-lock.json"]),
        write("package-lock.json", json.dumps(twelve_tasks.npm_lockfile())), "lockfile",
        "the change reaches no package"),
    "a new source": Seed(nothing, write("packages/lib/src/new.js", "1\n"), "outputs",
        "nothing shows which task writes packages/lib/src/new.js"),
    "line endings in git": Seed(write(SOURCE, "one;\ntwo;\n"), both(write(SOURCE, "one;\r\ntwo;\r\n"), commit),
        "gitattributes", f"git has {SOURCE} with CRLF"),
    "a source": Seed(nothing, both(write(SOURCE, "2\n"), commit), None, "Expected if you changed it."),
}  # fmt: skip


@pytest.fixture
def fresh(
    request: pytest.FixtureRequest, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Seed], tuple[Monorepo, list[str]]]:
    """Makes a repository with a cause, and works in it. Also the arguments of `larder why` that show the cause."""
    for name in [name for name in os.environ if name.startswith(("TURBO_", "GIT_"))]:
        monkeypatch.delenv(name)

    def make(version: str, seed: Seed) -> tuple[Monorepo, list[str]]:
        command = turbo.installed(version, request.config.rootpath / ".tools" / "turbo")
        (tmp_path / "monorepo").mkdir()
        monorepo = twelve_tasks.made(tmp_path / "monorepo", command, version, home)
        monorepo.variables["API_URL"] = "one"
        seed.before(monorepo)
        monorepo.commit()
        arguments = [*TASKS, "--against", str(tmp_path / "base.json")]
        if seed.builds:
            # Not at the same time as `lint`.
            monorepo.summarize("build", "test")
            monorepo.summarize("build", "test")
            arguments = ["--last"]
        (tmp_path / "base.json").write_bytes(monorepo.dry_run())
        seed.change(monorepo)
        for name, value in monorepo.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.chdir(monorepo.root)
        return monorepo, arguments

    return make


def larder(*arguments: str, status: int = 0) -> Any:
    result = CliRunner().invoke(cli, ["why", *arguments, "--json"], prog_name="larder")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)["fix"]


def contents(monorepo: Monorepo) -> dict[str, bytes]:
    """All files, also those of git, but not its index, which turbo refreshes, and the files of turbo."""
    return {
        str(path.relative_to(monorepo.root)): path.read_bytes()
        for path in sorted(monorepo.root.rglob("*"))
        if path.is_file() and ".turbo" not in path.parts and path.name != "index"
    }


def hashes(monorepo: Monorepo) -> dict[str, str]:
    return {one["taskId"]: one["hash"] for one in json.loads(monorepo.dry_run())["tasks"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FIXED)
def test_the_cause_is_fixed(fresh: Callable[..., tuple[Monorepo, list[str]]], version: str, name: str) -> None:
    seed = FIXED[name]
    monorepo, arguments = fresh(version, seed)
    before = contents(monorepo)
    shown = larder(*arguments, "--fix")
    assert contents(monorepo) == before
    fix, *others = shown["fixes"]
    assert {other["status"] for other in others} <= {"none"}
    assert (fix["status"], fix["edit"], fix["files"]) == ("proven", seed.edit, sorted(seed.changed or ())), fix
    keep, total = fix["keep"], shown["tasks"]
    assert (shown["hits"], shown["applied"]) == (keep, False)
    assert tuple(keep) == (seed.keep or (keep[0], total))
    assert keep[0] < keep[1]
    applied = larder(*arguments, "--fix", "--yes")
    assert applied == {**shown, "applied": True}
    after = contents(monorepo)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {*fix["files"]}
    for path, text in (seed.changed or {}).items():
        assert text in after[path].decode()
    undo(monorepo, fix["diff"])
    assert contents(monorepo) == before


def undo(monorepo: Monorepo, diff: str) -> None:
    subprocess.run(["git", "apply", "--reverse"], cwd=monorepo.root, input=diff.encode(), check=True)


@pytest.mark.parametrize("version", VERSIONS if os.environ.get("WHY_VERSIONS") == "all" else VERSIONS[-1:])
@pytest.mark.parametrize("name", REFUSED)
def test_no_wrong_edit(fresh: Callable[..., tuple[Monorepo, list[str]]], version: str, name: str) -> None:
    seed = REFUSED[name]
    monorepo, arguments = fresh(version, seed)
    before = contents(monorepo)
    shown = larder(*arguments, "--fix", "--yes")
    fix = shown["fixes"][0]
    assert (fix["edit"], fix["status"]) == (seed.edit, "refused" if seed.edit else "none"), fix
    assert fix["text"].startswith(seed.text)
    assert (fix["files"], fix["diff"], shown["hits"], shown["applied"]) == ([], "", [], False)
    assert contents(monorepo) == before
