"""What git knows here about the causes that a deployment has found: it sees digests, and not the repository.

Only if git has the commit of the baseline. A cause of several files names one of them, so git completes it only if
exactly as many files differ in the same way, for the same tasks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from larder.why.causes import Kind, advice_of
from larder.why.comparison import Classes, FileChange, changed_files, path_of
from larder.why.hints import FileHint, Hint, Hints
from larder.why.records import MAX_NAMES, CauseJson, ComparisonJson, HintJson
from larder.why.summaries import Summary
from larder_cli.why.checkout import committed_files, read_hints

_KINDS = frozenset(Kind)
"""A newer deployment can have others."""

_FILES = (Kind.FILE, Kind.GLOBAL_FILE)
_OF_FILES = (Hint.IGNORED, Hint.UNTRACKED, Hint.UNCOMMITTED)

Paths = Sequence[str]

Ask = Callable[[Summary], ComparisonJson]
"""Compare another run with the same baseline."""


def completed(
    shown: ComparisonJson, run: Summary, root: Path, sent: Hints, ask: Ask
) -> tuple[ComparisonJson, Sequence[Paths]]:
    """What a deployment says about a dry run in `root`, with classes, commits, line endings and names of packages.

    Also the files of each cause, empty if git does not know all of them. `sent` are the hints of the report. `ask` can
    raise click.ClickException.
    """
    sha = shown["baseline"]["sha"] or ""
    files = committed_files(root, sha)
    if files is None:
        return shown, [
            (cause["subject"],) if cause["kind"] in _FILES and not cause["more"] else ()
            for cause in shown["causes"]
        ]
    removed = {cause["subject"] for cause in shown["causes"] if cause["how"] == "removed"}
    base = _as_committed(run, sha, files, removed)
    here = _Here(
        run=run,
        sent=sent,
        hints=read_hints(root, base, run, is_dry_run=True),
        changes=changed_files(base, run),
        tasks=_tasks_of(run),
    )
    groups = [here.files_of(cause) for cause in shown["causes"]]
    endings = {path for paths in groups if here.have_other_endings(paths) for path in paths}
    if endings and not _are_all(endings, shown, ask(_with_files(run, files, endings))):
        endings = set()
    pairs = zip(shown["causes"], groups, strict=True)
    causes = [here.completed(one, paths, endings) for one, paths in pairs]
    return {**shown, "causes": causes}, [sorted(paths) for paths in groups]


def _as_committed(
    run: Summary, sha: str, files: Mapping[str, str], removed: Iterable[str]
) -> Summary:
    """The run with the files of a commit. Its packages differ, so that the lockfiles are compared."""
    known = {path: files[path] for path in {*run.shared.files, *removed} & files.keys()}
    tasks = {
        id: replace(
            task,
            hash="",
            external="",
            files={
                name: files[path]
                for name in task.files
                if (path := path_of(task.directory, name)) in files
            },
        )
        for id, task in run.tasks.items()
    }
    return replace(run, sha=sha, shared=replace(run.shared, files=known, external=""), tasks=tasks)


def _tasks_of(run: Summary) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for task in run.tasks.values():
        for name in task.files:
            found[path_of(task.directory, name)].add(task.id)
    return found


def _with_files(run: Summary, files: Mapping[str, str], paths: Iterable[str]) -> Summary:
    """The run with some files as in a commit."""
    wanted = set(paths)

    def changed(directory: str, old: Mapping[str, str]) -> dict[str, str]:
        at = {name: path_of(directory, name) for name in old}
        return {name: files[at[name]] if at[name] in wanted else old[name] for name in old}

    tasks = {
        id: replace(task, files=changed(task.directory, task.files))
        for id, task in run.tasks.items()
    }
    return replace(
        run, shared=replace(run.shared, files=changed("", run.shared.files)), tasks=tasks
    )


def _are_all(endings: set[str], shown: ComparisonJson, without: ComparisonJson) -> bool:
    """Whether each of these files is in the baseline as in its commit: as in the commit, it is no cause any more."""
    if not shown["complete"] or not without["complete"]:
        return False
    left = {cause["subject"] for cause in without["causes"]}
    return not endings & left and _files(shown) - _files(without) == len(endings)


def _files(shown: ComparisonJson) -> int:
    return sum(cause["more"] + 1 for cause in shown["causes"] if cause["kind"] in _FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    run: Summary
    sent: Hints
    hints: Hints
    changes: Mapping[str, FileChange]
    tasks: Mapping[str, set[str]]
    """The tasks that have a file as an input, by its path."""

    def files_of(self, cause: CauseJson) -> frozenset[str]:
        """The files of a cause. Empty if it is not about files, or if git does not know all of them."""
        if cause["kind"] not in _FILES:
            return frozenset()
        if not cause["more"]:
            return frozenset({cause["subject"]})
        hint = next((one["hint"] for one in cause["hints"] if one["hint"] in _OF_FILES), None)
        found = {
            path
            for path, one in self.changes.items()
            if _how(one) == cause["how"]
            and self.sent.files.get(path, FileHint()).hint == hint
            and self._has_tasks(path, cause)
        }
        is_all = cause["subject"] in found and len(found) == cause["more"] + 1
        return frozenset(found) if is_all else frozenset()

    def _has_tasks(self, path: str, cause: CauseJson) -> bool:
        if cause["kind"] == Kind.GLOBAL_FILE:
            return path in self.run.shared.files
        tasks = self.tasks[path]
        return {*cause["direct"]} <= tasks and len(tasks) == cause["directCount"]

    def have_other_endings(self, paths: Iterable[str]) -> bool:
        known = {self.hints.files.get(path, FileHint()).hint for path in paths}
        return known == {Hint.LINE_ENDINGS}

    def completed(self, cause: CauseJson, paths: frozenset[str], endings: set[str]) -> CauseJson:
        if cause["kind"] not in _KINDS or (cause["kind"] in _FILES and not paths):
            return cause
        kind, hints = Kind(cause["kind"]), cause["hints"]
        class_, commit = cause["class"], cause["commit"]
        known = {self.hints.files.get(path, FileHint()).hint for path in paths}
        if paths and paths <= endings:
            left: list[HintJson] = [hint for hint in hints if hint["hint"] not in _OF_FILES]
            hints = [*left, {"hint": Hint.LINE_ENDINGS, "values": []}]
        elif not hints and known == {Hint.UNCOMMITTED}:
            hints = [{"hint": Hint.UNCOMMITTED, "values": []}]
        elif not hints and (names := self._packages(cause)):
            hints = [{"hint": Hint.PACKAGES, "values": names[:MAX_NAMES]}]
        of = Classes(self.hints, self.run).of
        classes = {of(kind, path) for path in paths or {cause["subject"]}}
        if class_ is None and len(classes) == 1:
            class_ = classes.pop()
        commits = {self.hints.files.get(path, FileHint()).commit for path in paths}
        if commit is None and len(commits) == 1:
            commit = commits.pop()
        return {
            **cause,
            "hints": hints,
            "class": class_,
            "commit": commit,
            "advice": advice_of(kind, [hint["hint"] for hint in hints]),
        }

    def _packages(self, cause: CauseJson) -> list[str]:
        """The changed external packages of the workspaces of a cause, if they are the same in all."""
        if cause["kind"] == Kind.GLOBAL_EXTERNAL:
            return list(self.hints.packages.get("", ()))
        if cause["kind"] != Kind.EXTERNAL:
            return []
        if cause["more"]:
            changed = {names for folder, names in self.hints.packages.items() if folder}
            return list(changed.pop()) if len(changed) == 1 else []
        folders = {
            task.directory for task in self.run.tasks.values() if task.package == cause["subject"]
        }
        return [name for folder in folders for name in self.hints.packages.get(folder, ())]


def _how(change: FileChange) -> str:
    if not change.old:
        return "added"
    return "changed" if change.new else "removed"
