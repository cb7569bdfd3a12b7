"""Which artifacts turbo is about to ask for: those of its last run here, or those that a dry run names."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress

from larder_proxy.credentials import SECRETS, Target
from larder_proxy.files import write_private
from larder_proxy.places import FIRST
from larder_proxy.settings import folders_above, is_trusted

MOST_HASHES = 3_000
MOST_FILES = 100
_DRY_SECONDS = 60
_OWN_FOLDERS = (".turbo/cache", "node_modules/.cache/turbo")
"""Of turbo 2, and of turbo 1."""
_OTHER_COMMANDS = (
    "bin boundaries clone completion config daemon devtools docs gen generate info link login logout ls prune query "
    "scan telemetry unlink watch"
)


class LastRun:
    """A private file with the hashes of the last run of a command, in a folder, for a team, and its places."""

    def __init__(
        self, environment: Mapping[str, str], target: Target, folder: str, command: list[str]
    ) -> None:
        base = environment.get("XDG_CACHE_HOME") or environment.get("LOCALAPPDATA")
        base = base or os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
        self._of = json.dumps([target.url, target.query, folder, command])
        self._folder = os.path.join(base, "larder", "turbo")
        # A hash of OpenSSL would take longer to load than all else here.
        self._file = os.path.join(self._folder, f"{zlib.crc32(self._of.encode()):08x}.json")

    def read(self) -> tuple[list[str], int]:
        """Its hashes, none if there was no run, and how many requests ran at a time at its end."""
        try:
            with open(self._file, encoding="utf-8") as opened:
                found = json.load(opened)
            hashes = found["hashes"] if found["of"] == self._of else []
            most = int(found["places"])
            return [hash for hash in hashes if isinstance(hash, str)][:MOST_HASHES], most
        except (OSError, ValueError, KeyError, TypeError):
            return [], FIRST

    def write(self, hashes: Iterable[str], most: int) -> None:
        """Replace the file at once, because two runs can end together. A full disk keeps the former one."""
        kept = {"of": self._of, "hashes": list(dict.fromkeys(hashes))[:MOST_HASHES], "places": most}
        with suppress(OSError):
            write_private(self._file, kept)
            with os.scandir(self._folder) as found:
                files = [one for one in found if one.name.endswith(".json")]
            files.sort(key=lambda one: one.stat().st_mtime, reverse=True)
            for file in files[MOST_FILES:]:
                os.unlink(file)


def may_have_own_artifacts(build: list[str], environment: Mapping[str, str], folder: str) -> bool:
    """Whether turbo can have artifacts in a folder of its own. A fresh clone has at most the folder."""
    if environment.get("TURBO_CACHE_DIR") or any(one.startswith("--cache-dir") for one in build):
        return True
    for above in folders_above(folder):
        git = os.path.join(above, ".git")
        # A worktree shares the artifacts of the first one. Its .git is a file.
        if any(_has_files(os.path.join(above, own)) for own in _OWN_FOLDERS) or os.path.isfile(git):
            return True
        for name in ("turbo.json", "turbo.jsonc"):
            with suppress(OSError), open(os.path.join(above, name), "rb") as opened:
                if b"cacheDir" in opened.read():
                    return True
        if os.path.exists(git):
            return False
    return True


def _has_files(folder: str) -> bool:
    try:
        with os.scandir(folder) as found:
            return any(found)
    except OSError:
        return False


def dry_run(build: list[str], environment: Mapping[str, str], folder: str) -> list[str] | None:
    """The command that lists what `turbo run ...` would do. None for another build."""
    names = [os.path.basename(word) for word in build[:4]]
    if "turbo" not in names:
        return None
    at = names.index("turbo")
    arguments = build[at + 1 :]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [argument for argument in arguments[:end] if not argument.startswith("-")]
    if (
        not words
        or words[0] in _OTHER_COMMANDS.split()
        or any("--dry" in argument for argument in arguments[:end])
    ):
        return None
    own = build[at] if at == 0 else None
    for above in folders_above(folder):
        program = os.path.join(above, "node_modules", ".bin", "turbo")
        if own is None and os.path.exists(program) and is_trusted(program, folder):
            # npx and pnpm would take longer to start than turbo does.
            own = program
    # Its imports take longer than those of all lists.
    import shutil

    if own is None or shutil.which(own, path=environment.get("PATH")) is None:
        return None
    return [own, *arguments[:end], "--dry=json", *arguments[end:]]


def listed(command: list[str], environment: Mapping[str, str], folder: str) -> list[str]:
    """The hashes of the tasks that turbo does not have in its own folder. None of them if the dry run fails."""
    # Without a team, turbo asks no remote cache.
    offline = {**environment, "TURBO_TOKEN": "", "TURBO_TEAM": "", "TURBO_TEAMID": ""}
    for name in ("TURBO_RUN_SUMMARY", *SECRETS):
        offline.pop(name, None)
    import subprocess

    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=offline,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_DRY_SECONDS,
            check=False,
        )
        tasks = json.loads(done.stdout)["tasks"]
        return [str(task["hash"]) for task in tasks if not task["cache"]["local"]][:MOST_HASHES]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return []
