"""`larder why --fix`: the edit for each cause that has one, with the proof that it works.

An edit is tried in a copy of the checkout. turbo computes the hashes in two situations that differ in the cause, with
and without the edit. It is proven if the hashes differ without it, are equal with it, and if turbo sees no other change
of any task. What cannot be proven is refused, with the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict

import click

from larder.why.causes import ADVICE, Cause, Kind
from larder.why.comparison import compare
from larder.why.records import CauseJson, ComparisonJson
from larder.why.summaries import Summary
from larder_cli.why.edits import unified_diff
from larder_cli.why.recipes import RECIPES, Draft, Edit, Refused, Scene, edit_of, situations_of
from larder_cli.why.scratch import Scratch, Situation, read_file, write_files
from larder_cli.why.summaries import dry_run

_NAMED = (Kind.FILE, Kind.GLOBAL_FILE, Kind.ENV, Kind.GLOBAL_ENV)
_EXTERNAL = {Kind.EXTERNAL, Kind.GLOBAL_EXTERNAL}


class FixJson(TypedDict):
    """One cause. `cause` is its place in `causes`. `edit` is null if no edit exists for it.

    `status` is `proven`, `refused` (`text` is the reason) or `none` (`text` is what a person can do). `keep` counts the
    tasks that keep their hash in both situations, without the edit and with it.
    """

    cause: int
    edit: Edit | None
    status: Literal["proven", "refused", "none"]
    text: str
    files: list[str]
    diff: str
    keep: list[int]


class FixesJson(TypedDict):
    """`tasks` counts those of the last run that are here, and `hits` those of them that hit if only the proven causes
    differ: without the edits, and with them.
    """

    tasks: int
    hits: list[int]
    applied: bool
    fixes: list[FixJson]


@dataclass(slots=True)
class Fixes:
    """The fixes, and the files with all proven edits: as they were, and as they are to be."""

    shown: FixesJson
    before: Mapping[str, bytes | None]
    after: Mapping[str, bytes]
    names: Sequence[str]
    hashes: Mapping[str, str]

    def apply(self, root: Path) -> None:
        """Write the edits, and check that turbo computes the proven hashes. Otherwise everything is as before.

        Raises click.ClickException.
        """
        if any(read_file(root, path) != content for path, content in self.before.items()):
            raise click.ClickException("nothing was edited: the files have changed meanwhile")
        try:
            write_files(root, self.after)
            run = dry_run(root, root, self.names, is_offline=True)
            if {id: run.tasks[id].hash for id in self.hashes if id in run.tasks} != self.hashes:
                raise click.ClickException("turbo computes other hashes here than in the copy")
        except BaseException as error:
            write_files(root, self.before)
            if isinstance(error, (OSError, click.ClickException)):
                raise click.ClickException(f"the edits were undone: {_said(error)}") from error
            raise
        self.shown["applied"] = True


def find_fixes(
    root: Path, file: str, shown: ComparisonJson, paths: Sequence[Sequence[str]], run: Summary
) -> Fixes:
    """Try the edits. `file` is turbo.json of the root, `paths` has the files of each cause, empty if not known.

    Raises click.ClickException.
    """
    names = sorted({task.task for task in run.tasks.values()})
    with Scratch(root) as scratch:
        scratch.add_inputs(run)
        here = dry_run(root, root, names, is_offline=True)
        scratch.add_inputs(here)
        now = scratch.run(names)
        ids = frozenset(run.tasks.keys() & now.tasks.keys())
        if any(id not in here.tasks or here.tasks[id].hash != now.tasks[id].hash for id in ids):
            raise click.ClickException(
                "turbo computes other hashes in a copy of this checkout, so nothing can be proven. "
                "Run `git status`, and try again"
            )
        scene = Scene(root, file, scratch, shown["baseline"]["sha"] or "", now)
        finder = _Finder(scene, names, ids)
        fixes = [finder.fix(*one) for one in zip(shown["causes"], paths, strict=False)]
        for number, fix in enumerate(fixes):
            fix["cause"] = number
        return finder.finished(fixes)


class _Pair:
    """What turbo computed in two situations."""

    def __init__(self, old: Summary, new: Summary, ids: frozenset[str]) -> None:
        self.old, self.new = old, new
        self.ids = ids & old.tasks.keys() & new.tasks.keys()
        self.changed = {id for id in self.ids if old.tasks[id].hash != new.tasks[id].hash}

    @property
    def kept(self) -> int:
        return len(self.ids) - len(self.changed)


@dataclass(slots=True)
class _Finder:
    scene: Scene
    names: Sequence[str]
    ids: frozenset[str]
    before: dict[str, bytes | None] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    proven: list[tuple[Situation, Situation]] = field(default_factory=list)

    def fix(self, cause: CauseJson, paths: Sequence[str]) -> FixJson:
        """Try the edit of one cause. It stays in the copy if it is proven."""
        edit, scratch = edit_of(self.scene, cause, paths), self.scene.scratch
        fix: FixJson = {
            "cause": 0,
            "edit": edit,
            "status": "none",
            "text": ADVICE.get(cause["advice"], ""),
            "files": [],
            "diff": "",
            "keep": [],
        }
        if edit is None:
            return fix
        saved: dict[str, bytes | None] = {}
        try:
            tried = (
                (one, self._pair(one)) for one in situations_of(self.scene, edit, cause, paths)
            )
            found = next((one for one in tried if one[1].changed), None)
            if found is None:
                raise Refused("no hash here depends on it")
            situations, pair = found
            causes = compare(pair.old, pair.new).causes
            own = sorted(self.ids & {id for one in causes for id in one.direct})
            draft = Draft(self.scene)
            text = RECIPES[edit](draft, cause, paths, [self.scene.now.tasks[id] for id in own])
            saved = {path: scratch.read(path) for path in draft.files}
            scratch.write(draft.files)
            edited = self._pair(situations)
            _check(pair, edited, {*draft.names, *draft.files}, is_of_packages=edit == "lockfile")
        except (Refused, ValueError, click.ClickException) as error:
            scratch.write(saved)
            return {**fix, "status": "refused", "text": _said(error)}
        self.proven.append(situations)
        self.before = {**saved, **self.before}
        self.after |= draft.files
        diff = "".join(unified_diff(path, saved[path], new) for path, new in draft.files.items())
        kept = [pair.kept, edited.kept]
        return {
            **fix,
            "status": "proven",
            "text": text,
            "files": sorted(draft.files),
            "diff": diff,
            "keep": kept,
        }

    def finished(self, fixes: list[FixJson]) -> Fixes:
        """The sums. All proven causes differ at once."""
        hits: list[int] = next((fix["keep"] for fix in fixes if fix["keep"]), [])
        hashes: dict[str, str] = {}
        if self.proven:
            last = self.scene.scratch.run(self.names)
            hashes = {id: last.tasks[id].hash for id in self.ids}
        if len(self.proven) > 1:
            both = (_joined(one for one, _ in self.proven), _joined(one for _, one in self.proven))
            edited = self._pair(both)
            self.scene.scratch.write(self.before)
            hits = [self._pair(both).kept, edited.kept]
        shown: FixesJson = {"tasks": len(self.ids), "hits": hits, "applied": False, "fixes": fixes}
        return Fixes(shown, self.before, self.after, self.names, hashes)

    def _pair(self, situations: tuple[Situation, Situation]) -> _Pair:
        old, new = (self.scene.scratch.run(self.names, one) for one in situations)
        return _Pair(old, new, self.ids)


def _check(pair: _Pair, edited: _Pair, names: set[str], *, is_of_packages: bool) -> None:
    """Raises Refused if the edit does not do what it should, or anything else.

    `names` has the files, the variables and the items of lists about which turbo may see a change.
    """
    if edited.ids != pair.ids:
        raise Refused("with the edit, turbo finds other tasks")
    modes = [
        [run.env_mode, *(run.tasks[id].env_mode for id in pair.ids)]
        for run in (pair.old, edited.old)
    ]
    if modes[0] != modes[1]:
        # turbo 1 infers it from passThroughEnv.
        raise Refused(
            "the edit would also change the environment mode: tasks would get no variable that turbo.json does not list"
        )
    for cause in compare(pair.old, edited.old).causes:
        if (other := _other_effect(cause, names)) is not None:
            raise Refused(f"the edit would also change {other}")
    if not edited.changed < pair.changed or (edited.changed and not is_of_packages):
        count = len(edited.changed)
        raise Refused(f"with the edit, the hashes of {count} tasks would differ all the same")
    if is_of_packages:
        # A lockfile that turbo cannot read would never be seen again.
        kinds = {cause.kind for cause in compare(edited.old, edited.new).causes}
        if not kinds or kinds - _EXTERNAL:
            raise Refused("the change reaches no package, so nothing shows that turbo reads it")


def _other_effect(cause: Cause, names: set[str]) -> str | None:
    """What an edit changes that it should not. None if it should."""
    if cause.kind in _NAMED:
        return next((one for one in (cause.subject, *cause.more) if one not in names), None)
    if cause.kind in (Kind.DEFINITION, Kind.TURBO_JSON):
        return next((one for one in cause.values if one[1:].lstrip("!") not in names), None)
    return cause.kind.replace("-", " ")


def _joined(situations: Iterable[Situation]) -> Situation:
    found = list(situations)
    return Situation(
        variables={name: value for one in found for name, value in one.variables.items()},
        files={path: content for one in found for path, content in one.files.items()},
        written=[path for one in found for path in one.written],
        crlf=any(one.crlf for one in found),
    )


def _said(error: Exception) -> str:
    return error.message if isinstance(error, click.ClickException) else str(error)
