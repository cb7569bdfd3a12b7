"""The causes of the other hashes of a run.

A task has a cause of its own if its record differs from that of the baseline in something that turbo hashes. It has the
causes of the changed tasks that it depends on, too. A cause that no record shows is `unknown`.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from larder.why.causes import Cause, Class, Kind, bits
from larder.why.differences import OF_A_CAUSE, Differences, differences
from larder.why.hints import FileHint, Hint, Hints
from larder.why.summaries import HASHED_SETTINGS, UNHASHED_SETTINGS, Summary

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


def changed_files(
    base: Summary, run: Summary, compared: Differences | None = None
) -> dict[str, FileChange]:
    """The inputs that differ between tasks of both runs, by their path from the root. Raises OutOfSteps."""
    compared = compared or Differences()
    found: dict[str, FileChange] = {}
    seen: set[tuple[int, str]] = set()
    pairs = [(base.shared.files, run.shared.files, "")]
    pairs += [
        (base.tasks[task.id].files, task.files, task.directory)
        for task in run.tasks.values()
        if task.id in base.tasks and base.tasks[task.id].hash != task.hash
    ]
    for old, new, directory in pairs:
        names = compared.of_files(old, new).names
        if (id(names), directory) in seen:
            continue
        seen.add((id(names), directory))
        compared.take(OF_A_CAUSE * len(names))
        for name, _ in names:
            path = path_of(directory, name)
            found[path] = FileChange(path, old.get(name, ""), new.get(name, ""))
    return found


def compare(
    base: Summary, run: Summary, hints: Hints | None = None, compared: Differences | None = None
) -> Comparison:
    """Explain the hashes of `run` that are not those of `base`. Raises OutOfSteps."""
    compared = compared or Differences()
    compared.take(OF_A_CAUSE * len(run.tasks))
    common = [id for id in run.tasks if id in base.tasks]
    changed = sorted(id for id in common if base.tasks[id].hash != run.tasks[id].hash)
    found = _Found(base, run, hints or Hints(), changed, compared)
    unhashed: list[Note] = []
    if changed:
        shared = list(_shared_causes(base, run, found.hints, compared))
        # What is global enters every hash. If one hash is the same, it is no cause.
        if len(changed) == len(common):
            for key, about in shared:
                found.add(key, found.every, about)
        else:
            unhashed = [
                Note(note="not_hashed", subject=key.subject, kind=key.kind) for key, _ in shared
            ]
        if base.shared.root_key == run.shared.root_key:
            for number, id in enumerate(changed):
                own = 1 << number
                for key, about in _own_causes(base, run, id, found.hints, compared):
                    found.add(key, own, about)
    restored = [id for id in changed if run.tasks[id].was_restored]
    return Comparison(
        base=base,
        run=run,
        changed=tuple(changed),
        restored=tuple(restored),
        new=tuple(sorted(run.tasks.keys() - base.tasks.keys())),
        gone=tuple(sorted(base.tasks.keys() - run.tasks.keys())),
        same_hash=tuple(sorted(_same_hash(base, run, common))),
        causes=tuple(found.causes()),
        notes=(*unhashed, *_notes(base, run, common)),
    )


def _same_hash(base: Summary, run: Summary, common: Iterable[str]) -> Iterator[str]:
    for id in common:
        task = run.tasks[id]
        was_built = task.was_run and not task.was_restored
        if was_built and task.is_cached and task.hash == base.tasks[id].hash:
            yield id


def _shared_causes(
    base: Summary, run: Summary, hints: Hints, compared: Differences
) -> Iterator[tuple[_Key, _HintSet]]:
    """What differs in what enters every hash."""
    old, new = base.shared, run.shared
    if old.root_key != new.root_key:
        # Each algorithm has a key of its own, so nothing else can be compared.
        versions = (f"{base.turbo} -> {run.turbo}",)
        yield _Key(Kind.TURBO_VERSION, "turbo", values=versions), {}
        return
    has_lockfiles = bool(old.external) and bool(new.external)
    for path, how in compared.of_files(old.files, new.files).names:
        # Without a lockfile, turbo hashes package.json of the root instead.
        if path == MANIFEST and not has_lockfiles:
            continue
        yield _Key(Kind.GLOBAL_FILE, path_of("", path), how), {}
    for name, how, is_inferred in compared.of_variables(old.variables, new.variables):
        yield _Key(Kind.GLOBAL_ENV, name, how), _about_variable(name, is_inferred=is_inferred)
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
        if words := compared.of_words(before, after):
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
    base: Summary, run: Summary, id: str, hints: Hints, compared: Differences
) -> Iterator[tuple[_Key, _HintSet]]:
    """What differs in the records of one task."""
    old, new = base.tasks[id], run.tasks[id]
    words = compared.of_words
    edges = words(old.dependencies, new.dependencies)
    changed = words(old.settings["dependsOn"], new.settings["dependsOn"])
    compared.take(len(changed))
    depends_on = _explaining(changed, edges)
    names, renamed = compared.of_files(old.files, new.files)
    paths, directory = compared.paths, new.directory
    for name, how in names:
        path = paths.get((directory, name))
        if path is None:
            path = paths[directory, name] = path_of(directory, name)
        if name in renamed:
            if how == "added":
                about: _HintSet = {Hint.LETTER_CASE: {}}
                yield _Key(Kind.FILE, path, "renamed"), about
            continue
        about = {}
        if name == MANIFEST and old.command != new.command:
            about[Hint.SCRIPT] = {new.task: None}
        if name == MANIFEST and edges and not depends_on:
            about[Hint.DEPENDENCIES] = dict.fromkeys(edges)
            edges = ()
        yield _Key(Kind.FILE, path, how), about
    if old.external != new.external:
        yield _Key(Kind.EXTERNAL, new.package), _about_packages(hints, new.directory)
    for name, how, is_inferred in compared.of_variables(old.variables, new.variables):
        yield _Key(Kind.ENV, name, how), _about_variable(name, is_inferred=is_inferred)
    passes_others = False
    values: tuple[str, ...]
    for setting in HASHED_SETTINGS:
        if values := words(old.settings[setting], new.settings[setting]):
            passes_others |= setting == "passThroughEnv"
            yield _Key(Kind.DEFINITION, setting, task=new.task, values=values), {}
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


def _about_packages(hints: Hints, directory: str, *, is_missing: bool = False) -> _HintSet:
    if is_missing:
        return {Hint.NO_LOCKFILE: {}}
    names = hints.packages.get(directory)
    return {Hint.PACKAGES: dict.fromkeys(names)} if names else {}


def _about_variable(name: str, *, is_inferred: bool) -> _HintSet:
    about: _HintSet = {}
    if _VOLATILE.search(name):
        about[Hint.VOLATILE_NAME] = {}
    if is_inferred:
        about[Hint.INFERRED] = {}
    return about


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
    own: int


class _Found:
    """The causes that tasks have of their own, then those of all. Tasks are bits, by their place in `changed`."""

    def __init__(
        self,
        base: Summary,
        run: Summary,
        hints: Hints,
        changed: Sequence[str],
        compared: Differences,
    ) -> None:
        self.hints = hints
        self.every = (1 << len(changed)) - 1
        self._base = base
        self._run = run
        self._changed = changed
        self._compared = compared
        self._classes = Classes(hints, run)
        self._tasks: dict[_Key, int] = {}
        self._about: dict[_Key, _HintSet] = defaultdict(dict)

    def add(self, key: _Key, tasks: int, about: _HintSet) -> None:
        known = self._tasks.get(key)
        # Not a copy for each key: a global cause has all tasks.
        self._tasks[key] = tasks if known is None else known | tasks
        # A hint of packages names up to fifty.
        self._compared.take(OF_A_CAUSE + sum(map(len, about.values())))
        for hint, values in about.items():
            self._about[key].setdefault(hint, {}).update(values)

    def causes(self) -> list[Cause]:
        groups = self._with_one_lockfile(list(self._alike()))
        groups = [self._with_example(group, groups) for group in groups]
        reached = self._reached(groups)
        once = twice = 0
        for tasks in reached:
            once, twice = once | tasks, twice | (once & tasks)
        if unexplained := self.every & ~once:
            groups.append(self._unknown(unexplained))
            reached.append(unexplained)
        times = _Sums([self._build_ms(id) for id in self._changed])
        self._compared.take((OF_A_CAUSE + times.steps) * len(groups))
        causes = [
            self._cause(group, tasks, alone=(tasks & ~twice).bit_count(), build_ms=times.of(tasks))
            for group, tasks in zip(groups, reached, strict=True)
        ]
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
                own = 0 if Hint.LINE_ENDINGS in about else tasks
                signature = (
                    *(key.kind, key.how, own, self._classes.of(key.kind, key.subject)),
                    tuple((hint, tuple(values)) for hint, values in about.items()),
                )
                alike[signature].append(key)
            else:
                alike[key].append(key)
        for keys in alike.values():
            first, *others = keys
            commits = {self.hints.files.get(key.subject, FileHint()).commit for key in keys}
            yield _Group(
                key=first,
                more=tuple(group.subject for group in others),
                hints=self._about[first],
                commit=commits.pop() if len(commits) == 1 else None,
                class_=self._classes.of(first.kind, first.subject),
                own=_union(self._tasks[key] for key in keys),
            )

    def _with_one_lockfile(self, groups: list[_Group]) -> list[_Group]:
        """What an update of the lockfile changed is one cause: in every workspace with external packages, or alike.

        Workspaces are alike if the same packages changed in them, or if it is not known which ones did.
        """
        external = [group for group in groups if group.key.kind is Kind.EXTERNAL]
        with_any = {
            task.package
            for task in self._run.tasks.values()
            if task.external not in ("", _NO_PACKAGES)
        }
        others = [group for group in groups if group.key.kind is not Kind.EXTERNAL]
        if any(Hint.NO_LOCKFILE in group.hints for group in others):
            return others
        alike: dict[tuple[str, ...], list[_Group]] = defaultdict(list)
        for group in external:
            alike[tuple(group.hints.get(Hint.PACKAGES, ()))].append(group)
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

    def _reached(self, groups: Sequence[_Group]) -> list[int]:
        """For each group the tasks that have it of their own or by the tasks that they depend on."""
        number = {id: place for place, id in enumerate(self._changed)}
        reached = [1 << place for place in range(len(number))]
        for id in reversed(_dependencies_first(self._run, number)):
            base, run = self._base.tasks[id].dependencies, self._run.tasks[id].dependencies
            self._compared.take(2 * (len(base) + len(run)))
            # What a new dependency brings is the effect of the cause that added the dependency.
            for dependency in {*base} & {*run} & number.keys():
                reached[number[dependency]] |= reached[number[id]]
        known: dict[int, int] = {}
        for own in (group.own for group in groups):
            if own not in known:
                self._compared.take(5 * own.bit_count())
                known[own] = _union(reached[place] for place in bits(own))
        return [known[group.own] for group in groups]

    def _unknown(self, tasks: int) -> _Group:
        known = self._run.tasks.keys() & self._base.tasks.keys()
        missing = {
            dependency
            for place in bits(tasks)
            for dependency in self._run.tasks[self._changed[place]].dependencies
            if dependency not in known
        }
        hints: _HintSet = {}
        if missing:
            hints[Hint.MISSING_DEPENDENCY] = dict.fromkeys(sorted(missing))
        if self._base.turbo != self._run.turbo:
            hints[Hint.OTHER_VERSION] = {f"{self._base.turbo} -> {self._run.turbo}": None}
        names = () if hints else self._without_values(tasks)
        key = _Key(Kind.VALUE, names[0]) if names else _Key(Kind.UNKNOWN, "")
        return _Group(key, names[1:], hints, None, None, tasks)

    def _without_values(self, tasks: int) -> tuple[str, ...]:
        """The variables of these tasks of which only the names are known, the most likely ones first."""
        ran = [self._run.tasks[self._changed[place]] for place in bits(tasks)]
        variables = [self._run.shared.variables, *(task.variables for task in ran)]
        of_tasks = Counter(name for one in variables for name in one.without_values)
        self._compared.take(of_tasks.total())
        return tuple(
            sorted(of_tasks, key=lambda name: (not _VOLATILE.search(name), -of_tasks[name], name))
        )

    def _cause(self, group: _Group, reached: int, *, alone: int, build_ms: int) -> Cause:
        key = group.key
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
            changed=self._changed,
            own=group.own,
            reached=reached,
            alone=alone,
            build_ms=build_ms,
        )

    def _build_ms(self, id: str) -> int:
        """What the miss cost, or will cost after a dry run. Nothing if the task was restored nevertheless."""
        task = self._run.tasks[id]
        if task.was_restored:
            return 0
        return (task.build_ms if task.was_run else self._base.tasks[id].build_ms) or 0


class _Sums:
    """Sums of numbers by bits: one step for each bit of the numbers, however many are added up."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._columns = [
            _union(1 << place for place, number in enumerate(numbers) if number >> bit & 1)
            for bit in range(max(numbers, default=0).bit_length())
        ]

    @property
    def steps(self) -> int:
        return 2 * len(self._columns)

    def of(self, places: int) -> int:
        counts = ((places & column).bit_count() for column in self._columns)
        return sum(count << bit for bit, count in enumerate(counts))


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _merged(external: Sequence[_Group]) -> _Group:
    first, *rest = sorted(external, key=lambda group: group.key.subject)
    return first._replace(
        more=tuple(group.key.subject for group in rest), own=_union(group.own for group in external)
    )


class Classes:
    """Which causes are `code`: the file that has the cause differs between the two commits."""

    def __init__(self, hints: Hints, run: Summary) -> None:
        self._hints = hints
        self._run = run

    def of(self, kind: Kind, subject: str) -> Class | None:
        """None if it is not known."""
        committed = self._hints.committed
        if kind in (Kind.FILE, Kind.GLOBAL_FILE):
            hint = self._hints.files.get(subject, FileHint()).hint
            if hint in (Hint.UNTRACKED, Hint.IGNORED):
                return Class.SETUP
            is_code = committed is not None and subject in committed
        elif kind in (Kind.EXTERNAL, Kind.GLOBAL_EXTERNAL):
            is_code = committed is not None and not committed.isdisjoint(LOCKFILES)
        elif kind in (Kind.DEFINITION, Kind.TURBO_JSON):
            is_code = self._has_other_settings
        elif kind is Kind.ENGINES:
            is_code = committed is not None and MANIFEST in committed
        elif kind in (Kind.GLOBAL_INTERNAL, Kind.EDGE, Kind.MOVED, Kind.UNKNOWN):
            return None
        else:
            return Class.SETUP
        if committed is None:
            return None
        return Class.CODE if is_code else Class.SETUP

    @cached_property
    def _has_other_settings(self) -> bool:
        folders = {"", *(task.directory for task in self._run.tasks.values())}
        committed = self._hints.committed or ()
        return any(path_of(folder, name) in committed for folder in folders for name in TURBO_JSON)


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
                stack += [
                    (task_id, False) for task_id in run.tasks[id].dependencies if task_id in wanted
                ]
    return order


def _rank(cause: Cause) -> tuple[int, int, int, int, str]:
    is_unknown = cause.kind in (Kind.VALUE, Kind.UNKNOWN)
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
        for name, _ in differences(old.variables.passed, new.variables.passed):
            differing["passed_variable", name].append(new.id)
        for setting in UNHASHED_SETTINGS:
            if old.unhashed[setting] != new.unhashed[setting]:
                differing["not_hashed", setting].append(new.id)
    for name, _ in differences(base.shared.variables.passed, run.shared.variables.passed):
        differing["passed_variable", name] = []
    for (note, subject), tasks in sorted(differing.items()):
        yield Note(note=note, subject=subject, tasks=tuple(sorted(tasks)))
