"""Gradle, moon, Rush and Bazel on the cache, through `larder run` and `larder proxy`."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from . import node
from .build_tools import Counts, packed, reading_key, run, settings
from .cloud import LocalCloud, free_port

pytestmark = pytest.mark.e2e

LARGE = 40_000_000
"""Bytes of an output that goes straight to storage."""

MOON = "2.5.5"
RUSH = "5.179.0"


@pytest.fixture(scope="module")
def larder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("larder"))


@dataclass
class Workspace:
    """A project of one tool. Its tasks write random bytes, so equal outputs come from the cache."""

    root: Path
    command: list[str]
    outputs: Callable[[], list[Path]]
    forget: Callable[[], None]
    """Delete outputs and the tool's own cache."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def build(self, larder: Path, env: Mapping[str, str]) -> tuple[Counts, str]:
        self.forget()
        return run(larder, self.root, {**env, **self.variables}, *self.command)

    def digests(self) -> list[str]:
        found = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(self.outputs())]
        assert found
        return found


def delete(*folders: Path) -> None:
    for folder in folders:
        if folder.exists():
            # Bazel's folders cannot be written.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
            shutil.rmtree(folder)


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def commit(root: Path) -> None:
    for arguments in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "-m", "All"]):
        own = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *own, *arguments], cwd=root, check=True)


GRADLE_SETTINGS = """
rootProject.name = 'all'
include 'small', 'large'
buildCache {
    local { enabled = false }
    def proxy = System.getenv('LARDER_PROXY')
    if (proxy) {
        remote(HttpBuildCache) {
            url = "$proxy/gradle/"
            push = true
            credentials { username = 'larder'; password = System.getenv('LARDER_PROXY_TOKEN') }
        }
    }
}
"""
GRADLE_BUILD = """
subprojects {
    task make {
        def size = project.name == 'small' ? 1000 : LARGE
        def out = file("$buildDir/out.bin")
        inputs.file 'in.txt'
        outputs.file out
        outputs.cacheIf { true }
        doLast {
            def bytes = new byte[size]
            new Random().nextBytes(bytes)
            out.parentFile.mkdirs()
            out.bytes = bytes
        }
    }
}
"""


def gradle(root: Path, _: Path) -> Workspace:
    unique = secrets.token_hex(8)
    write(
        root,
        {
            "settings.gradle": GRADLE_SETTINGS,
            "build.gradle": GRADLE_BUILD.replace("LARGE", str(LARGE)),
            "small/in.txt": unique,
            "large/in.txt": unique,
        },
    )
    return Workspace(
        root,
        ["gradle", "--no-daemon", "--build-cache", "--console=plain", "--info", "make"],
        lambda: [*root.glob("*/build/out.bin")],
        lambda: delete(root / "small/build", root / "large/build", root / ".gradle"),
    )


MOON_TASK = """
tasks:
  build:
    command: 'sh build.sh'
    inputs: ['in.txt', 'build.sh']
    outputs: ['dist']
"""
MOON_FILES = 200
MOON_SCRIPT = f"""
mkdir -p dist
head -c 6000000 /dev/urandom > dist/large.bin
for i in $(seq {MOON_FILES}); do head -c 8 /dev/urandom > dist/$i; done
"""


def moon(root: Path, tools: Path) -> Workspace:
    write(
        root,
        {
            ".moon/workspace.yml": "projects: ['app']\ntelemetry: false\n",
            "app/moon.yml": MOON_TASK,
            "app/build.sh": MOON_SCRIPT,
            "app/in.txt": secrets.token_hex(8),
            ".gitignore": ".moon/cache\ndist\n",
        },
    )
    commit(root)
    modules = installed(tools, "moon", f"@moonrepo/cli@{MOON}")
    return Workspace(
        root,
        [str(modules / "moon"), "run", "app:build"],
        lambda: [*root.glob("app/dist/*")],
        lambda: delete(root / "app/dist", root / ".moon/cache"),
    )


BAZEL_ACTIONS = 20
BAZEL_SCRIPT = """
bazel --output_user_root=$ROOT/bazel build //:all --noshow_progress --experimental_convenience_symlinks=ignore \\
  --remote_cache=$LARDER_PROXY/bazel --remote_header="Authorization=Bearer $LARDER_PROXY_TOKEN"
status=$?
bazel --output_user_root=$ROOT/bazel shutdown
exit $status
"""


def bazel(root: Path, _: Path) -> Workspace:
    unique = secrets.token_hex(8)
    rules = [
        f'genrule(name="g{number}", outs=["o{number}.bin"],'
        f' cmd="head -c {6_000_000 if number == 0 else 1_000} /dev/urandom > $@ # {unique}")'
        for number in range(BAZEL_ACTIONS)
    ]
    write(root, {"src/WORKSPACE": "", "src/BUILD": "\n".join(rules), "build.sh": BAZEL_SCRIPT})
    return Workspace(
        root / "src",
        ["sh", str(root / "build.sh")],
        lambda: [*root.glob("bazel/*/execroot/*/bazel-out/*/bin/*.bin")],
        lambda: delete(root / "bazel"),
        {"ROOT": str(root)},
    )


def installed(tools: Path, name: str, package: str) -> Path:
    """The folder of the commands of an npm package."""

    def fill(folder: Path) -> None:
        node.npm("install", "--prefix", str(folder), "--no-audit", "--no-fund", package)

    return node.made_once(tools / name / package.rpartition("@")[2], fill) / "node_modules/.bin"


def needs(program: str) -> pytest.MarkDecorator:
    reason = f"{program} is not installed"
    return pytest.mark.skipif(shutil.which(program) is None, reason=reason)


TOOLS = [
    pytest.param(moon, Counts(0, 1, MOON_FILES + 3, 0), 1, id="moon"),
    pytest.param(
        gradle,
        Counts(0, 2, 2, 0),
        2,
        id="gradle",
        marks=needs("gradle"),
    ),
    pytest.param(
        bazel,
        Counts(0, BAZEL_ACTIONS, 5 * BAZEL_ACTIONS, 0),
        BAZEL_ACTIONS,
        id="bazel",
        marks=needs("bazel"),
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "first", "hits"), TOOLS)
def test_a_second_build_restores_all_outputs_byte_for_byte(
    make: Callable[[Path, Path], Workspace],
    first: Counts,
    hits: int,
    local_cloud: LocalCloud,
    larder: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """Also with a key that can only read, and without Larder, the build succeeds."""
    workspace = make(tmp_path / "workspace", request.config.rootpath / ".tools")
    env = settings(local_cloud, tmp_path)
    unreachable = {**env, "TURBO_API": f"http://127.0.0.1:{free_port()}"}
    counts, said = workspace.build(larder, unreachable)
    assert (counts.hits, counts.stored) == (0, 0)
    assert said.count("Larder does not answer") == 1
    reader = settings(local_cloud, tmp_path, reading_key(local_cloud))
    counts, said = workspace.build(larder, reader)
    assert (counts.hits, counts.stored) == (0, 0)
    assert said.count("the token cannot store") == 1
    counts, _ = workspace.build(larder, env)
    built = workspace.digests()
    assert counts == first
    for some in (env, reader):
        counts, said = workspace.build(larder, some)
        assert workspace.digests() == built
        assert counts == (hits, 0, 0, 0)
        assert local_cloud.token not in said


def test_moon_restores_its_outputs_and_usage_and_runs_name_it(
    local_cloud: LocalCloud, larder: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def ask(path: str) -> dict[str, list[dict[str, object]]]:
        headers = {"Authorization": f"Bearer {local_cloud.token}"}
        url = f"{local_cloud.url}{path}?slug={local_cloud.team}"
        found: dict[str, list[dict[str, object]]] = httpx.get(
            url, headers=headers, trust_env=False
        ).json()
        return found

    workspace = moon(tmp_path / "workspace", request.config.rootpath / ".tools")
    env = settings(local_cloud, tmp_path)
    before = {one["tool"]: one for one in ask("/v1/usage")["tools"]}.get("moon", {})
    workspace.build(larder, env)
    built = workspace.digests()
    workspace.build(larder, env)
    assert workspace.digests() == built
    assert len(built) == MOON_FILES + 1
    (now,) = (one for one in ask("/v1/usage")["tools"] if one["tool"] == "moon")
    for name in ("remoteHits", "remoteMisses"):
        assert now[name] == int(str(before.get(name, 0))) + 1
    newest, former = ask("/v1/runs")["runs"][:2]
    assert [(one["client"], one["remoteHits"], one["built"]) for one in (former, newest)] == [
        ("moon", 0, 1),
        ("moon", 1, 0),
    ]


RUSH_SCRIPT = "mkdir -p dist && head -c 6000000 /dev/urandom > dist/out.bin"


@pytest.mark.thorough
def test_rush_restores_from_the_proxy_of_the_user(
    local_cloud: LocalCloud, larder: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Its address is in a file, so it needs a port that stays. It waits five seconds for each miss."""
    root, port = tmp_path / "workspace", free_port()
    rush = installed(request.config.rootpath / ".tools", "rush", f"@microsoft/rush@{RUSH}") / "rush"
    project = {"name": "app", "version": "1.0.0", "scripts": {"build": RUSH_SCRIPT}}
    http = {"url": f"http://127.0.0.1:{port}/rush/", "isCacheWriteAllowed": True}
    cache = {"buildCacheEnabled": True, "cacheProvider": "http", "httpConfiguration": http}
    projects = [{"packageName": "app", "projectFolder": "app"}]
    own = {"operationName": "build", "outputFolderNames": ["dist"]}
    write(
        root,
        {
            "rush.json": json.dumps(
                {
                    "rushVersion": RUSH,
                    "pnpmVersion": "9.15.9",
                    "nodeSupportedVersionRange": ">=18.0.0",
                    "projects": projects,
                }
            ),
            "common/config/rush/build-cache.json": json.dumps(cache),
            "app/package.json": json.dumps(project),
            "app/config/rush-project.json": json.dumps({"operationSettings": [own]}),
            "app/in.txt": secrets.token_hex(8),
            ".gitignore": "node_modules\ncommon/temp\ndist\n.rush\nrush-logs\n*.log\n",
        },
    )
    commit(root)
    env = settings(local_cloud, tmp_path)

    def call(*command: str, **more: str) -> str:
        done = subprocess.run(
            command,
            cwd=root,
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def proxy(*arguments: str) -> str:
        return call(sys.executable, str(larder), "proxy", *arguments)

    def build() -> tuple[str, bytes]:
        delete(root / "app/dist", root / "common/temp/build-cache")
        for file in (root / "app/.rush/temp").glob("package-deps*"):
            file.unlink()
        delete(root / "app/.rush/temp/operation")
        return call(str(rush), "build", **variables), (root / "app/dist/out.bin").read_bytes()

    call(str(rush), "update")
    proxy("start", "--port", str(port))
    try:
        lines = proxy("env", "rush").splitlines()
        variables = {
            name: value.strip("'")
            for name, _, value in (line.removeprefix("export ").partition("=") for line in lines)
        }
        _, built = build()
        while json.loads(proxy("status"))["stored"] != 1:
            assert json.loads(proxy("status"))["failed"] == 0
        said, restored = build()
        counts = json.loads(proxy("status"))
    finally:
        proxy("stop")
    assert "restored from the build cache" in said
    assert restored == built
    assert (counts["hits"], counts["misses"], counts["stored"]) == (1, 1, 1)
