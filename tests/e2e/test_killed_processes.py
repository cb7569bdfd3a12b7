"""kill -9 at any point of a build through `larder run`: of `larder run` itself, of the tool, and of the deployment.

The tools are real.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.proxy.deployment import deployed, variables
from tools.benchmarks.deployed import repositories
from tools.benchmarks.deployed.restorer import native

from . import monorepo, turbo
from .build_tools import settings
from .cloud import LocalCloud, free_port, is_running
from .workspaces import SOURCES, Make, Workspace, ccache, needs, nx, sccache

pytestmark = [pytest.mark.e2e, needs("gcc")]

SECONDS = 120
PACKAGES = 12
NX_SIZES = {"a": 1_000, "b": 300_000, "c": 6_000_000, "d": 1_000, "e": 300_000, "f": 6_000_000}
TASK_SECONDS = 0.2
LARDER_RUN, SHELL, TOOL, DEPLOYMENT = "larder run", "shell", "tool", "deployment"
"""`larder run` starts the shell, and the shell the tool."""

ALL = (LARDER_RUN, SHELL, TOOL, DEPLOYMENT)


@dataclass
class Project:
    """A workspace whose outputs are the same in each build. `change` gives half of its entries other hashes."""

    workspace: Workspace
    entries: int
    change: Callable[[int], None]
    process: Callable[[int], int | None]
    """The process of the tool in the group of a build that runs, if it is there."""
    is_red_without_larder_run: bool = False


def descendants(pid: int) -> list[tuple[int, str]]:
    """The processes that a process has started, and what they have started. Each with its command."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    found = [(pid, "")]
    for known, _ in found:
        found.extend((int(one), command) for one, parent, command in rows if int(parent) == known)
    return found[1:]


def shell_of(build: int) -> int | None:
    return next((pid for pid, command in descendants(build) if command.startswith("sh -c")), None)


def in_the_shell(build: int) -> int | None:
    """The process that the shell of a build has started. `larder run` starts turbo, too, to list artifacts."""
    shell = shell_of(build)
    return next((pid for pid, _ in descendants(shell)), None) if shell else None


def turbo_project(root: Path, tools: Path) -> Project:
    repositories.make(root, PACKAGES, "mixed", build_s=TASK_SECONDS)
    # Nothing depends on these, so the others keep their hashes.
    upper = sorted((root / "packages").iterdir())[PACKAGES // 2 :]

    def change(number: int) -> None:
        for package in upper:
            (package / "changed.txt").write_text(str(number))

    workspace = Workspace(
        root,
        [str(native(turbo.NEWEST, tools / "turbo")), "run", "build", "--output-logs=none"],
        lambda: [*root.glob("packages/*/dist/out.bin")],
        lambda: monorepo.wipe_outputs_and_local_cache(root),
        {"PATH": f"{root.with_name('bin')}{os.pathsep}{os.environ['PATH']}", **turbo.QUIET},
    )
    return Project(workspace, PACKAGES, change, in_the_shell)


def nx_project(root: Path, tools: Path) -> Project:
    workspace, outputs = nx(root, tools, NX_SIZES), root.with_name("outputs")
    outputs.mkdir()
    for name, size in NX_SIZES.items():
        (outputs / name).write_bytes(random.Random(name).randbytes(size))
        project = root / name / "project.json"
        made = f"sleep {TASK_SECONDS} && cat {outputs / name}"
        project.write_text(project.read_text().replace(f"head -c {size} /dev/urandom", made))

    def change(number: int) -> None:
        for name in [*NX_SIZES][len(NX_SIZES) // 2 :]:
            (root / name / "changed.txt").write_text(str(number))

    return Project(workspace, len(NX_SIZES), change, in_the_shell, is_red_without_larder_run=True)


def sccache_project(root: Path, tools: Path) -> Project:
    workspace = sccache(root, tools)
    make_slow(workspace, TASK_SECONDS)
    sources = {file: file.read_text() for file in sorted(root.glob("*.c"))[SOURCES // 2 :]}

    def change(number: int) -> None:
        for file, text in sources.items():
            file.write_text(f"extern int changed_{number};\n{text}")

    return Project(workspace, SOURCES, change, lambda _: server_of(root))


def make_slow(workspace: Workspace, seconds: float) -> None:
    """Make each compile take longer."""
    makefile = workspace.root / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(CC)", f"sleep {seconds}; $(CC)"))


def server_of(root: Path) -> int | None:
    """The server of sccache in a folder. It belongs to no other process."""
    wanted = {b"SCCACHE_START_SERVER=1", f"SCCACHE_DIR={root / 'local'}".encode()}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted <= {*(process / "environ").read_bytes().split(b"\0")}:
                return int(process.name)
    return None


PROJECTS = {"turbo": turbo_project, "nx": nx_project, "sccache": sccache_project}
EACH_ONCE = {"turbo": (LARDER_RUN, TOOL, DEPLOYMENT), "nx": (LARDER_RUN,), "sccache": (LARDER_RUN, TOOL)}
CASES = [
    *(
        pytest.param(tool, victims, id=tool, marks=[] if tool == "turbo" else pytest.mark.thorough)
        for tool, victims in EACH_ONCE.items()
    ),
    *(
        pytest.param(tool, ALL * 2, id=f"{tool} {part}", marks=pytest.mark.thorough)
        for tool in PROJECTS
        for part in range(2)
    ),
]
"""6 kills in each run, and 48 more. The identifier is the seed of the times."""


@contextlib.contextmanager
def ending_sccache(root: Path) -> Iterator[None]:
    """sccache starts its server again if that was killed, and the build does not end it."""
    try:
        yield
    finally:
        while (pid := server_of(root)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Doomed:
    """A build through `larder run`, in a session of its own. It writes the status of the tool to a file."""

    project: Project
    larder: Path
    folder: Path
    env: Mapping[str, str]

    @property
    def status(self) -> Path:
        return self.folder / "status"

    @property
    def said(self) -> str:
        return (self.folder / "output").read_text()

    def start(self) -> subprocess.Popen[bytes]:
        self.status.unlink(missing_ok=True)
        own, part = self.folder / "own", self.folder / "status.part"
        own.mkdir(exist_ok=True)
        script = (
            f"TMPDIR={own} {shlex.join(self.project.workspace.command)}; status=$?; "
            f"echo $status > {part}; mv {part} {self.status}; exit $status"
        )
        with (self.folder / "output").open("w") as output:
            return subprocess.Popen(
                [sys.executable, str(self.larder), "run", "--", "sh", "-c", script],
                cwd=self.project.workspace.root,
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def killed(self, victim: str, outputs: int, after: float, cloud: LocalCloud) -> tuple[int, bool]:
        """Kill a victim some seconds after the tool has made so many outputs, and wait until all processes have ended.

        Returns the status of `larder run`, and whether there was something left to kill.
        """
        build = self.start()
        workspace = self.project.workspace
        self.until(lambda: self.project.process(build.pid) or self.status.exists())
        self.until(lambda: len(workspace.outputs()) >= outputs or self.status.exists())
        time.sleep(after)
        if victim == DEPLOYMENT:
            is_there = build.poll() is None
            cloud.kill()
        else:
            found = {
                LARDER_RUN: None if build.poll() is not None else build.pid,
                SHELL: shell_of(build.pid),
                TOOL: self.project.process(build.pid),
            }[victim]
            is_there = found is not None
            # It may end by itself.
            with contextlib.suppress(ProcessLookupError):
                if found is not None:
                    os.kill(found, signal.SIGKILL)
        build.wait(SECONDS)
        self.until(lambda: not is_running(build.pid))
        return build.returncode, is_there

    def until(self, condition: Callable[[], object]) -> None:
        ends = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < ends, self.said
            time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize(("tool", "victims"), CASES)
def test_a_killed_process_costs_one_build_at_most(
    tool: str,
    victims: tuple[str, ...],
    request: pytest.FixtureRequest,
    local_cloud: LocalCloud,
    larder: Path,
    tools: Path,
    tmp_path: Path,
) -> None:
    """A build is red only if its tool or shell was killed, or if Nx lost `larder run`. Its status is that of the tool.

    The next build succeeds, and restores what it does not build, with the right bytes. No file is left in the temporary
    folder. The tools have another one.
    """
    project, temporary = PROJECTS[tool](tmp_path / "project", tools), tmp_path / "temporary"
    temporary.mkdir()
    workspace = project.workspace
    env = {**settings(local_cloud, tmp_path), "TMPDIR": str(temporary), **workspace.variables}
    doomed = Doomed(project, larder, tmp_path, env)
    workspace.build(larder, env)
    built = workspace.digests()
    chance, killed = random.Random(request.node.callspec.id), 0
    for number, victim in enumerate(victims):
        workspace.forget()
        project.change(number)
        with ending_sccache(workspace.root):
            outputs, after = chance.randint(0, len(built)), chance.uniform(0, TASK_SECONDS)
            returned, is_killed = doomed.killed(victim, outputs, after, local_cloud)
        killed += is_killed
        # Without a shell, no one writes that of the tool.
        status = int(doomed.status.read_text()) if doomed.status.exists() else returned
        may_be_red = victim in (SHELL, TOOL) or (victim == LARDER_RUN and project.is_red_without_larder_run)
        assert status == 0 or may_be_red, (victim, doomed.said)
        assert returned in (status, -signal.SIGKILL), (victim, doomed.said)
        if victim == DEPLOYMENT:
            assert returned == 0, doomed.said
            local_cloud.start()
        if status == 0:
            assert workspace.digests() == built, (victim, doomed.said)
        counts, said = workspace.build(larder, env)
        assert workspace.digests() == built, (victim, said)
        assert counts.hits >= project.entries // 2, (victim, said)
        assert [*temporary.iterdir()] == []
    assert killed >= len(victims) // 2


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize("make", [ccache, pytest.param(sccache, marks=pytest.mark.thorough)])
def test_a_killed_larder_proxy_fails_no_compile_and_starts_again(
    make: Make, larder: Path, tools: Path, tmp_path: Path
) -> None:
    workspace = make(tmp_path / "project", tools)
    make_slow(workspace, TASK_SECONDS)
    with deployed() as deployment, ending_sccache(workspace.root):
        env = variables(deployment, tmp_path)

        def proxy(act: str) -> str:
            command = [sys.executable, str(larder), "proxy", act]
            port = ["--port", "0"] if act == "start" else []
            return subprocess.run([*command, *port], env=env, capture_output=True, text=True, check=True).stdout

        def start() -> subprocess.Popen[bytes]:
            """A build with the process of the user."""
            workspace.forget()
            proxy("start")
            lines = [line.removeprefix("export ") for line in proxy("env").splitlines()]
            own = {name: value.strip("'") for name, _, value in (one.partition("=") for one in lines)}
            own |= {"SCCACHE_SERVER_PORT": str(free_port()), **workspace.variables}
            return subprocess.Popen(workspace.command, cwd=workspace.root, env={**env, **own})

        build = start()
        while not workspace.outputs():
            assert build.poll() is None
            time.sleep(0.02)
        pid, *_ = json.loads((tmp_path / ".cache/larder/proxy.json").read_text())
        os.kill(pid, signal.SIGKILL)
        assert build.wait(SECONDS) == 0
        built = workspace.digests()
        assert len(built) == SOURCES
        counts = dict[str, int]()
        for _ in range(2):
            assert start().wait(SECONDS) == 0
            assert workspace.digests() == built
            counts = json.loads(proxy("status"))
            proxy("stop")
        assert (counts["hits"] >= SOURCES, counts["misses"]) == (True, 0)
