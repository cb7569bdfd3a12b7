"""A copy of the checkout, in which an edit is tried and turbo computes hashes. The checkout itself is not touched."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from larder.why.comparison import path_of
from larder.why.summaries import Summary
from larder_cli.why.git import names, run_git
from larder_cli.why.summaries import dry_run

_SECONDS = 600
_CONFIGURATION = (
    *("core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks"),
    *("core.excludesfile", "core.attributesfile", "core.precomposeunicode"),
)
"""Settings of git that change what turbo hashes."""

_LITERAL = ("--literal-pathspecs",)
_OF_GIT = ("info/exclude", "info/attributes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What differs from the checkout: variables, files (None: without it), or how git writes files.

    With `crlf`, these tracked files are as git for Windows writes them by default, otherwise as git on Linux does.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    written: Sequence[str] = ()
    crlf: bool = False


class Scratch:
    """The copy, until the end of a `with`. Paths start at `root`, the folder of turbo.json in the checkout."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = tempfile.TemporaryDirectory(prefix="larder-fix-")
        self.root = Path(self._folder.name, "copy")
        # Each file gets a time of its own, long ago.
        self._written = 1_000_000_000

    def __enter__(self) -> Self:
        try:
            self._fill()
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def _fill(self) -> None:
        top = Path(_git(self._root, "rev-parse", "--show-toplevel").decode().strip())
        copy = self.root
        _git(top, "clone", "--quiet", "--shared", "--no-checkout", "--template=", ".", str(copy))
        (copy / ".git" / "info").mkdir(exist_ok=True)
        for name in _CONFIGURATION:
            if value := _setting(top, name):
                _git(copy, "config", name, value)
        for name in _OF_GIT:
            _copied(
                top / _git(top, "rev-parse", "--git-path", name).decode().strip(),
                copy / ".git" / name,
            )
        listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for path in dict.fromkeys(names(listed)):
            _copied(top / path, copy / path)
        _git(copy, "reset", "--quiet", "HEAD")
        self.root = copy / self._root.resolve().relative_to(top.resolve())

    def add_inputs(self, run: Summary) -> None:
        """Copy inputs that git ignores."""
        lists = ((task.directory, task.files) for task in run.tasks.values())
        for directory, files in (("", run.shared.files), *lists):
            for name in files:
                path = path_of(directory, name)
                if not path.startswith("..") and not (self.root / path).exists():
                    _copied(self._root / path, self.root / path)

    def read(self, path: str) -> bytes | None:
        return read_file(self.root, path)

    def write(self, files: Mapping[str, bytes | None]) -> None:
        write_files(self.root, files)
        self._settle(files)

    def run(self, tasks: Sequence[str], situation: Situation | None = None) -> Summary:
        """What turbo would do in a situation. Raises click.ClickException."""
        with self._in(situation or Situation()) as variables:
            return dry_run(self._root, self.root, tasks, is_offline=True, variables=variables)

    @contextmanager
    def _in(self, situation: Situation) -> Iterator[Mapping[str, str]]:
        before = {path: self.read(path) for path in (*situation.files, *situation.written)}
        try:
            self.write(situation.files)
            if situation.written:
                # Without the files, git writes them again.
                write_files(self.root, dict.fromkeys(situation.written))
                self._convert("true" if situation.crlf else "false")
                _git(self.root, *_LITERAL, "checkout", "--quiet", "--", *situation.written)
                self._settle(situation.written)
            yield situation.variables
        finally:
            if situation.written:
                self._convert(_setting(self._root, "core.autocrlf") or "false")
            self.write(before)

    def _convert(self, autocrlf: str) -> None:
        _git(self.root, "config", "core.autocrlf", autocrlf)

    def _settle(self, paths: Iterable[str]) -> None:
        """Have git look at the files again, as after a checkout, because turbo takes what git has noted."""
        for path in paths:
            self._written += 1
            with suppress(FileNotFoundError):
                os.utime(self.root / path, (self._written, self._written), follow_symlinks=False)
        if paths:
            _git(
                self.root, *_LITERAL, "rm", "--quiet", "--cached", "--ignore-unmatch", "--", *paths
            )
            _git(self.root, *_LITERAL, "reset", "--quiet", "HEAD", "--", *paths)


def _setting(folder: Path, name: str) -> str:
    return _git(folder, "config", "--get", name, may_fail=True).decode().strip()


def read_file(root: Path, path: str) -> bytes | None:
    """None if there is no such file."""
    try:
        return (root / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_files(root: Path, files: Mapping[str, bytes | None]) -> None:
    """Write files, and remove those with None. Raises OSError."""
    for path, content in files.items():
        if content is None:
            (root / path).unlink(missing_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


def tracked(root: Path, patterns: Iterable[str]) -> set[str]:
    """The files in git that pathspecs match."""
    return set(names(_git(root, "ls-files", "-z", "--", *patterns)))


def mentions(root: Path, pattern: str, pathspecs: Sequence[str]) -> str | None:
    """The first line that matches an extended regular expression, as `path:line`. Also of files that are not in git."""
    found = _git(
        root,
        *("grep", "--untracked", "-I", "-n", "-E", "-e", pattern, "--", *pathspecs),
        may_fail=True,
    )
    first = found.decode(errors="replace").partition("\n")[0]
    return ":".join(first.split(":", 2)[:2]) if first else None


def committed(root: Path, sha: str, path: str) -> bytes | None:
    """A file of a commit. None if git does not have it."""
    return _git(root, "cat-file", "blob", f"{sha}:./{path}", may_fail=True) or None


def _copied(source: Path, target: Path) -> None:
    """Links stay links. A submodule is left out, as its content is not hashed."""
    if source.is_symlink() or source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _git(folder: Path, *arguments: str, may_fail: bool = False) -> bytes:
    """The output. Raises click.ClickException."""
    try:
        done = run_git(folder, *arguments, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.ClickException(f"cannot run git: {error}") from error
    if done.returncode and not may_fail:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise click.ClickException(f"{' '.join(('git', *arguments[:3]))} failed: {said}")
    return done.stdout
