"""`larder why` with the real turbo: after each change, it names the change first, and undoing a cause alone brings the
hashes back.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from larder.why.comparison import compare
from larder.why.summaries import parse_summary
from larder_cli.main import cli

from . import turbo, twelve_tasks
from .twelve_tasks import Monorepo

pytestmark = pytest.mark.e2e

VERSIONS = ("1.13.4", "2.3.4", "2.8.21", turbo.NEWEST)
PLAYED = VERSIONS if os.environ.get("WHY_VERSIONS") == "all" else VERSIONS[-1:]
"""The newest. `make proofs` plays all."""
MIXTURES = int(os.environ.get("WHY_MIXTURES", "6"))

Change = Callable[[Monorepo], object]


def nothing(monorepo: Monorepo) -> None:
    """No preparation."""


@dataclass(frozen=True)
class Row:
    """A change, and how the first cause begins. `first` is empty if every hash stays the same.

    Only the versions in `only` see the change so. All others see `first_in_others`.
    """

    change: Change
    first: str = ""
    reach: str = ""
    before: Change = nothing
    uncommitted: Change = nothing
    only: tuple[str, ...] = VERSIONS
    first_in_others: str = ""
    second: str = ""
    tasks: tuple[str, ...] = ("build", "test", "lint")


TWO = VERSIONS[1:]
SETTING_OF_LOGS = {"1": "outputMode", "2": "outputLogs"}


def write(name: str, text: str) -> Change:
    return lambda monorepo: monorepo.write(name, text)


def variable(name: str, value: str) -> Change:
    return lambda monorepo: monorepo.variables.update({name: value})


def task(name: str, **settings: object) -> Change:
    return lambda monorepo: monorepo.change_task(name, **settings)


def shared(**settings: object) -> Change:
    return lambda monorepo: monorepo.change_turbo_json(**settings)


def manifest(name: str, part: str, **values: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        document.setdefault(part, {}).update(values)

    return lambda monorepo: monorepo.change_json(name, change)


def root(**values: object) -> Change:
    return lambda monorepo: monorepo.change_json("package.json", lambda one: one.update(values))


def lockfile(**versions: str) -> Change:
    return write("package-lock.json", json.dumps(twelve_tasks.npm_lockfile(**versions)))


def all_of(*changes: Change) -> Change:
    def change(monorepo: Monorepo) -> None:
        for change in changes:
            change(monorepo)

    return change


def delete(name: str) -> Change:
    return lambda monorepo: monorepo.path(name).unlink()


def rename(old: str, new: str) -> Change:
    return lambda monorepo: monorepo.path(old).rename(monorepo.path(new))


def without_script(package: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        del document["scripts"]["build"]

    return lambda monorepo: monorepo.change_json(f"packages/{package}/package.json", change)


def commit(monorepo: Monorepo) -> None:
    monorepo.commit()


def next_app(monorepo: Monorepo) -> None:
    manifest("packages/web/package.json", "dependencies", next="14.0.0")(monorepo)


def root_package(version: str) -> Change:
    """A dependency of the root, in package.json and the lockfile of npm."""

    def change(monorepo: Monorepo) -> None:
        root(devDependencies={"prettier": version})(monorepo)
        document = twelve_tasks.npm_lockfile()
        document["packages"][""]["devDependencies"] = {"prettier": version}
        document["packages"]["node_modules/prettier"] = {"version": version, "dev": True}
        monorepo.write("package-lock.json", json.dumps(document))

    return change


def many_files(ending: str) -> Change:
    def change(monorepo: Monorepo) -> None:
        for number in range(301):
            monorepo.write(f"packages/web/src/b{number:03}.js", f"one;{ending}two;{ending}")
        monorepo.write("packages/web/src/a.js", f"one;{ending}two;{ending}")

    return change


def link(target: str) -> Change:
    def change(monorepo: Monorepo) -> None:
        path = monorepo.path("packages/lib/src/l.js")
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return change


ROWS = {
    "a source file": Row(write("packages/lib/src/a.js", "other;\n"),
        "file: packages/lib/src/a.js changed (not committed) -> 9 tasks",
        "lib#build, lib#lint, lib#test; then 6 that depend on them"),
    "a source file in a commit": Row(all_of(write("packages/lib/src/a.js", "other;\n"), commit),
        "file: packages/lib/src/a.js changed (commit "),
    "a new file": Row(write("packages/ui/src/new.js", ""),
        "file: packages/ui/src/new.js added (not in git) -> 5 tasks"),
    "a removed file": Row(delete("packages/ui/src/a.js"), "file: packages/ui/src/a.js removed -> 5 tasks"),
    "the letter case of a name": Row(all_of(rename("packages/lib/src/a.js", "packages/lib/src/A.js"), commit),
        "file: packages/lib/src/A.js renamed (only its letter case"),
    "a variable of env": Row(variable("API_URL", "other"), "variable: API_URL changed -> 8 tasks"),
    "an inferred variable": Row(variable("NEXT_PUBLIC_A", "other"),
        "variable: NEXT_PUBLIC_A changed (inferred from the framework) -> ",
        before=all_of(next_app, variable("NEXT_PUBLIC_A", "one"))),
    "a variable whose name says that it changes": Row(variable("NEXT_PUBLIC_SHA", "other"),
        "variable: NEXT_PUBLIC_SHA changed (its name says that it changes with each commit or job",
        before=all_of(next_app, variable("NEXT_PUBLIC_SHA", "one"))),
    "the value of a variable that is passed on": Row(variable("PASSED", "other"),
        before=task("build", passThroughEnv=["PASSED"])),
    "the mode of a file": Row(lambda one: one.path("packages/lib/src/a.js").chmod(0o755)),
    "packageManager": Row(root(packageManager="npm@10.9.1")),
    "a setting of logs": Row(lambda one: one.change_task("build", **{SETTING_OF_LOGS[one.version[0]]: "errors-only"})),
    "a variable of globalEnv": Row(variable("NODE_ENV", "other"), "global variable: NODE_ENV changed -> 12 tasks",
        before=all_of(shared(globalEnv=["NODE_ENV"]), variable("NODE_ENV", "one"))),
    "an external package": Row(all_of(lockfile(lodash="4.17.21"), commit),
        "lockfile: external dependencies of lib changed (lodash 4.17.20 -> 4.17.21) -> 9 tasks"),
    "another form of lockfile": Row(lockfile(lodash="4.17.21", express="4.18.1"),
        "lockfile: external dependencies of all 2 packages changed (another lockfile, package manager or a shared "),
    "a dependency of the root": Row(all_of(root_package("2.0.0"), commit),
        "lockfile: dependencies of the root package changed (prettier 1.0.0 -> 2.0.0) -> 12 tasks",
        before=root_package("1.0.0")),
    "no lockfile": Row(delete("package-lock.json"),
        "lockfile: dependencies of the root package changed (no lockfile on one side) -> 12 tasks"),
    "a workspace package that the root depends on": Row(write("packages/lib/src/a.js", "other;\n"),
        "root dependencies: workspace packages that the root package.json depends on changed (for example packages/",
        before=root(dependencies={"lib": "*"}), only=TWO, first_in_others="file: packages/lib/src/a.js changed"),
    "another file in globalDependencies": Row(shared(globalDependencies=["package-lock.json"]),
        "global file: package-lock.json added -> 12 tasks"),
    ".env in globalDependencies": Row(write(".env", "A=2"),
        "global file: .env changed (git ignores it, and the inputs in turbo.json name it) -> 12 tasks",
        before=all_of(shared(globalDependencies=[".env"]), write(".env", "A=1"))),
    "outputs": Row(task("build", outputs=["dist/**", "lib/**"]),
        "turbo.json: outputs of build in turbo.json +lib/** -> 8 tasks"),
    "env": Row(task("build", env=["API_URL", "FOO"]), "turbo.json: env of build in turbo.json +FOO -> 8 tasks"),
    "env with a variable that is set": Row(all_of(task("build", env=["API_URL", "FOO"]), variable("FOO", "one")),
        "turbo.json: env of build in turbo.json +FOO -> 8 tasks ["),
    "a variable of env that is left out": Row(task("build", env=["API_URL", "!NEXT_PUBLIC_A"]),
        "turbo.json: env of build in turbo.json +!NEXT_PUBLIC_A -> ",
        before=all_of(next_app, variable("NEXT_PUBLIC_A", "one"))),
    "passThroughEnv": Row(task("build", passThroughEnv=["FOO"]),
        "turbo.json: passThroughEnv of build in turbo.json +FOO -> 8 tasks"),
    "globalPassThroughEnv": Row(shared(globalPassThroughEnv=["AWS_SECRET"]),
        "turbo.json: globalPassThroughEnv +AWS_SECRET -> 12 tasks"),
    "dependsOn": Row(task("lint", dependsOn=["^build"]),
        "turbo.json: dependsOn of lint in turbo.json +^build -> 3 tasks"),
    "a script": Row(manifest("packages/lib/package.json", "scripts", lint="echo other"),
        "file: packages/lib/package.json changed (the script lint changed) -> 9 tasks"),
    "a dependency on a workspace": Row(manifest("packages/api/package.json", "dependencies", ui="*"),
        "file: packages/api/package.json changed (dependencies: +ui#build) -> 3 tasks"),
    "line endings": Row(many_files("\r\n"),
        "file: packages/web/src/a.js and 301 more changed (only its line endings differ) -> ", before=many_files("\n")),
    "an ignored file that inputs name": Row(write("packages/lib/generated/x", "other"),
        "file: packages/lib/generated/x added (git ignores it, and the inputs in turbo.json name it) -> 1 task",
        before=task("lint", inputs=["src/**", "generated/**"])),
    "a file that a build writes into the sources": Row(write("packages/lib/src/build-info.js", "2"),
        "file: packages/lib/src/build-info.js changed (not in git) -> 9 tasks",
        uncommitted=write("packages/lib/src/build-info.js", "1")),
    "tsconfig.tsbuildinfo": Row(write("packages/lib/tsconfig.tsbuildinfo", "1"),
        "file: packages/lib/tsconfig.tsbuildinfo added (not in git) -> 9 tasks"),
    "a symlink": Row(link("b.js"), "file: packages/lib/src/l.js changed",
        before=all_of(write("packages/lib/src/b.js", "b;\n"), link("a.js"))),
    "engines": Row(root(engines={"node": ">=18"}), "engines: engines in package.json none -> node >=18 -> 12 tasks",
        only=TWO),
    ".gitattributes": Row(write(".gitattributes", "*.png binary\n"),
        "global file: .gitattributes added (not in git) -> 12 tasks", only=(turbo.NEWEST,)),
    "a package without the script": Row(write("packages/lib/src/a.js", "other;\n"),
        "file: packages/lib/src/a.js changed (not committed) -> 4 tasks", "lib#build; then 3 that depend on them",
        before=without_script("ui"), tasks=("build",)),
    "two causes": Row(all_of(lockfile(express="4.18.1"), commit, write("packages/ui/src/a.js", "other;\n")),
        "file: packages/ui/src/a.js changed (not committed) -> 5 tasks",
        second="lockfile: external dependencies of api changed (express 4.18.0 -> 4.18.1) -> 3 tasks"),
    "two causes of one task": Row(
        all_of(write("packages/lib/src/a.js", "other;\n"), write("packages/ui/src/a.js", "other;\n")),
        "file: packages/lib/src/a.js changed (not committed) -> 9 tasks (5 only because of this)",
        second="file: packages/ui/src/a.js changed (not committed) -> 5 tasks (1 only because of this)",
    ),
    "cache: false": Row(task("lint", cache=False)),
}  # fmt: skip


@pytest.fixture(scope="module")
def commands(request: pytest.FixtureRequest) -> dict[str, Path]:
    tools = request.config.rootpath / ".tools" / "turbo"
    return {version: turbo.installed(version, tools) for version in VERSIONS}


@pytest.fixture
def fresh(
    commands: dict[str, Path], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Monorepo]:
    """Makes a monorepo for this version of turbo, and works in it."""
    for name in [name for name in os.environ if name.startswith(("TURBO_", "GIT_"))]:
        monkeypatch.delenv(name)

    def make(version: str) -> Monorepo:
        folder = tmp_path / f"monorepo-{version}"
        folder.mkdir()
        monorepo = twelve_tasks.made(folder, commands[version], version, home)
        monorepo.variables["API_URL"] = "one"
        monkeypatch.chdir(folder)
        return monorepo

    return make


def larder(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(cli, ["why", *arguments], prog_name="larder")
    assert result.exit_code == status, result.output
    return result.output


def kept(monorepo: Monorepo, name: str, *arguments: str, **options: Any) -> str:
    """The path of a file with what a dry run prints."""
    file = monorepo.root.with_name(f"{monorepo.root.name}-{name}.json")
    file.write_bytes(monorepo.dry_run(*arguments, **options))
    return str(file)


def use_turbo_of(monorepo: Monorepo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds it on PATH."""
    for name, value in monorepo.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{monorepo.command.parent}{os.pathsep}{os.environ['PATH']}")


def causes(output: str) -> list[list[str]]:
    """The lines of each cause, without its number."""
    parts = [part.splitlines() for part in output.split("\n\n")]
    return [
        [part[0].partition(". ")[2], *(line.strip() for line in part[1:])] for part in parts if part[0][:1].isdigit()
    ]


@pytest.mark.parametrize("version", PLAYED)
@pytest.mark.parametrize("name", ROWS)
def test_the_first_cause_is_the_change(fresh: Callable[[str], Monorepo], version: str, name: str) -> None:
    row = ROWS[name]
    if version not in row.only:
        row = Row(row.change, row.first_in_others, before=row.before, tasks=row.tasks)
    monorepo = fresh(version)
    row.before(monorepo)
    monorepo.commit()
    row.uncommitted(monorepo)
    base = kept(monorepo, "base", tasks=row.tasks)
    row.change(monorepo)
    output = larder(base, kept(monorepo, "run", tasks=row.tasks))
    found = causes(output)
    if not row.first:
        assert found == []
        assert "nothing changed: every hash is that of the baseline" in output
        return
    assert found[0][0].startswith(row.first), output
    assert found[0][1].startswith(row.reach)
    assert not any(one[0].startswith("unknown") for one in found)
    if row.second:
        assert found[1][0].startswith(row.second), output


@pytest.mark.parametrize("version", PLAYED)
def test_flags_of_turbo(fresh: Callable[[str], Monorepo], version: str) -> None:
    monorepo = fresh(version)
    plain = kept(monorepo, "plain")
    loose = kept(monorepo, "loose", "--env-mode=loose")
    mode = "infer" if version.startswith("1.") else "strict"
    ((first, *_),) = causes(larder(plain, loose))
    assert first == f"env mode: environment mode {mode} -> loose -> 12 tasks [setup]"
    without = kept(monorepo, "without", "--framework-inference=false")
    ((first, *_),) = causes(larder(plain, without))
    assert first.startswith("framework: framework inference on -> off -> 12 tasks")
    watched = kept(monorepo, "watched", "--", "--watch")
    ((first, *_),) = causes(larder(plain, watched))
    assert first == "arguments: arguments after -- [] -> ['--watch'] -> 12 tasks [setup]"


def test_versions_of_turbo(fresh: Callable[[str], Monorepo], commands: dict[str, Path]) -> None:
    """Those of turbo 2 give equal hashes."""
    monorepo = fresh("2.3.4")
    two = kept(monorepo, "two")
    monorepo.command = commands[turbo.NEWEST]
    output = larder(two, kept(monorepo, "newest"))
    assert causes(output) == []
    assert f"note: turbo 2.3.4 -> {turbo.NEWEST}: both versions give the same hashes" in output
    one = kept(fresh("1.13.4"), "one")
    ((first, *_),) = causes(larder(one, two))
    assert first == "turbo-version: turbo 1.13.4 -> 2.3.4 -> 12 tasks [setup]"


@pytest.mark.parametrize("version", PLAYED)
def test_the_last_run_from_a_package(
    fresh: Callable[[str], Monorepo], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monorepo = fresh(version)
    monorepo.summarize("build")
    monorepo.write("packages/ui/src/a.js", "other;\n")
    monorepo.commit()
    monorepo.summarize("build", API_URL="two")
    monkeypatch.chdir(monorepo.path("packages/web/src"))
    report = json.loads(larder("--last", "--json"))
    found = [(cause["subject"], cause["class"], cause["directCount"]) for cause in report["causes"]]
    assert found == [("API_URL", "setup", 4), ("packages/ui/src/a.js", "code", 1)]
    assert report["causes"][0]["buildMs"] > 0
    larder("--last", "--fail-on", "setup", status=3)


@pytest.mark.parametrize("version", PLAYED)
def test_a_dry_run_against_a_file(
    fresh: Callable[[str], Monorepo], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monorepo = fresh(version)
    file = str(monorepo.summarize("build"))
    monorepo.write("package-lock.json", json.dumps(twelve_tasks.npm_lockfile(lodash="4.17.21")))
    use_turbo_of(monorepo, monkeypatch)
    # Names in the lockfile that is not committed: the dry run reads the files that are there.
    wanted = "lockfile: external dependencies of lib changed (lodash 4.17.20 -> 4.17.21) -> 4 tasks"
    for options in ((), ("--offline",)):
        ((first, *_),) = causes(larder("build", "--against", file, *options))
        assert first.startswith(wanted)
    assert "failed:" in larder("none", "--against", file, status=1)


@pytest.mark.parametrize("version", PLAYED)
def test_offline_asks_no_remote_cache(
    fresh: Callable[[str], Monorepo], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monorepo = fresh(version)
    file = str(monorepo.summarize("build"))
    # Old versions ask the remote cache only for what the local one does not have.
    monorepo.write("packages/lib/src/a.js", "other;\n")
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_GET = do_POST = do_OPTIONS = do_HEAD  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        use_turbo_of(monorepo, monkeypatch)
        monkeypatch.setenv("TURBO_API", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("TURBO_TOKEN", "a token")
        monkeypatch.setenv("TURBO_TEAM", "acme")
        offline = larder("build", "--against", file, "--offline")
        assert asked == []
        assert larder("build", "--against", file) == offline
        assert asked
        server.shutdown()


MIXED: dict[str, tuple[Change, Change]] = {
    "packages/lib/src/a.js": (
        write("packages/lib/src/a.js", "other;\n"),
        write("packages/lib/src/a.js", "export const name = 'lib';\n"),
    ),
    "packages/ui/src/new.js": (write("packages/ui/src/new.js", "new;\n"), delete("packages/ui/src/new.js")),
    "packages/web/src/a.js": (
        delete("packages/web/src/a.js"),
        write("packages/web/src/a.js", "export const name = 'web';\n"),
    ),
    "API_URL": (variable("API_URL", "two"), variable("API_URL", "one")),
    "NODE_ENV": (variable("NODE_ENV", "two"), variable("NODE_ENV", "one")),
    "lib": (lockfile(lodash="4.17.21"), lockfile()),
    "api": (lockfile(express="4.18.1"), lockfile()),
    "dependsOn": (task("lint", dependsOn=["^build"]), task("lint", dependsOn=[])),
    "outputs": (task("build", outputs=["lib/**"]), task("build", outputs=["dist/**"])),
    "passThroughEnv": (task("test", passThroughEnv=["FOO"]), task("test", passThroughEnv=[])),
    "packages/api/package.json": (
        manifest("packages/api/package.json", "scripts", lint="echo other"),
        manifest("packages/api/package.json", "scripts", lint="echo lint"),
    ),
    "global.txt": (write("global.txt", "two"), write("global.txt", "one")),
}
"""Changes and their undoing, by the subject of the cause. At most one of the two of the lockfile is in a mixture."""


@pytest.mark.parametrize("seed", range(MIXTURES))
def test_undoing_a_cause_alone_brings_the_hashes_back(fresh: Callable[[str], Monorepo], seed: int) -> None:
    """Of three changes at random: those tasks that have a cause alone get the hash of the baseline, and no others."""
    monorepo = fresh(turbo.NEWEST)
    monorepo.variables["NODE_ENV"] = "one"
    monorepo.write("global.txt", "one")
    monorepo.change_turbo_json(globalDependencies=["global.txt"], globalEnv=["NODE_ENV"])
    monorepo.change_task("test", passThroughEnv=[])
    monorepo.change_task("lint", dependsOn=[])
    lockfile()(monorepo)
    monorepo.commit()
    base = parse_summary(json.loads(monorepo.dry_run()))
    subjects = random.Random(seed).sample(sorted(MIXED.keys() - {"api"}), 3)
    if seed % 2:
        subjects = ["api" if one == "lib" else one for one in subjects]
    for subject in subjects:
        MIXED[subject][0](monorepo)
    compared = compare(base, parse_summary(json.loads(monorepo.dry_run())))
    assert {one.subject for one in compared.causes} == set(subjects)
    for subject in subjects:
        MIXED[subject][1](monorepo)
        undone = parse_summary(json.loads(monorepo.dry_run()))
        MIXED[subject][0](monorepo)
        (cause,) = (one for one in compared.causes if one.subject == subject)
        back = {id for id in compared.changed if undone.tasks[id].hash == base.tasks[id].hash}
        assert len(back) == cause.alone
        assert back <= {*cause.direct, *cause.below}
