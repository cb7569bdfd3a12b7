"""`larder why --fix` with the real turbo, on repositories with one seeded cause each: the edit is proven, or refused
with the reason. What it says about hashes is compared with turbo's own, in the checkout.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import turbo, twelve_tasks
from .test_why import (
    Change,
    all_of,
    commands,
    commit,
    delete,
    fresh,
    larder,
    lockfile,
    manifest,
    next_app,
    nothing,
    shared,
    task,
    use_turbo_of,
    variable,
    write,
)
from .twelve_tasks import Monorepo

__all__ = ["commands", "fresh"]
pytestmark = pytest.mark.e2e

VERSIONS = ("2.3.4", turbo.NEWEST)
SOURCE = "packages/lib/src/a.js"
README = str(Path("packages", "lib", "README.md"))
LIB = "packages/lib/package.json"


@dataclass(frozen=True)
class Seed:
    """A cause: `before` is committed, and the run has `change` more than its baseline.

    `edit` is the kind of edit, and `changed` the files that it changes, each with a text that it then has. `keep` are
    the tasks with the same hash, without and with the edit. After the edit, `again` gives no hashes but those of
    `keep`. If the edit is refused, or there is none, `text` says why.
    """

    before: Change
    change: Change
    edit: str | None
    text: str = ""
    keep: tuple[int, ...] = ()
    changed: Mapping[str, str] | None = None
    again: Change = nothing
    builds: bool = False


def commented(monorepo: Monorepo) -> None:
    """turbo.json with comments and lists in lines, which the edit has to keep."""
    text = monorepo.path("turbo.json").read_text()
    monorepo.write("turbo.json", "// Ours, see docs.\n" + text.replace('"BUILD_TIME"', '"BUILD_TIME" // for the log'))


def as_on_windows(monorepo: Monorepo) -> None:
    """The file has CRLF. Older versions of turbo read what git has written only for `inputs`, and newer ones never."""
    if monorepo.version == turbo.NEWEST:
        monorepo.write(SOURCE, monorepo.path(SOURCE).read_text().replace("\n", "\r\n"))
        return
    monorepo.git("config", "core.autocrlf", "true")
    written_by_git(monorepo)
    os.utime(monorepo.path(SOURCE), (1_000_000_000, 1_000_000_000))
    monorepo.git("update-index", "-q", "--refresh")


def written_by_git(monorepo: Monorepo) -> None:
    monorepo.path(SOURCE).unlink()
    monorepo.git("checkout", "--quiet", "--", SOURCE)


WRITES = "import {mkdirSync, writeFileSync} from 'node:fs'; mkdirSync('gen', {recursive: true}); "
WRITES += "writeFileSync('gen/x.js', String(process.hrtime.bigint())); writeFileSync('gen/y.js', '');"
BUILDS = all_of(manifest(LIB, "scripts", build="node build.mjs"), write("packages/lib/build.mjs", WRITES))
BUILD_TIME = task("build", env=["API_URL", "BUILD_TIME"])

PACKAGE = '{"extends": ["//"], "tasks": {"build": {"env": ["API_URL", "GIT_SHA"]}}} // of ui'

FIXED = {
    "variable": Seed(all_of(BUILD_TIME, commented), variable("BUILD_TIME", "2"), "variable", keep=(4, 12),
        changed={"turbo.json": '"API_URL"\n      ],\n      "passThroughEnv": ["BUILD_TIME"]\n'},
        again=variable("BUILD_TIME", "3")),
    "global variable": Seed(shared(globalEnv=["CI_JOB_ID"]), variable("CI_JOB_ID", "2"), "variable", keep=(0, 12),
        changed={"turbo.json": '"globalEnv": [],\n  "globalPassThroughEnv": ["CI_JOB_ID"]'},
        again=variable("CI_JOB_ID", "3")),
    "inferred variable": Seed(next_app, variable("NEXT_PUBLIC_SHA", "2"), "variable", keep=(9, 12),
        changed={"turbo.json": '"!NEXT_PUBLIC_SHA"'}, again=variable("NEXT_PUBLIC_SHA", "3")),
    "variable of a package": Seed(write("packages/ui/turbo.json", PACKAGE), variable("GIT_SHA", "2"), "variable",
        keep=(8, 12), changed={"packages/ui/turbo.json": '"passThroughEnv": ["GIT_SHA"]}}} // of ui'},
        again=variable("GIT_SHA", "3")),
    "outputs": Seed(BUILDS, nothing, "outputs", keep=(0, 8), builds=True, again=write("packages/lib/gen/x.js", "other"),
        changed={"turbo.json": '"gen/**"', ".gitignore": "/packages/lib/gen/"}),
    "inputs": Seed(all_of(manifest(LIB, "scripts", build="tsc -p .", test="jest", lint="tsc --noEmit"),
        write(README, "1\n")), all_of(write(README, "2\n"), commit), "inputs", keep=(3, 12),
        changed={"turbo.json": '"inputs": ["$TURBO_DEFAULT$", "!README.md"]'}, again=write(README, "3\n")),
    "lockfile": Seed(shared(globalDependencies=["package-lock.json"]), all_of(lockfile(express="4.18.1"), commit),
        "lockfile", keep=(0, 9), changed={"turbo.json": '"globalDependencies": []'}, again=lockfile(express="4.18.2")),
    "gitignore": Seed(nothing, write("packages/lib/.eslintcache", "[]"), "gitignore", keep=(3, 12),
        changed={".gitignore": ".eslintcache"}, again=delete("packages/lib/.eslintcache")),
    "gitattributes": Seed(task("lint", inputs=["src/**"]), as_on_windows, "gitattributes", again=written_by_git,
        changed={".gitattributes": "* text=auto eol=lf"}),
}  # fmt: skip

REFUSED = {
    "a variable that a source reads": Seed(all_of(BUILD_TIME, write("packages/ui/src/b.js", "env.BUILD_TIME\n")),
        variable("BUILD_TIME", "2"), "variable", "packages/ui/src/b.js:1 names BUILD_TIME"),
    "a variable of unknown use": Seed(nothing, variable("API_URL", "2"), None, "Give it the same value everywhere."),
    "outputs with a file of git": Seed(task("build", outputs=["src/**"]), write(SOURCE, "2\n"), "outputs",
        f"`outputs` of lib#build has {SOURCE}, which is in git"),
    "a document that prettier reads": Seed(all_of(manifest(LIB, "scripts", build="tsc", test="jest",
        lint="prettier --check ."), write(README, "1\n")),
        all_of(write(README, "2\n"), commit), "inputs", "nothing shows that `prettier --check .` of lib#lint"),
    "a document that a script reads": Seed(all_of(manifest(LIB, "scripts", build="node b.js"), write(README, "1\n"),
        write("packages/lib/b.js", "read('README')")), all_of(write(README, "2\n"), commit),
        "inputs", "packages/lib/b.js:1 names documents"),
    "a lockfile whose change reaches no package": Seed(shared(globalDependencies=["package-lock.json"]),
        write("package-lock.json", json.dumps(twelve_tasks.npm_lockfile())), "lockfile",
        "the change reaches no package"),
    "a new source": Seed(nothing, write("packages/lib/src/new.js", "1\n"), "outputs",
        "nothing shows which task writes packages/lib/src/new.js"),
    "a folder that nothing names": Seed(
        all_of(BUILDS, write("packages/lib/build.mjs", WRITES.replace("gen", "g'+'en"))), nothing,
        "outputs", "packages/lib/gen/x.js can be a source", builds=True),
    "line endings in git": Seed(write(SOURCE, "one;\ntwo;\n"), all_of(write(SOURCE, "one;\r\ntwo;\r\n"), commit),
        "gitattributes", f"git has {SOURCE} with CRLF"),
    "a source": Seed(nothing, all_of(write(SOURCE, "2\n"), commit), None, "Expected if you changed it."),
}  # fmt: skip


@pytest.fixture
def seeded(fresh: Callable[[str], Monorepo], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a repository with a cause, and works in it. Also the arguments of `larder why` that show the cause."""

    def make(version: str, seed: Seed) -> tuple[Monorepo, list[str]]:
        monorepo = fresh(version)
        seed.before(monorepo)
        monorepo.commit()
        base = monorepo.root.with_name("base.json")
        base.write_bytes(monorepo.dry_run())
        arguments = ["build", "test", "lint", "--against", str(base), "--fix"]
        if seed.builds:
            # Not at the same time as `lint`. The last two differ in one of the files that they write.
            for _ in range(3):
                monorepo.summarize("build", "test")
            arguments = ["--last", "--fix"]
        seed.change(monorepo)
        use_turbo_of(monorepo, monkeypatch)
        return monorepo, arguments

    return make


def fixes(*arguments: str) -> Any:
    return json.loads(larder(*arguments, "--json"))["fix"]


def contents(monorepo: Monorepo) -> dict[str, bytes]:
    """All files, also those of git, but not its index, which turbo refreshes, and the files of turbo."""
    return {
        str(path.relative_to(monorepo.root)): path.read_bytes()
        for path in sorted(monorepo.root.rglob("*"))
        if path.is_file() and ".turbo" not in path.parts and path.name != "index"
    }


def hashes(monorepo: Monorepo, ids: int) -> set[tuple[str, str]]:
    tasks = ("build", "test", "lint") if ids == 12 else ("build", "test")
    return {(one["taskId"], one["hash"]) for one in json.loads(monorepo.dry_run(tasks=tasks))["tasks"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FIXED)
def test_the_cause_is_fixed(seeded: Callable[..., Any], version: str, name: str) -> None:
    seed = FIXED[name]
    monorepo, arguments = seeded(version, seed)
    before = contents(monorepo)
    shown = fixes(*arguments)
    assert contents(monorepo) == before
    fix, *others = shown["fixes"]
    assert {other["status"] for other in others} <= {"none"}
    assert (fix["status"], fix["edit"], fix["files"]) == ("proven", seed.edit, sorted(seed.changed or ())), fix
    keep, total = fix["keep"], shown["tasks"]
    assert (shown["hits"], shown["applied"]) == (keep, False)
    assert tuple(keep) == (seed.keep or (keep[0], total))
    assert keep[0] < keep[1]
    assert fixes(*arguments, "--yes") == {**shown, "applied": True}
    after = contents(monorepo)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {*fix["files"]}
    for path, text in (seed.changed or {}).items():
        assert text in after[path].decode()
    subprocess.run(["git", "apply", "--reverse"], cwd=monorepo.root, input=fix["diff"].encode(), check=True)
    assert contents(monorepo) == before
    subprocess.run(["git", "apply"], cwd=monorepo.root, input=fix["diff"].encode(), check=True)
    found = []
    # A file that has CRLF keeps it until git writes it again.
    for change in (nothing, seed.again, seed.change)[seed.edit == "gitattributes" :]:
        change(monorepo)
        found.append(hashes(monorepo, total))
    assert len(set.intersection(*found)) == keep[1]


@pytest.mark.parametrize("version", VERSIONS if os.environ.get("WHY_VERSIONS") == "all" else VERSIONS[-1:])
@pytest.mark.parametrize("name", REFUSED)
def test_no_wrong_edit(seeded: Callable[..., Any], version: str, name: str) -> None:
    seed = REFUSED[name]
    monorepo, arguments = seeded(version, seed)
    before = contents(monorepo)
    shown = fixes(*arguments, "--yes")
    fix = shown["fixes"][0]
    assert (fix["edit"], fix["status"]) == (seed.edit, "refused" if seed.edit else "none"), fix
    assert fix["text"].startswith(seed.text)
    assert (fix["files"], fix["diff"], shown["hits"], shown["applied"]) == ([], "", [], False)
    assert contents(monorepo) == before


def test_turbo_1_gives_tasks_with_other_lists_fewer_variables(seeded: Callable[..., Any]) -> None:
    _, arguments = seeded("1.13.4", Seed(BUILD_TIME, variable("BUILD_TIME", "2"), "variable"))
    (fix,) = fixes(*arguments)["fixes"]
    assert (fix["status"], fix["text"].partition(":")[0]) == (
        "refused",
        "the edit would also change the environment mode",
    )


def test_several_causes(seeded: Callable[..., Any]) -> None:
    """Each is proven alone, and then all of them. The lockfile's change still reaches three tasks."""
    seeds = [FIXED[name] for name in ("lockfile", "variable", "gitignore")]
    before, change = (all_of(*(getattr(seed, name) for seed in seeds)) for name in ("before", "change"))
    monorepo, arguments = seeded(turbo.NEWEST, Seed(before, change, None))
    shown = fixes(*arguments, "--yes")
    found = [(fix["edit"], fix["status"], fix["keep"]) for fix in shown["fixes"] if fix["edit"]]
    assert found == [("lockfile", "proven", [0, 9]), ("gitignore", "proven", [3, 12]), ("variable", "proven", [4, 12])]
    assert (shown["hits"], shown["applied"]) == ([0, 9], True)
    edited = hashes(monorepo, 12)
    variable("BUILD_TIME", "3")(monorepo)
    assert hashes(monorepo, 12) == edited


def test_other_hashes_in_the_checkout_undo_the_edits(
    seeded: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monorepo, arguments = seeded(turbo.NEWEST, FIXED["gitignore"])
    program = tmp_path / "bin" / "turbo"
    program.parent.mkdir()
    # As if something wrote an input meanwhile.
    edited = "grep -q eslintcache .gitignore && [ \"$PWD\" = '{}' ] && export API_URL=other\n"
    program.write_text(f'#!/bin/sh\n{edited.format(monorepo.root)}exec {monorepo.command} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    before = contents(monorepo)
    output = larder(*arguments, "--yes", status=1)
    assert "the edits were undone: turbo computes other hashes here than in the copy" in output
    assert contents(monorepo) == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_is_asked(seeded: Callable[..., Any], answer: str) -> None:
    monorepo, arguments = seeded(turbo.NEWEST, FIXED["gitignore"])
    parent, child = pty.openpty()
    command = [Path(sys.executable).with_name("larder"), "why", *arguments]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child) as process:
        os.write(parent, f"{answer}\n".encode())
        os.close(child)
        shown = b""
        # Linux ends the output of a terminal with an error.
        with suppress(OSError):
            while read := os.read(parent, 65_536):
                shown += read
    assert process.returncode == 0
    assert b"Apply these edits? [y/N]" in shown
    assert b"Proven: 12 of 12 tasks keep the hash when this differs; without the edit, 3." in shown
    assert (b".eslintcache" in monorepo.path(".gitignore").read_bytes()) == (answer == "y")
