"""What is installed and stored in a repository: the version of turbo, and the sizes of its artifacts."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larder_proxy.settings import Settings, read_document

_VERSION = r"(\d+\.\d+\.\d+)"
_IN_LOCK_FILES = (
    ("pnpm-lock.yaml", re.compile(rf"^ +'?/?turbo[@/]{_VERSION}", re.MULTILINE)),
    ("yarn.lock", re.compile(rf'^"?turbo@[^\n]*:\n  "?version"?:? "?{_VERSION}', re.MULTILINE)),
    ("bun.lock", re.compile(rf'"turbo": \["turbo@{_VERSION}"')),
)
_CACHES = (Path(".turbo", "cache"), Path("node_modules", ".cache", "turbo"))
_SECONDS = 10
_SKIPPED = frozenset({"node_modules", "dist", "build", "target", "vendor"})


@dataclass(frozen=True, slots=True)
class Version:
    """A version of turbo, and the file that names it."""

    text: str
    where: str

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.text.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """The artifacts in turbo's local cache. Those in the remote cache have the same size."""

    where: str
    sizes: tuple[int, ...]

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)

    def over(self, size_bytes: int) -> int:
        return sum(size > size_bytes for size in self.sizes)


def turbo_version(client: Settings) -> Version | None:
    """The installed version, or the one that the lock file or package.json names, or that of turbo on PATH."""
    root = Path(client.root)
    installed = _json(root / "node_modules" / "turbo" / "package.json").get("version")
    locked = _object(_json(root / "package-lock.json").get("packages"))
    npm = _object(locked.get("node_modules/turbo"))
    package = _json(root / "package.json")
    named = [
        _object(package.get(kind)).get("turbo") for kind in ("devDependencies", "dependencies")
    ]
    found = (
        (installed, "node_modules/turbo"),
        (npm.get("version"), "package-lock.json"),
        *((_matched(root / name, pattern), name) for name, pattern in _IN_LOCK_FILES),
        *((text, "package.json") for text in named),
    )
    for text, where in found:
        # A range such as ^2.5.0 in package.json does not name a version.
        if isinstance(text, str) and (match := re.match(rf"{_VERSION}(?![\d.])", text)):
            return Version(match[1], where)
    return _version_on_path(client)


def _version_on_path(client: Settings) -> Version | None:
    program = shutil.which("turbo", path=client.environment.get("PATH"))
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # as a build would
            [program, "--version"],
            cwd=client.root,
            env={
                "PATH": client.environment.get("PATH", os.defpath),
                "TURBO_NO_UPDATE_NOTIFIER": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    match = re.search(rf"^{_VERSION}\s*$", done.stdout, re.MULTILINE)
    return Version(match[1], program) if match else None


def package_manager(root: Path) -> str:
    """The package manager that package.json names, or whose lock file is there: by default npm."""
    named = str(_json(root / "package.json").get("packageManager", "")).partition("@")[0]
    if named in ("npm", "pnpm", "yarn", "bun"):
        return named
    locks = {
        "pnpm-lock.yaml": "pnpm",
        "yarn.lock": "yarn",
        "bun.lock": "bun",
        "bun.lockb": "bun",
    }
    return next((manager for lock, manager in locks.items() if (root / lock).exists()), "npm")


def local_artifacts(client: Settings) -> Artifacts:
    named = client.environment.get("TURBO_CACHE_DIR") or client.document.get("cacheDir")
    folders = (Path(str(named)),) if named else _CACHES
    for folder in folders:
        sizes = tuple(path.stat().st_size for path in Path(client.root, folder).glob("*.tar.zst"))
        if sizes:
            return Artifacts(where=str(folder), sizes=sizes)
    return Artifacts(where=str(folders[0]), sizes=())


def package_configurations(root: Path) -> Iterator[Path]:
    """turbo.json of packages that set remoteCache."""
    for folder, folders, files in os.walk(root):
        folders[:] = [one for one in folders if one not in _SKIPPED and not one.startswith(".")]
        for name in ("turbo.json", "turbo.jsonc"):
            path = Path(folder, name)
            if name in files and Path(folder) != root and _sets_remote_cache(path):
                yield path


def _sets_remote_cache(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        # Such as a link to a file that is not there.
        return False
    return '"remoteCache"' in text and _extends(path)


def _extends(path: Path) -> bool:
    """Whether the file extends that of the root (`"extends": ["//"]`)."""
    return bool(read_document(str(path))[0].get("extends"))


def _matched(path: Path, pattern: re.Pattern[str]) -> str | None:
    try:
        match = pattern.search(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return match[1] if match else None


def _json(path: Path) -> dict[str, Any]:
    try:
        return _object(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    """The value, or an empty one if the file has something else there."""
    return value if isinstance(value, dict) else {}
