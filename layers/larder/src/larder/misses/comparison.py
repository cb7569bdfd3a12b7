"""The causes of the other hashes of a run.

A task has a cause of its own if its record differs from that of the baseline in something that turbo hashes. It has the
causes of the changed tasks that it depends on, too. A cause that no record shows is `unknown`.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from larder.misses.causes import Cause, Class, Kind
from larder.misses.hints import FileHint, Hint, Hints
from larder.misses.summaries import ANY_FILE, HASHED_SETTINGS, UNHASHED_SETTINGS, Summary, Variables

LOCKFILES = (
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"),
    "bun.lockb",
)
TURBO_JSON = ("turbo.json", "turbo.jsonc")
MANIFEST = "package.json"
_NO_PACKAGES = "459c029558afe716"
"""turbo's hash of no external packages."""

_VOLATILE = re.compile(
    r"(?:^|_)(?:SHA|COMMIT|(?:BUILD|RUN|JOB|PIPELINE)_(?:ID|NUMBER|TIME|ATTEMPT)|TIMESTAMP|DATE|DEPLOYMENT_ID)(?:_|$)",
    re.IGNORECASE,
)
"""Words in the names of variables that have another value in each commit, run or job."""

_GLOBAL = frozenset(list(Kind)[: list(Kind).index(Kind.FILE)])
_ORDER = {kind: number if kind in _GLOBAL else len(_GLOBAL) for number, kind in enumerate(Kind)}


NoteKind = Literal["not_cached", "turbo_version", "not_hashed", "passed_variable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A difference that turbo does not hash, or a fact about tasks. `tasks` is empty if it is about all of them.

    `kind` is that of a global difference.
    """

    note: NoteKind
    subject: str = ""
    kind: Kind | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`changed` has the ids of the tasks with another hash, `restored` those of them that were restored nevertheless.

    `new` and `gone` are in one of the two runs only. `same_hash` were built with the hash of the baseline. `causes` are
    in the order of their cost.
    """

    base: Summary
    run: Summary
    changed: tuple[str, ...]
    restored: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    same_hash: tuple[str, ...]
    causes: tuple[Cause, ...]
    notes: tuple[Note, ...]


class FileChange(NamedTuple):
    """A changed input. `old` and `new` are git's SHA-1 of its content, empty if the run does not have it."""

    path: str
    old: str
    new: str


class _Key(NamedTuple):
    kind: Kind
    subject: str
    how: str = "changed"
    task: str = ""
    values: tuple[str, ...] = ()


_HintSet = dict[Hint, dict[str, None]]


def changed_files(base: Summary, run: Summary) -> dict[str, FileChange]:
    """The inputs that differ between tasks of both runs, by their path from the root."""
    found: dict[str, FileChange] = {}
    pairs = [(base.shared.files, run.shared.files, "")]
    pairs += [
        (base.tasks[task.id].files, task.files, task.directory)
        for task in run.tasks.values()
        if task.id in base.tasks and base.tasks[task.id].hash != task.hash
    ]
    for old, new, directory in pairs:
        for name, _ in _file_differences(old, new):
            path = path_of(directory, name)
            found[path] = FileChange(path, old.get(name, ""), new.get(name, ""))
    return found


def compare(base: Summary, run: Summary, hints: Hints | None = None) -> Comparison:
    """Explain the hashes of `run` that are not those of `base`."""
    common = [id for id in run.tasks if id in base.tasks]
    changed = sorted(id for id in common if base.tasks[id].hash != run.tasks[id].hash)
    found = _Found(base, run, hints or Hints())
    unhashed: list[Note] = []
    if changed:
        shared = list(_shared_causes(base, run, found.hints))
        # What is global enters every hash. If one hash is the same, it is no cause.
        if len(changed) == len(common):
            for key, about in shared:
                found.add(key, changed, about)
        else:
            unhashed = [
                Note(note="not_hashed", subject=key.subject, kind=key.kind) for key, _ in shared
            ]
        if base.shared.root_key == run.shared.root_key:
            for id in changed:
                for key, about in _own_causes(base, run, id, found.hints):
                    found.add(key, [id], about)
    restored = [id for id in changed if run.tasks[id].was_restored]
    return Comparison(
        base=base,
        run=run,
        changed=tuple(changed),
        restored=tuple(restored),
        new=tuple(sorted(run.tasks.keys() - base.tasks.keys())),
        gone=tuple(sorted(base.tasks.keys() - run.tasks.keys())),
        same_hash=tuple(sorted(_same_hash(base, run, common))),
        causes=tuple(found.causes(changed)),
        notes=(*unhashed, *_notes(base, run, common)),
    )


def _same_hash(base: Summary, run: Summary, common: Iterable[str]) -> Iterator[str]:
    for id in common:
        task = run.tasks[id]
        was_built = task.was_run and not task.was_restored
        if was_built and task.is_cached and task.hash == base.tasks[id].hash:
            yield id


def _shared_causes(base: Summary, run: Summary, hints: Hints) -> Iterator[tuple[_Key, _HintSet]]:
    """What differs in what enters every hash."""
    old, new = base.shared, run.shared
    if old.root_key != new.root_key:
        # Each algorithm has a key of its own, so nothing else can be compared.
        versions = (f"{base.turbo} -> {run.turbo}",)
        yield _Key(Kind.TURBO_VERSION, "turbo", values=versions), {}
        return
    has_lockfiles = bool(old.external) and bool(new.external)
    for path, how in _file_differences(old.files, new.files):
        # Without a lockfile, turbo hashes package.json of the root instead.
        if path == MANIFEST and not has_lockfiles:
            continue
        yield _Key(Kind.GLOBAL_FILE, path_of("", path), how), {}
    for name, how, about in _variable_changes(old.variables, new.variables):
        yield _Key(Kind.GLOBAL_ENV, name, how), about
    settings = (
        ("globalEnv", old.variables.names, new.variables.names),
        (
            "globalPassThroughEnv",
            old.variables.passed_names or (),
            new.variables.passed_names or (),
        ),
        ("globalDotEnv", old.dotenv, new.dotenv),
    )
    for name, before, after in settings:
        if words := _words(before, after):
            yield _Key(Kind.TURBO_JSON, name, values=words), {}
    if old.external != new.external:
        yield (
            _Key(Kind.GLOBAL_EXTERNAL, ""),
            _about_packages(hints, "", is_missing=not has_lockfiles),
        )
    if old.internal != new.internal:
        yield _Key(Kind.GLOBAL_INTERNAL, ""), {}
    if old.engines != new.engines:
        changed = f"{old.engines or 'none'} -> {new.engines or 'none'}"
        yield _Key(Kind.ENGINES, "engines", values=() if run.has_digests else (changed,)), {}
    if base.env_mode != run.env_mode and not _follows_from_lists(base, run):
        values = (f"{base.env_mode} -> {run.env_mode}",)
        yield _Key(Kind.ENV_MODE, "", values=values), {}
    if base.infers_frameworks != run.infers_frameworks:
        values = ("on -> off" if base.infers_frameworks else "off -> on",)
        yield _Key(Kind.FRAMEWORK, "", values=values), {}


def _follows_from_lists(base: Summary, run: Summary) -> bool:
    """turbo 1 infers the mode: it is strict if there is a globalPassThroughEnv, and `infer` otherwise."""
    lists = [one.shared.variables.passed_names for one in (base, run)]
    modes = [one.env_mode for one in (base, run)]
    expected = ["infer" if names is None else "strict" for names in lists]
    return "infer" in modes and modes == expected


def _own_causes(
    base: Summary, run: Summary, id: str, hints: Hints
) -> Iterator[tuple[_Key, _HintSet]]:
    """What differs in the records of one task."""
    old, new = base.tasks[id], run.tasks[id]
    edges = _words(old.dependencies, new.dependencies)
    depends_on = _explaining(_words(old.settings["dependsOn"], new.settings["dependsOn"]), edges)
    renamed = _renamed(old.files, new.files)
    for name, how in _file_differences(old.files, new.files):
        if name in renamed:
            if how == "added":
                about: _HintSet = {Hint.LETTER_CASE: {}}
                yield _Key(Kind.FILE, path_of(new.directory, name), "renamed"), about
            continue
        about = {}
        if name == MANIFEST and old.command != new.command:
            about[Hint.SCRIPT] = {new.task: None}
        if name == MANIFEST and edges and not depends_on:
            about[Hint.DEPENDENCIES] = dict.fromkeys(edges)
            edges = ()
        yield _Key(Kind.FILE, path_of(new.directory, name), how), about
    if old.external != new.external:
        yield _Key(Kind.EXTERNAL, new.package), _about_packages(hints, new.directory)
    for name, how, about in _variable_changes(old.variables, new.variables):
        yield _Key(Kind.ENV, name, how), about
    passes_others = False
    values: tuple[str, ...]
    for setting in HASHED_SETTINGS:
        if words := _words(old.settings[setting], new.settings[setting]):
            passes_others |= setting == "passThroughEnv"
            yield _Key(Kind.DEFINITION, setting, task=new.task, values=words), {}
    if old.arguments != new.arguments:
        shown = f"{_shown(old.arguments)} -> {_shown(new.arguments)}"
        yield _Key(Kind.ARGUMENTS, "", values=() if run.has_digests else (shown,)), {}
    # turbo 1 infers the mode of a task from its passThroughEnv.
    if old.env_mode != new.env_mode and base.env_mode == run.env_mode and not passes_others:
        values = (f"{old.env_mode} -> {new.env_mode}",)
        yield _Key(Kind.TASK_ENV_MODE, "", task=new.task, values=values), {}
    if old.directory != new.directory:
        values = (f"{old.directory} -> {new.directory}",)
        yield _Key(Kind.MOVED, new.package, values=values), {}
    if depends_on:
        yield _Key(Kind.DEFINITION, "dependsOn", task=new.task, values=depends_on), {}
    elif edges:
        yield _Key(Kind.EDGE, "", values=edges), {}


def _explaining(words: Iterable[str], edges: Iterable[str]) -> tuple[str, ...]:
    """The words of dependsOn, such as `+^build`, that made a new or removed edge, such as `+ui#build`."""
    made = {(edge[0], edge.rpartition("#")[2].lstrip("+-")) for edge in edges}
    return tuple(
        word for word in words if (word[0], word[1:].lstrip("^").rpartition("#")[2]) in made
    )


def _shown(arguments: Iterable[str]) -> str:
    return f"[{', '.join(map(repr, arguments))}]"


def _renamed(old: Mapping[str, str], new: Mapping[str, str]) -> Set[str]:
    """The names that differ only in the case of their letters, with the same content: the old and the new ones."""
    gone = {name.lower(): name for name in old.keys() - new.keys()}
    both = [
        (gone[name.lower()], name)
        for name in new.keys() - old.keys()
        if name.lower() in gone and old[gone[name.lower()]] == new[name]
    ]
    return {name for pair in both for name in pair}


def _about_packages(hints: Hints, directory: str, *, is_missing: bool = False) -> _HintSet:
    if is_missing:
        return {Hint.NO_LOCKFILE: {}}
    names = hints.packages.get(directory)
    return {Hint.PACKAGES: dict.fromkeys(names)} if names else {}


def _variable_changes(old: Variables, new: Variables) -> Iterator[tuple[str, str, _HintSet]]:
    """A variable that is configured and inferred is one change.

    If turbo hashes a variable in one run only because turbo.json names it there, the change of turbo.json is the cause.
    """
    patterns = {one.lstrip("!") for one in {*old.names} ^ {*new.names}}
    seen: set[str] = set()
    for before, after, is_inferred in (
        (old.configured, new.configured, False),
        (old.inferred, new.inferred, True),
    ):
        for name, how in _differences(before, after):
            is_listed = how != "changed" and any(fnmatchcase(name, one) for one in patterns)
            if name in seen or is_listed:
                continue
            seen.add(name)
            about: _HintSet = {}
            if _VOLATILE.search(name):
                about[Hint.VOLATILE_NAME] = {}
            if is_inferred:
                about[Hint.INFERRED] = {}
            yield name, how, about


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names whose values differ, and how."""
    if old == new:
        return
    for name in sorted(name for name, value in new.items() if old.get(name) != value):
        yield name, "changed" if name in old else "added"
    for name in sorted(old.keys() - new.keys()):
        yield name, "removed"


def _file_differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Of a list that is one digest in a run, only whether it differs: names of the other run mean nothing."""
    if (ANY_FILE in old) != (ANY_FILE in new):
        yield ANY_FILE, "changed"
    else:
        yield from _differences(old, new)


def _words(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    return (*(f"+{one}" for one in added), *(f"-{one}" for one in removed))


def path_of(directory: str, name: str) -> str:
    """The path of an input from the root."""
    path = posixpath.join(directory.replace("\\", "/"), name)
    # turbo names files above a package by `..`.
    return posixpath.normpath(path) if ".." in path else path


class _Group(NamedTuple):
    key: _Key
    more: tuple[str, ...]
    hints: _HintSet
    commit: str | None
    class_: Class | None
    direct: tuple[str, ...]


class _Found:
    """The causes that tasks have of their own, then those of all."""

    def __init__(self, base: Summary, run: Summary, hints: Hints) -> None:
        self.hints = hints
        self._base = base
        self._run = run
        self._tasks: dict[_Key, list[str]] = defaultdict(list)
        self._about: dict[_Key, _HintSet] = defaultdict(dict)

    def add(self, key: _Key, tasks: Iterable[str], about: _HintSet) -> None:
        self._tasks[key].extend(tasks)
        for hint, values in about.items():
            self._about[key].setdefault(hint, {}).update(values)

    def causes(self, changed: Sequence[str]) -> list[Cause]:
        groups = self._with_one_lockfile(list(self._alike()))
        groups = [self._with_example(one, groups) for one in groups]
        masks = self._reached(groups, changed)
        unexplained = [id for id in changed if not masks[id]]
        if unexplained:
            for id in unexplained:
                masks[id] = 1 << len(groups)
            groups.append(self._unknown(unexplained))
        members: list[list[str]] = [[] for _ in groups]
        alone = [0] * len(groups)
        for id, mask in masks.items():
            numbers = _bits(mask)
            for number in numbers:
                members[number].append(id)
            if len(numbers) == 1:
                alone[numbers[0]] += 1
        causes = map(self._cause, groups, members, alone)
        return sorted(causes, key=_rank)

    def _alike(self) -> Iterator[_Group]:
        """Files that changed in the same way for the same tasks are one cause, and so are all line endings."""
        alike: dict[object, list[_Key]] = defaultdict(list)
        for key, tasks in self._tasks.items():
            about = self._about[key]
            if key.kind in (Kind.FILE, Kind.GLOBAL_FILE):
                known = self.hints.files.get(key.subject, FileHint())
                if known.hint and not about.keys() & {Hint.SCRIPT, Hint.DEPENDENCIES}:
                    about[known.hint] = {}
                reached = () if Hint.LINE_ENDINGS in about else tuple(tasks)
                signature = (
                    *(
                        key.kind,
                        key.how,
                        reached,
                        class_of(key.kind, key.subject, self.hints, self._run),
                    ),
                    tuple((hint, tuple(values)) for hint, values in about.items()),
                )
                alike[signature].append(key)
            else:
                alike[key].append(key)
        for keys in alike.values():
            first, *others = keys
            commits = {self.hints.files.get(one.subject, FileHint()).commit for one in keys}
            yield _Group(
                key=first,
                more=tuple(one.subject for one in others),
                hints=self._about[first],
                commit=commits.pop() if len(commits) == 1 else None,
                class_=class_of(first.kind, first.subject, self.hints, self._run),
                direct=tuple(sorted({id for one in keys for id in self._tasks[one]})),
            )

    def _with_one_lockfile(self, groups: list[_Group]) -> list[_Group]:
        """What an update of the lockfile changed is one cause: in every workspace with external packages, or alike.

        Workspaces are alike if the same packages changed in them, or if it is not known which ones did.
        """
        external = [one for one in groups if one.key.kind is Kind.EXTERNAL]
        with_any = {
            task.package
            for task in self._run.tasks.values()
            if task.external not in ("", _NO_PACKAGES)
        }
        others = [one for one in groups if one.key.kind is not Kind.EXTERNAL]
        if any(Hint.NO_LOCKFILE in one.hints for one in others):
            return others
        alike: dict[tuple[str, ...], list[_Group]] = defaultdict(list)
        for one in external:
            alike[tuple(one.hints.get(Hint.PACKAGES, ()))].append(one)
        if len(external) < 2 or len(external) < len(with_any):
            return [*others, *map(_merged, alike.values())]
        merged = _merged(external)
        if len(alike) > 1 or () in alike:
            merged = merged._replace(hints={Hint.EVERY_PACKAGE: {}})
        return [*others, merged]

    def _with_example(self, group: _Group, groups: Sequence[_Group]) -> _Group:
        """turbo has one digest of all workspace packages that the root depends on. A changed input is an example."""
        if group.key.kind is not Kind.GLOBAL_INTERNAL:
            return group
        for other in groups:
            if other.key.kind is Kind.FILE:
                return group._replace(hints={Hint.EXAMPLE: {other.key.subject: None}})
        return group

    def _reached(self, groups: Sequence[_Group], changed: Sequence[str]) -> dict[str, int]:
        """For each changed task, a bit for each group that it has of its own or by the tasks that it depends on."""
        masks = dict.fromkeys(changed, 0)
        for number, group in enumerate(groups):
            for id in group.direct:
                masks[id] |= 1 << number
        for id in _dependencies_first(self._run, masks):
            # What a new dependency brings is the effect of the cause that added the dependency.
            for dependency in {*self._base.tasks[id].dependencies} & {
                *self._run.tasks[id].dependencies
            }:
                masks[id] |= masks.get(dependency, 0)
        return masks

    def _unknown(self, tasks: Sequence[str]) -> _Group:
        known = self._run.tasks.keys() & self._base.tasks.keys()
        missing = {
            dependency
            for id in tasks
            for dependency in self._run.tasks[id].dependencies
            if dependency not in known
        }
        hints: _HintSet = {}
        if missing:
            hints[Hint.MISSING_DEPENDENCY] = dict.fromkeys(sorted(missing))
        if self._base.turbo != self._run.turbo:
            hints[Hint.OTHER_VERSION] = {f"{self._base.turbo} -> {self._run.turbo}": None}
        return _Group(_Key(Kind.UNKNOWN, ""), (), hints, None, None, tuple(tasks))

    def _cause(self, group: _Group, every: Sequence[str], alone: int) -> Cause:
        key, direct = group.key, set(group.direct)
        return Cause(
            kind=key.kind,
            subject=key.subject,
            how=key.how,
            more=group.more,
            task=key.task,
            values=key.values,
            hints=tuple((hint, tuple(values)) for hint, values in group.hints.items()),
            commit=group.commit,
            class_=group.class_,
            direct=group.direct,
            below=tuple(id for id in every if id not in direct),
            alone=alone,
            build_ms=sum(map(self._build_ms, every)),
        )

    def _build_ms(self, id: str) -> int:
        """What the miss cost, or will cost after a dry run. Nothing if the task was restored nevertheless."""
        task = self._run.tasks[id]
        if task.was_restored:
            return 0
        return (task.build_ms if task.was_run else self._base.tasks[id].build_ms) or 0


def _merged(external: Sequence[_Group]) -> _Group:
    first, *rest = sorted(external, key=lambda one: one.key.subject)
    return first._replace(
        more=tuple(one.key.subject for one in rest),
        direct=tuple(sorted({id for one in external for id in one.direct})),
    )


def class_of(kind: Kind, subject: str, hints: Hints, run: Summary) -> Class | None:
    """A cause is `code` if the file that has it differs between the two commits. None if that is not known."""
    if kind in (Kind.FILE, Kind.GLOBAL_FILE):
        hint = hints.files.get(subject, FileHint()).hint
        if hint in (Hint.UNTRACKED, Hint.IGNORED):
            return Class.SETUP
        files = {subject}
    elif kind in (Kind.EXTERNAL, Kind.GLOBAL_EXTERNAL):
        files = set(LOCKFILES)
    elif kind in (Kind.DEFINITION, Kind.TURBO_JSON):
        folders = {"", *(task.directory for task in run.tasks.values())}
        files = {path_of(folder, name) for folder in folders for name in TURBO_JSON}
    elif kind is Kind.ENGINES:
        files = {MANIFEST}
    elif kind in (Kind.GLOBAL_INTERNAL, Kind.EDGE, Kind.MOVED, Kind.UNKNOWN):
        return None
    else:
        return Class.SETUP
    if hints.committed is None:
        return None
    return Class.CODE if files & hints.committed else Class.SETUP


def _bits(mask: int) -> list[int]:
    """The numbers of the bits that are set."""
    digits, found = f"{mask:b}"[::-1], []
    position = digits.find("1")
    while position >= 0:
        found.append(position)
        position = digits.find("1", position + 1)
    return found


def _dependencies_first(run: Summary, changed: Iterable[str]) -> list[str]:
    """The changed tasks, each after those that it depends on. A damaged summary can have cycles: they are cut."""
    wanted, seen, order = set(changed), set[str](), list[str]()
    for start in sorted(wanted):
        stack = [(start, False)]
        while stack:
            id, is_done = stack.pop()
            if is_done:
                order.append(id)
            elif id not in seen:
                seen.add(id)
                stack.append((id, True))
                stack += [(one, False) for one in run.tasks[id].dependencies if one in wanted]
    return order


def _rank(cause: Cause) -> tuple[int, int, int, int, str]:
    is_unknown = cause.kind is Kind.UNKNOWN
    return (
        *(_ORDER[cause.kind], -cause.build_ms, -cause.tasks),
        *(is_unknown + (cause.kind is Kind.EDGE), cause.subject),
    )


def _notes(base: Summary, run: Summary, common: Sequence[str]) -> Iterator[Note]:
    """Facts that explain no hash."""
    uncached = tuple(sorted(id for id, task in run.tasks.items() if not task.is_cached))
    if uncached:
        yield Note(note="not_cached", tasks=uncached)
    if base.turbo != run.turbo and base.shared.root_key == run.shared.root_key:
        yield Note(note="turbo_version", subject=f"{base.turbo} -> {run.turbo}")
    differing: dict[tuple[NoteKind, str], list[str]] = defaultdict(list)
    for old, new in ((base.tasks[id], run.tasks[id]) for id in common):
        for name, _ in _differences(old.variables.passed, new.variables.passed):
            differing["passed_variable", name].append(new.id)
        for setting in UNHASHED_SETTINGS:
            if old.unhashed[setting] != new.unhashed[setting]:
                differing["not_hashed", setting].append(new.id)
    for name, _ in _differences(base.shared.variables.passed, run.shared.variables.passed):
        differing["passed_variable", name] = []
    for (note, subject), tasks in sorted(differing.items()):
        yield Note(note=note, subject=subject, tasks=tuple(sorted(tasks)))
