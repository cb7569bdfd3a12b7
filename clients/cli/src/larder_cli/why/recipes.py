"""The edits of `larder why --fix`: which cause has which one, and what differs in the two situations of its proof."""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from larder.why.causes import Kind
from larder.why.comparison import LOCKFILES, path_of
from larder.why.hints import Hint
from larder.why.records import CauseJson
from larder.why.summaries import Summary, Task
from larder_cli.why.edits import Definitions, Place, with_line, with_list
from larder_cli.why.scratch import Scratch, Situation, committed, mentions, tracked
from larder_cli.why.summaries import RUNS

Edit = Literal["variable", "outputs", "inputs", "lockfile", "gitignore", "gitattributes"]

EDITS: Mapping[Edit, tuple[str, str]] = {
    "variable": (
        "A variable whose name says that it changes, and that no file of the repository names",
        "Moves it from `env` to `passThroughEnv`, or from `globalEnv` to `globalPassThroughEnv`: tasks still get it",
    ),
    "outputs": (
        "A file outside git that a task of the last runs has written, in a folder without files of git",
        "Adds its folder to `outputs` of the task and to `.gitignore`",
    ),
    "inputs": (
        "A README, CHANGELOG or LICENSE of a package, for commands such as `tsc` and `jest`",
        'Leaves it out: `"inputs": ["$TURBO_DEFAULT$", "!README.md"]`',
    ),
    "lockfile": (
        "A lockfile in `globalDependencies` or `inputs`",
        "Takes it out of the list: turbo hashes the packages that each workspace uses",
    ),
    "gitignore": (
        "A file outside git such as `.eslintcache`, `*.tsbuildinfo` or `*.log`",
        "Adds its name to `.gitignore`",
    ),
    "gitattributes": (
        "Line endings that depend on the computer",
        "Writes `* text=auto eol=lf` as the first line of `.gitattributes`",
    ),
}
"""For each edit its cause, and what it does. docs/why.md has the table."""

_TEXT = "* text=auto eol=lf"
_DOCUMENT = re.compile(r"(README|CHANGELOG|CONTRIBUTING|LICENSE|NOTICE|AUTHORS)(\.(md|txt|rst))?")
_OF_DOCUMENTS = r"README|CHANGELOG|CONTRIBUTING|NOTICE|AUTHORS|\.mdx?([^A-Za-z0-9]|$)|[Mm]arkdown"
_COMPILERS = re.compile(
    r"(echo|esbuild|jest|mocha|next|node|rollup|swc|true|tsc|tsup|tsx|vite|vitest|webpack)( (?!\.\.)\S+)*"
)
"""Commands that read what the sources import. Others, such as prettier and typedoc, read documents, too."""

_DEBRIS = re.compile(
    r".+(\.tsbuildinfo|\.log|\.swp|~)|\.eslintcache|\.stylelintcache|\.DS_Store|Thumbs\.db"
)
"""Names of files that no task reads."""

_BUILT = frozenset({"dist", "build", "out", "coverage", "storybook-static", ".next", ".output"})
"""Folders into which tools write by default."""

# CI sets variables in hidden files, which is no use of them.
_NOT_SOURCES = tuple(
    f":(exclude,glob)**/{name}" for name in ("turbo.json", "turbo.jsonc", "*.md", ".*", ".*/**")
)
_MAX_RUNS = 10


class Refused(Exception):
    """Why there is no edit. A message for people."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The checkout in `root`, its turbo.json, its copy, the commit of the baseline, and turbo's dry run of now."""

    root: Path
    file: str
    scratch: Scratch
    base: str
    now: Summary

    @property
    def inputs(self) -> set[str]:
        """The inputs of all tasks."""
        tasks = self.now.tasks.values()
        return {path_of(task.directory, name) for task in tasks for name in task.files}

    def covering(self, path: str) -> str | None:
        """The task whose `outputs` has this file, if git tracks it."""
        for task in self.now.tasks.values():
            patterns = [
                f":({'exclude,' if one.startswith('!') else ''}glob){path_of(task.directory, one.lstrip('!'))}"
                for one in task.settings["outputs"]
            ]
            if _is_in(task.directory, path) and patterns and path in tracked(self.root, patterns):
                return task.id
        return None

    def writers(self, path: str) -> set[str]:
        """The tasks of the package that ran when the file was written, in the last runs whose summaries are here."""
        try:
            at = (self.root / path).stat().st_mtime * 1000
        except OSError:
            return set()
        ran = _executions(self.root)
        return {
            id
            for id, folder, first, last in ran
            if first <= at <= last + 1 and _is_in(folder, path)
        }


@dataclass(slots=True)
class Draft:
    """An edit: the new files, and the names of variables, files and items about which turbo may see a change."""

    scene: Scene
    files: dict[str, bytes] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    @property
    def definitions(self) -> Definitions:
        return Definitions(self.scene.file, self.read)

    def read(self, path: str) -> bytes | None:
        return self.files.get(path) or self.scene.scratch.read(path)

    def places(self, task: Task, setting: str) -> list[Place]:
        """Raises Refused if turbo.json has no definition of the task."""
        found = self.definitions.places(task, setting)
        if not found:
            raise Refused(f"turbo.json has no definition of {task.id}")
        return found

    def items(self, place: Place) -> list[str]:
        return self.definitions.items(place) or []

    def set(self, place: Place, wanted: Sequence[str]) -> None:
        file, path = place
        if self.definitions.items(place) != [*wanted]:
            self.files[file] = with_list(self.read(file) or b"{}", path, wanted)

    def add(self, place: Place, item: str) -> None:
        self.set(place, [*self.items(place), *({item} - {*self.items(place)})])

    def add_line(self, file: str, line: str, *, is_first: bool = False) -> None:
        content = self.read(file)
        if line.encode() not in (content or b"").splitlines():
            self.files[file] = with_line(content, line, is_first=is_first)


def edit_of(scene: Scene, cause: CauseJson, paths: Sequence[str]) -> Edit | None:
    """The kind of edit for a cause. None if there is none."""
    hints = {hint["hint"] for hint in cause["hints"]}
    if cause["kind"] in (Kind.ENV, Kind.GLOBAL_ENV):
        return "variable" if Hint.VOLATILE_NAME in hints else None
    if cause["kind"] not in (Kind.FILE, Kind.GLOBAL_FILE) or not paths:
        return None
    names = [posixpath.basename(path) for path in paths]
    if {*names} <= {*LOCKFILES}:
        return "lockfile"
    if Hint.LINE_ENDINGS in hints:
        return "gitattributes"
    if cause["kind"] != Kind.FILE or hints & {Hint.SCRIPT, Hint.DEPENDENCIES, Hint.IGNORED}:
        return None
    if Hint.UNTRACKED in hints:
        # tsc writes no file that its own list has. So hits have to restore the list, too.
        is_list = any(one.endswith(".tsbuildinfo") and scene.writers(one) for one in paths)
        return "gitignore" if all(map(_DEBRIS.fullmatch, names)) and not is_list else "outputs"
    if all(map(_DOCUMENT.fullmatch, names)):
        return "inputs"
    return "outputs" if any(map(scene.covering, paths)) else None


def situations_of(
    scene: Scene, edit: Edit, cause: CauseJson, paths: Sequence[str]
) -> Iterator[tuple[Situation, Situation]]:
    """What the two runs can differ in: as in the baseline, and as now. The first pair with other hashes counts."""
    if edit == "variable":
        one, two = (Situation(variables={cause["subject"]: f"larder-{n}"}) for n in (1, 2))
        yield one, two
    elif edit == "gitattributes":
        stored = {path: committed(scene.root, "HEAD", path) or b"" for path in paths}
        if crlf := next((path for path in paths if b"\r\n" in stored[path]), None):
            raise Refused(
                f"git has {crlf} with CRLF. Add `{_TEXT}` to .gitattributes, and commit what "
                "`git add --renormalize .` changes"
            )
        yield Situation(written=paths), Situation(written=paths, crlf=True)
        # Or an editor has written it.
        windows = {path: content.replace(b"\n", b"\r\n") for path, content in stored.items()}
        yield Situation(files=stored), Situation(files=windows)
    else:
        now = {path: scene.scratch.read(path) for path in paths}
        old = {path: _old(scene, edit, path, content) for path, content in now.items()}
        yield Situation(files=old), Situation(files=now)


def _old(scene: Scene, edit: Edit, path: str, now: bytes | None) -> bytes | None:
    """The file of the baseline, or another content."""
    if edit in ("gitignore", "outputs"):
        return b"larder" if now is None else None
    old = committed(scene.root, scene.base, path)
    if old is not None and old != now:
        return old
    if edit == "lockfile":
        raise Refused("git has no other lockfile of the baseline to compare with")
    return (now or b"") + b"\n"


def _variable(draft: Draft, cause: CauseJson, _: Sequence[str], own: Sequence[Task]) -> str:
    name = cause["subject"]
    word = rf"(^|[^A-Za-z0-9_]){re.escape(name)}([^A-Za-z0-9_]|$)"
    if found := mentions(draft.scene.root, word, (".", *_NOT_SOURCES)):
        raise Refused(
            f"{found} names {name}, so what is built can depend on it. Read it when the app starts"
        )
    file, lists = draft.scene.file, ("env", "passThroughEnv")
    draft.names.add(name)
    if cause["kind"] == Kind.GLOBAL_ENV:
        lists = ("globalEnv", "globalPassThroughEnv")
        _move(draft, name, [(file, lists[:1])], [(file, lists[1:])])
    else:
        for task in own:
            _move(draft, name, *(draft.places(task, one) for one in lists))
    return f"{name} from `{lists[0]}` to `{lists[1]}`: tasks still get it"


def _move(draft: Draft, name: str, places: Sequence[Place], passed: Sequence[Place]) -> None:
    # Another task can have the same lists, which are edited then.
    original = Draft(draft.scene)
    named = [place for place in places if name in original.items(place)]
    for place in named:
        draft.set(place, [one for one in draft.items(place) if one != name])
    if not named:
        # A pattern has it, or turbo by the name of a framework.
        draft.add(places[0], f"!{name}")
    draft.add(passed[0], name)


def _outputs(draft: Draft, _: CauseJson, paths: Sequence[str], __: Sequence[Task]) -> str:
    scene = draft.scene
    folders: dict[str, None] = {}
    for path in paths:
        if covering := scene.covering(path):
            raise Refused(
                f"`outputs` of {covering} has {path}, which is in git: a hit overwrites it. Narrow "
                "`outputs`, or remove the file from git: no hash shows which of them is right"
            )
        writers = scene.writers(path)
        task = scene.now.tasks.get("".join(writers))
        if task is None:
            raise Refused(
                f"nothing shows which task writes {path}: commit it, or add it to .gitignore and to `outputs`. After a "
                f"build with TURBO_RUN_SUMMARY=true, its time can show it ({len(writers)} tasks ran then)"
            )
        name, is_folder, _rest = path[len(task.directory) :].lstrip("/").partition("/")
        whole = posixpath.join(task.directory, name)
        if not (_is_built(scene, task, whole) if is_folder else _DEBRIS.fullmatch(name)):
            raise Refused(f"{path} can be a source: commit it, or add it to .gitignore")
        pattern = f"{name}/**" if is_folder else name
        draft.add(draft.places(task, "outputs")[0], pattern)
        draft.add_line(".gitignore", f"/{whole}{is_folder}")
        draft.names |= {path, pattern, *(one for one in scene.inputs if _is_in(whole, one))}
        folders[f"{whole}{is_folder}"] = None
    return f"{', '.join(folders)} into `outputs` and `.gitignore`: a task writes it, and hits restore it"


def _is_built(scene: Scene, task: Task, folder: str) -> bool:
    """Whether the task has written the whole folder: git has nothing of it, and the package names it."""
    name = posixpath.basename(folder)
    word = rf"(^|[^A-Za-z0-9_-]){re.escape(name)}([^A-Za-z0-9_-]|$)"
    files = [path for path in (scene.root / folder).rglob("*") if path.is_file()]
    return (
        not tracked(scene.root, [f":(literal){folder}"])
        and all(scene.writers(str(path.relative_to(scene.root))) == {task.id} for path in files)
        and (
            name in _BUILT
            or bool(
                mentions(scene.root, word, (task.directory or ".", f":(exclude,literal){folder}"))
            )
        )
    )


def _inputs(draft: Draft, _: CauseJson, paths: Sequence[str], own: Sequence[Task]) -> str:
    found = Draft(draft.scene)
    for task in own:
        names = [name for name in task.files if path_of(task.directory, name) in paths]
        (place, *_others) = found.places(task, "inputs")
        if any("/" in name or name in found.items(place) for name in names):
            raise Refused(f"`inputs` of {task.id} names it, or it is in a folder of documents")
        for other in draft.scene.now.tasks.values():
            # They have the same definition.
            left_out = {*names} & other.files.keys()
            if left_out and found.definitions.places(other, "inputs")[:1] == [place]:
                _check_reader(draft.scene.root, other)
                draft.names |= {path_of(other.directory, name) for name in left_out}
        for item in ("$TURBO_DEFAULT$", *(f"!{name}" for name in names)):
            if item.startswith("!") or not found.items(place):
                draft.add(place, item)
    return (
        f"{', '.join(sorted(map(posixpath.basename, paths)))} out of `inputs`: no command reads it"
    )


def _check_reader(root: Path, task: Task) -> None:
    """Raises Refused if the task can read documents."""
    for part in re.split(r"&&|\|\||[;|\n]", task.command):
        if not _COMPILERS.fullmatch(part.strip()):
            raise Refused(f"nothing shows that `{part.strip()}` of {task.id} does not read it")
    if found := mentions(root, _OF_DOCUMENTS, (task.directory or ".", *_NOT_SOURCES)):
        raise Refused(f"{found} names documents, so {task.id} can read it")


def _lockfile(draft: Draft, cause: CauseJson, paths: Sequence[str], own: Sequence[Task]) -> str:
    names = [posixpath.basename(path) for path in paths]
    places: list[Place] = [(draft.scene.file, ("globalDependencies",))]
    if cause["kind"] == Kind.FILE:
        places = [place for task in own for place in draft.places(task, "inputs")]
    for place in dict.fromkeys(places):
        known = draft.items(place)
        wanted = [one for one in known if posixpath.basename(one) not in names]
        if wanted == known:
            raise Refused(f"{'.'.join(place[1])} in turbo.json does not have its name")
        draft.set(place, wanted)
    draft.names |= {*paths}
    setting = places[0][1][-1]
    return (
        f"{', '.join(names)} out of `{setting}`: turbo hashes the packages that each workspace uses"
    )


def _gitignore(draft: Draft, _: CauseJson, paths: Sequence[str], __: Sequence[Task]) -> str:
    names = [posixpath.basename(path) for path in paths]
    lines = sorted({re.sub(r".+(?=\.(tsbuildinfo|log|swp)$|~$)", "*", name) for name in names})
    for line in lines:
        draft.add_line(".gitignore", line)
    inputs = draft.scene.inputs
    draft.names |= {*paths, *(one for one in inputs if _DEBRIS.fullmatch(posixpath.basename(one)))}
    return f"{', '.join(lines)} into `.gitignore`: no task reads it"


def _gitattributes(draft: Draft, _: CauseJson, paths: Sequence[str], __: Sequence[Task]) -> str:
    draft.add_line(".gitattributes", _TEXT, is_first=True)
    draft.names |= {*paths}
    return f"`{_TEXT}` into `.gitattributes`: each new checkout has the same bytes"


RECIPES: Mapping[Edit, Callable[[Draft, CauseJson, Sequence[str], Sequence[Task]], str]] = {
    "variable": _variable,
    "outputs": _outputs,
    "inputs": _inputs,
    "lockfile": _lockfile,
    "gitignore": _gitignore,
    "gitattributes": _gitattributes,
}
"""Write the edit of a cause, for the tasks whose own record differs, and return what it does. They raise Refused."""


def _is_in(folder: str, path: str) -> bool:
    return path.startswith(f"{folder}/" if folder else "")


def _executions(root: Path) -> Iterator[tuple[str, str, int, int]]:
    """Id, folder, and first and last millisecond of the tasks that the last runs have executed."""
    try:
        found = sorted((root / RUNS).glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
        documents = [json.loads(one.read_bytes()) for one in found[-_MAX_RUNS:]]
        for task in (task for document in documents for task in document["tasks"]):
            ran = task.get("execution") or {}
            if ran.get("endTime"):
                yield task["taskId"], task["directory"], ran["startTime"], ran["endTime"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
