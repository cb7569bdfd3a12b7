"""A generated monorepo with npm workspaces: packages that depend on each other and build with node."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BUILD_SCRIPT = Path(__file__).with_name("build.mjs")
LARGE_PACKAGES = {"large-20": 20_000_000, "large-120": 120_000_000}
SIZED_PACKAGES = {"sized-1k": 1_000, "sized-300k": 300_000, "sized-4m": 4_000_000}
# New in every build, so it is equal only if the output was restored.
BUILD_ID = "dist/build-id.txt"


def short_sample_packages() -> tuple[Package, ...]:
    """Nine packages, few of them small, because each build starts npm."""
    return sample_packages(3)


def sample_packages(small: int = 24) -> tuple[Package, ...]:
    """Thirty packages: small ones in layers, three near the cache's thresholds, two above its inline limit, an app."""
    libs = [Package(f"lib-{number:02}", 2_000 + 500 * number, _dependencies_of(number)) for number in range(small)]
    sized = [Package(name, size, ("lib-00",)) for name, size in SIZED_PACKAGES.items()]
    large = [Package(name, size, ("lib-01",)) for name, size in LARGE_PACKAGES.items()]
    # One package depends on the large ones, so it only builds after they were built or restored.
    app = Package("app", 10_000, (f"lib-{small - 1:02}", *LARGE_PACKAGES))
    return (*libs, *sized, *large, app)


def generate(root: Path, packages: Iterable[Package], *, home: Path) -> None:
    """Write the monorepo into `root` and let npm link its workspaces, without a registry."""
    npm_version = _run(["npm", "--version"], cwd=root.parent, home=home).strip()
    root.mkdir()
    _write_json(
        root / "package.json",
        {
            "name": "sample-monorepo",
            "private": True,
            "packageManager": f"npm@{npm_version}",
            "workspaces": ["packages/*"],
        },
    )
    (root / ".gitignore").write_text("node_modules/\ndist/\n.turbo/\n")
    for package in packages:
        folder = root / "packages" / package.name
        (folder / "src").mkdir(parents=True)
        _write_json(
            folder / "package.json",
            {
                "name": f"@sample/{package.name}",
                "version": "1.0.0",
                "type": "module",
                "scripts": {"build": "node build.mjs"},
                "dependencies": {f"@sample/{name}": "*" for name in package.dependencies},
                "sample": {"outputBytes": package.output_bytes},
            },
        )
        shutil.copy(BUILD_SCRIPT, folder / "build.mjs")
        (folder / "src" / "index.js").write_text(f'export const name = "{package.name}";\n')
    _run(["npm", "install", "--offline", "--no-audit", "--no-fund"], cwd=root, home=home)


def copy_with_sources_of_its_own(
    template: Path, root: Path, *, seed: str, turbo_json: dict[str, object], home: Path
) -> None:
    """Copy a generated monorepo, give it unique sources and so unique hashes, and commit it to git."""
    shutil.copytree(template, root, symlinks=True)
    for source in sorted(root.glob("packages/*/src/index.js")):
        source.write_text(f'{source.read_text()}export const seed = "{seed}";\n')
    _write_json(root / "turbo.json", turbo_json)
    author = ["-c", "user.name=Sample", "-c", "user.email=sample@example.com"]
    _run(["git", "init", "--quiet", "--initial-branch=main"], cwd=root, home=home)
    _run(["git", "add", "--all"], cwd=root, home=home)
    _run(["git", *author, "commit", "--quiet", "--message=Sample"], cwd=root, home=home)


def head_commit(root: Path) -> str:
    """The commit that turbo sends as `x-artifact-sha`."""
    return _run(["git", "rev-parse", "HEAD"], cwd=root, home=root.parent).strip()


def wipe_outputs_and_local_cache(root: Path) -> None:
    """Delete everything that a fresh clone with installed dependencies would not have."""
    wipe_local_cache(root)
    wipe_outputs(root)


def wipe_local_cache(root: Path) -> None:
    shutil.rmtree(root / ".turbo", ignore_errors=True)
    shutil.rmtree(root / "node_modules" / ".cache", ignore_errors=True)


def wipe_outputs(root: Path) -> None:
    for package in (root / "packages").iterdir():
        shutil.rmtree(package / "dist", ignore_errors=True)
        shutil.rmtree(package / ".turbo", ignore_errors=True)


def output_digests(root: Path) -> dict[str, dict[str, str]]:
    """The outputs of all builds: package name -> path in the package -> mode and SHA-256, or a link's target."""
    return {
        package.name: {
            str(path.relative_to(package)): _digest(path)
            for path in sorted((package / "dist").rglob("*"))
            if path.is_symlink() or path.is_file()
        }
        for package in sorted((root / "packages").iterdir())
    }


def build_ms(root: Path, package: str) -> int:
    """How long the build script ran when it made this output."""
    return int((root / "packages" / package / BUILD_ID).read_text().split()[1])


def without_build_ids(digests: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The outputs that a second build of the same source reproduces."""
    return {
        package: {path: digest for path, digest in files.items() if path != BUILD_ID}
        for package, files in digests.items()
    }


def _dependencies_of(number: int) -> tuple[str, ...]:
    """Each small package except the first five depends on two earlier ones: a graph about six layers deep."""
    if number < 5:
        return ()
    return (f"lib-{number - 5:02}", f"lib-{(number * 7) % (number - 4):02}")


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    with path.open("rb") as file:
        return f"{path.stat().st_mode & 0o777:o} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def _run(command: list[str], *, cwd: Path, home: Path) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


@dataclass(frozen=True)
class Package:
    """One workspace. Its build writes `output_bytes` that do not compress."""

    name: str
    output_bytes: int
    dependencies: tuple[str, ...] = ()
