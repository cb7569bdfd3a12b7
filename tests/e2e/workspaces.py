"""Projects of other build tools. Their tasks write random bytes, so equal outputs come from the cache."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from . import node
from .build_tools import Counts, run

NX = os.environ.get("NX_VERSION", "24.0.6")
MOON = "2.5.5"
SIZES = {"small": 1_000, "inline": 3_900_000, "direct": 6_000_000, "large": 40_000_000}
"""Bytes that projects of Nx write: through a function, and straight to storage."""

GRADLE_LARGE = 40_000_000
SOURCES = 6
MOON_FILES = 200
BAZEL_ACTIONS = 20
CRATES = 60


@dataclass
class Workspace:
    """A project of one tool, and how to build it."""

    root: Path
    command: list[str]
    outputs: Callable[[], list[Path]]
    forget: Callable[[], None]
    """Delete outputs and the tool's own cache."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def build(self, larder: Path, env: Mapping[str, str]) -> tuple[Counts, str]:
        """Build without local data of earlier builds. The build must succeed."""
        self.forget()
        return run(larder, self.root, {**env, **self.variables}, *self.command)

    def digests(self) -> list[str]:
        found = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(self.outputs())]
        assert found
        return found


Make = Callable[[Path, Path], Workspace]
"""Makes the workspace in a folder, with the packages of a folder of tools."""


def needs(program: str) -> pytest.MarkDecorator:
    reason = f"{program} is not installed"
    return pytest.mark.skipif(shutil.which(program) is None, reason=reason)


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


def installed(tools: Path, name: str, package: str) -> Path:
    """The folder `node_modules` with an npm package, which is installed once."""

    def fill(folder: Path) -> None:
        node.npm("install", "--prefix", str(folder), "--no-audit", "--no-fund", package)

    return node.made_once(tools / name / package.rpartition("@")[2], fill) / "node_modules"


def nx(root: Path, tools: Path, sizes: Mapping[str, int] = SIZES, version: str = NX) -> Workspace:
    """A project for each name, which writes so many bytes."""
    cached = {"build": {"cache": True, "outputs": ["{projectRoot}/dist"]}}
    settings = {"neverConnectToCloud": True, "analytics": False, "targetDefaults": cached}
    files = {
        "package.json": json.dumps({"name": "workspace", "private": True}),
        "nx.json": json.dumps(settings),
        ".gitignore": "node_modules\n.nx\ndist\n",
    }
    for name, size in sizes.items():
        command = f"mkdir -p dist && head -c {size} /dev/urandom > dist/out.bin"
        target = {"command": command, "options": {"cwd": name}}
        project = {"name": name, "targets": {"build": target}}
        files[f"{name}/project.json"] = json.dumps(project)
        files[f"{name}/unique.txt"] = secrets.token_hex(8)
    write(root, files)
    (root / "node_modules").symlink_to(installed(tools, "nx", f"nx@{version}"))
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return nx_in(root)


def nx_in(root: Path) -> Workspace:
    """The workspace of Nx in a folder, such as a copy of another one."""
    return Workspace(
        root,
        [str(root / "node_modules/.bin/nx"), "run-many", "-t", "build"],
        lambda: [*root.glob("*/dist/out.bin")],
        lambda: delete(root / ".nx/cache", root / ".nx/workspace-data", *root.glob("*/dist")),
        {"NX_DAEMON": "false", "CI": "true"},
    )


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
            "build.gradle": GRADLE_BUILD.replace("LARGE", str(GRADLE_LARGE)),
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
    return Workspace(
        root,
        [str(installed(tools, "moon", f"@moonrepo/cli@{MOON}") / ".bin/moon"), "run", "app:build"],
        lambda: [*root.glob("app/dist/*")],
        lambda: delete(root / "app/dist", root / ".moon/cache"),
    )


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


MAKEFILE = """
all: objects
	STOP
objects: $(patsubst %.c,%.o,$(wildcard *.c))
%.o: %.c
	$(CC) -c $< -o $@
"""


def _compilation(root: Path, program: Path, stop: str, variables: Mapping[str, str]) -> Workspace:
    """C sources, whose objects are the same in each build: counts show where they come from."""
    assert program.exists(), "run `make .tools/compilers/.ready`"
    unique = secrets.token_hex(8)
    files = {f"f{number}.c": f'const char *f{number}(void) {{ return "{unique}"; }}\n' for number in range(SOURCES)}
    write(root, {**files, "Makefile": MAKEFILE.replace("STOP", stop)})

    def forget() -> None:
        delete(root / "local")
        for file in root.glob("*.o"):
            file.unlink()

    return Workspace(root, ["make", "-s", f"CC={program} gcc"], lambda: [*root.glob("*.o")], forget, variables)


def ccache(root: Path, tools: Path) -> Workspace:
    program = tools / "compilers/bin/ccache"
    return _compilation(root, program, "@true", {"CCACHE_DIR": str(root / "local")})


def sccache(root: Path, tools: Path) -> Workspace:
    """Its server ends with the build."""
    program = tools / "compilers/bin/sccache"
    variables = {"SCCACHE_DIR": str(root / "local")}
    return _compilation(root, program, f"@{program} --stop-server >/dev/null", variables)


def rust(root: Path, tools: Path) -> Workspace:
    """A program with dependencies that come from no registry. sccache caches all of them, and not the program."""
    program = tools / "compilers/bin/sccache"
    assert program.exists(), "run `make .tools/compilers/.ready`"
    unique, names = secrets.token_hex(8), [f"crate{number}" for number in range(CRATES)]
    files = {}
    for name in names:
        files[f"{name}/Cargo.toml"] = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n'
        files[f"{name}/src/lib.rs"] = f'pub fn text() -> &\'static str {{ "{name} {unique}" }}\n'
    dependencies = "\n".join(f'{name} = {{ path = "../{name}" }}' for name in names)
    files["app/Cargo.toml"] = (
        f'[package]\nname = "app"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\n{dependencies}\n'
    )
    calls = "\n".join(f'println!("{{}}", {name}::text());' for name in names)
    files["app/src/main.rs"] = f"fn main() {{\n{calls}\n}}\n"
    files["Cargo.toml"] = '[workspace]\nresolver = "2"\nmembers = ["*"]\nexclude = ["target", "local"]\n'
    files["build.sh"] = f"""
cargo build --release --offline --jobs 10
status=$?
{program} --show-stats --stats-format json && echo
{program} --stop-server >/dev/null 2>&1
exit $status
"""
    write(root, files)
    variables = {
        "SCCACHE_DIR": str(root / "local"),
        "RUSTC_WRAPPER": str(program),
        "CARGO_HOME": str(root.parent / "cargo"),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }
    return Workspace(
        root,
        ["sh", "build.sh"],
        lambda: [*root.glob("target/release/deps/libcrate*.rlib")],
        lambda: delete(root / "target", root / "local"),
        variables,
    )
