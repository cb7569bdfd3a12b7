"""What git knows about a run, and about the differences of two runs.

Every hint is proven: the commit of the run has to be in the repository, and content is compared by its hash.
"""

import hashlib
import posixpath
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from larder.why.comparison import (
    LOCKFILES,
    TURBO_JSON,
    FileChange,
    changed_files,
    path_of,
)
from larder.why.hints import FileHint, Hint, Hints
from larder.why.inputs import MAX_ANCESTORS, MAX_HINTS
from larder.why.summaries import Summary
from larder_cli.why.git import names, run_git
from larder_cli.why.lockfiles import Lockfile, Read, changed_packages, external_packages

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_MAX_COMMITS = 1_000
_MAX_FILES = 1_000
_MAX_FILE_BYTES = 2_000_000
_MAX_LOCKFILE_BYTES = 50_000_000
_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What git knows about the run of a dry run here.

    `ancestors` are the commits before its own, the nearest first. `dirty` is whether tracked files differ from the
    commit, None without git. `hints` has the inputs that are not as in the commit, as many as a report can have.
    """

    ancestors: Sequence[str] = ()
    dirty: bool | None = None
    hints: Hints = field(default_factory=Hints)


def read_checkout(root: Path, run: Summary) -> Checkout:
    """`run` is that of a dry run in the repository of turbo in `root`."""
    git = _Git(root)
    tree = git.tree(run.sha or "")
    if tree is None:
        return Checkout()
    changes = {one.path: one for one in _inputs(run) if tree.get(one.path) != one.new}
    folders = {"", *(task.directory for task in run.tasks.values())}
    # Whether a cause is in a commit depends on these files, too.
    for path in (
        *LOCKFILES,
        *(posixpath.join(folder, name) for folder in folders for name in TURBO_JSON),
    ):
        if path not in tree and git.working_file(path) is not None:
            changes.setdefault(path, FileChange(path, "", path))
    hints = dict(_file_hints(git, changes, None, tree, "", run.sha or ""))
    if len(hints) > MAX_HINTS:
        # With a hint for some of them, files that changed alike would be two causes. `dirty` says the rest.
        outside = [path for path, one in hints.items() if one.hint is not Hint.UNCOMMITTED]
        hints = {path: hints[path] for path in outside[:MAX_HINTS]}
    return Checkout(ancestors=git.ancestors(), dirty=git.is_dirty(), hints=Hints(files=hints))


def committed_files(root: Path, sha: str) -> Mapping[str, str] | None:
    """The hash of each file of a commit, by its path in `root`. None if git does not have the commit."""
    return _Git(root).tree(sha)


def _inputs(run: Summary) -> Iterator[FileChange]:
    """The inputs of all tasks, by their path in `root`."""
    lists = ((task.directory, task.files) for task in run.tasks.values())
    for directory, files in (("", run.shared.files), *lists):
        for name, hash in files.items():
            yield FileChange(path_of(directory, name), "", hash)


def read_hints(root: Path, base: Summary, run: Summary, *, is_dry_run: bool) -> Hints:
    """The hints for the differences of two runs, from the repository of turbo in `root`. They can be empty.

    After a dry run, the files in `root` are those of `run`.
    """
    git = _Git(root)
    trees = {sha: git.tree(sha) for sha in {base.sha, run.sha} if sha}
    old, new = trees.get(base.sha or ""), trees.get(run.sha or "")
    if new is None:
        return Hints()
    changes = changed_files(base, run)
    return Hints(
        files=dict(_file_hints(git, changes, old, new, base.sha or "", run.sha or "")),
        committed=None
        if old is None
        else {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)},
        packages=_packages(git, base, run, is_dry_run=is_dry_run),
    )


def _file_hints(
    git: "_Git",
    changes: Mapping[str, FileChange],
    old: Mapping[str, str] | None,
    new: Mapping[str, str],
    old_sha: str,
    new_sha: str,
) -> Iterator[tuple[str, FileHint]]:
    outside = [
        path for path, one in changes.items() if path not in (new if one.new else old or new)
    ]
    # A file that is neither in the commit nor in the index.
    added = git.indexed() if outside else set()
    untracked = {path for path in outside if path not in added}
    ignored = git.ignored(untracked)
    endings = _line_endings(git, changes.values())
    commits = git.commits(old_sha, new_sha) if old is not None and old_sha != new_sha else {}
    for path, one in changes.items():
        hint = None
        if path in endings:
            hint = Hint.LINE_ENDINGS
        elif path in ignored:
            hint = Hint.IGNORED
        elif path in untracked:
            # Whether a removed file was in git is known only with the commit of the baseline.
            hint = Hint.UNTRACKED if one.new or old is not None else None
        elif one.new and (path in outside or new[path] != one.new):
            hint = Hint.UNCOMMITTED
        commit = None
        if old is not None and old.get(path) != new.get(path) and hint is not Hint.UNCOMMITTED:
            commit = commits.get(path)
        if hint or commit:
            yield path, FileHint(hint=hint, commit=commit)


def _line_endings(git: "_Git", changes: Iterable[FileChange]) -> set[str]:
    """The files whose content differs only in its line endings: the same content with others has the other hash."""
    pairs = [
        change for change in changes if _SHA1.fullmatch(change.old) and _SHA1.fullmatch(change.new)
    ]
    if not pairs or len(pairs) > _MAX_FILES:
        return set()
    stored = git.contents({hash for pair in pairs for hash in (pair.old, pair.new)})
    found: set[str] = set()
    for pair in pairs:
        sources = (stored.get(pair.old), stored.get(pair.new), git.working_file(pair.path))
        for content in sources:
            if content is None or _blob(content) not in (pair.old, pair.new):
                continue
            unix = content.replace(b"\r\n", b"\n")
            hashes = {_blob(content), _blob(unix), _blob(unix.replace(b"\n", b"\r\n"))}
            if {pair.old, pair.new} <= hashes:
                found.add(pair.path)
    return found


def _packages(
    git: "_Git", base: Summary, run: Summary, *, is_dry_run: bool
) -> Mapping[str, tuple[str, ...]]:
    """The changed external packages of each workspace, by its folder, from the lockfiles of both commits."""
    if not base.sha or not run.sha or not _has_other_packages(base, run):
        return {}
    folders = sorted({task.directory for task in run.tasks.values()} | {""})
    for name in LOCKFILES:
        old = git.file(base.sha, name)
        new = git.working_text(name) if is_dry_run else git.file(run.sha, name)
        if old is None or new is None or old == new:
            continue
        readers: Sequence[Read] = (
            lambda path: git.file(base.sha or "", path),
            git.working_text if is_dry_run else lambda path: git.file(run.sha or "", path),
        )
        before, after = (
            external_packages(Lockfile(name, text, folders, read))
            for text, read in zip((old, new), readers, strict=True)
        )
        return {
            folder: names
            for folder in before.keys() & after.keys()
            if (names := changed_packages(before[folder], after[folder]))
        }
    return {}


def _has_other_packages(base: Summary, run: Summary) -> bool:
    return base.shared.external != run.shared.external or any(
        task.external != base.tasks[task.id].external
        for task in run.tasks.values()
        if task.id in base.tasks
    )


def _blob(content: bytes) -> str:
    """git's hash of a file with this content."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


class _Git:
    """Reads a repository. Paths start at `root`, which can be a folder of the repository. Changes nothing."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def tree(self, sha: str) -> dict[str, str] | None:
        """The hash of each file of a commit, by its path. None if the commit is not there."""
        if not _COMMIT.fullmatch(sha):
            return None
        listed = self._run("ls-tree", "-r", "-z", sha)
        if listed is None:
            return None
        rows = (row.partition("\t") for row in names(listed))
        return {path: about.split(" ")[2] for about, _, path in rows}

    def ancestors(self) -> list[str]:
        """The commits before that of the checkout, the nearest first."""
        listed = self._run("rev-list", f"--max-count={MAX_ANCESTORS}", "--skip=1", "HEAD")
        return (listed or b"").decode().split()

    def is_dirty(self) -> bool | None:
        """Whether tracked files differ from the commit."""
        shown = self._run("status", "--porcelain", "--untracked-files=no")
        return None if shown is None else bool(shown.strip())

    def indexed(self) -> set[str]:
        return set(names(self._run("ls-files", "-z") or b""))

    def ignored(self, paths: Iterable[str]) -> set[str]:
        sent = [path for path in paths if not path.startswith("..") and "\0" not in path]
        if not sent:
            return set()
        text = "\0".join(sent).encode(errors="surrogateescape")
        return set(names(self._run("check-ignore", "-z", "--stdin", sent=text) or b""))

    def commits(self, old: str, new: str) -> dict[str, str]:
        """The last commit after `old` that changed each file."""
        listed = self._run(
            *(
                "log",
                f"--max-count={_MAX_COMMITS}",
                "--format=%x01%h",
                "--name-only",
                "-z",
                "--no-renames",
            ),
            *("--relative", f"{old}..{new}", "--", "."),
        )
        found: dict[str, str] = {}
        commit = ""
        for name in names(listed or b""):
            if name.startswith("\x01"):
                commit = name.strip("\x01\n")
            else:
                found.setdefault(name.lstrip("\n"), commit)
        return found

    def file(self, sha: str, path: str) -> str | None:
        """A file of a commit as text."""
        content = self._run("cat-file", "blob", f"{sha}:./{path}")
        if content is None or len(content) > _MAX_LOCKFILE_BYTES:
            return None
        return content.decode(errors="replace")

    def contents(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """The stored contents with these hashes. Those of large files are left out."""
        wanted = "".join(f"{hash}\n" for hash in sorted(hashes)).encode()
        sizes = self._run(
            "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", sent=wanted
        )
        rows = [row.split(" ") for row in (sizes or b"").decode(errors="replace").splitlines()]
        small = [
            row[0]
            for row in rows
            if len(row) == 3 and row[1] == "blob" and int(row[2]) <= _MAX_FILE_BYTES
        ]
        found: dict[str, bytes] = {}
        stored = self._run(
            "cat-file", "--batch", sent="".join(f"{one}\n" for one in small).encode()
        )
        rest = stored or b""
        while rest:
            head, _, rest = rest.partition(b"\n")
            hash, _, size = head.decode(errors="replace").split(" ")
            found[hash], rest = rest[: int(size)], rest[int(size) + 1 :]
        return found

    def working_file(self, path: str) -> bytes | None:
        """A file of the working tree, if it is not large."""
        file = self._root / path
        try:
            is_inside = file.resolve().is_relative_to(self._root.resolve())
            if not is_inside or not file.is_file() or file.stat().st_size > _MAX_FILE_BYTES:
                return None
            return file.read_bytes()
        except (OSError, ValueError):
            return None

    def working_text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return None

    def _run(self, *arguments: str, sent: bytes = b"") -> bytes | None:
        """The output, None if git fails or is not installed."""
        try:
            done = run_git(self._root, *arguments, seconds=_SECONDS, sent=sent)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None
