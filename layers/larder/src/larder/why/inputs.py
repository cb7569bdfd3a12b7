"""The inputs of a run as a report has them: the digests of a run summary without repetition, values or commands.

A report is the JSON of `POST /v1/runs`. Tasks of a package share the list of their files and often their definition, so
1,000 tasks take 160 kB compressed, where turbo's file takes 464 kB.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

from larder.why.hints import FileHint, Hint, Hints
from larder.why.summaries import (
    ANY_FILE,
    HASHED_SETTINGS,
    UNHASHED_SETTINGS,
    Globals,
    InvalidSummary,
    Summary,
    Task,
    Variables,
)

T = TypeVar("T")

VERSION = 1
"""The `version` of the inputs."""

DIGEST = 12
"""The characters of a digest of a file or a text: enough to see a change, and half of the size."""

MAX_FILES = 200_000
"""The most files in all lists of a run."""

MAX_ANCESTORS = 100
MAX_HINTS = 50

_FILE_HINTS = (Hint.IGNORED, Hint.UNTRACKED, Hint.UNCOMMITTED, Hint.LINE_ENDINGS)
"""What a report says about files."""


class SpecifiedJson(TypedDict):
    """Patterns of `globalEnv` and `globalPassThroughEnv`. turbo 1 has null if `turbo.json` has no list."""

    env: list[str]
    passThroughEnv: list[str] | None


class GlobalInputsJson(TypedDict):
    """What enters the hash of every task. `env` has turbo's digest of each value, and `inferred` names some of them."""

    rootKey: str
    files: dict[str, str]
    external: str
    internal: str
    env: dict[str, str]
    inferred: list[str]
    specified: SpecifiedJson
    dotEnv: NotRequired[list[str]]
    engines: str
    envMode: str
    frameworkInference: bool


class FilesJson(TypedDict):
    """Inputs of tasks by their path in `directory`, with a digest of their content."""

    directory: str
    files: dict[str, str]


class DefinitionJson(TypedDict):
    """The settings of a task in `turbo.json`."""

    outputs: list[str]
    env: list[str]
    passThroughEnv: list[str]
    dotEnv: NotRequired[list[str]]
    dependsOn: list[str]
    cache: bool


class TaskInputsJson(TypedDict):
    """What a task has of its own. `files` and `definition` are places in the lists of the same names.

    `script` and `arguments` are digests, because commands can contain secrets.
    """

    files: int
    definition: int
    external: str
    env: dict[str, str]
    inferred: list[str]
    dependencies: list[str]
    script: str
    arguments: str
    envMode: str


InputsJson = TypedDict(
    "InputsJson",
    {
        "version": int,
        "global": GlobalInputsJson,
        "files": list[FilesJson],
        "definitions": list[DefinitionJson],
        "tasks": list[TaskInputsJson],
    },
)
"""The inputs of all tasks of a report, in its order."""


def document_of(run: Summary) -> InputsJson:
    """The `inputs` of a report. Values of variables that are passed through are not in it, not even as digests."""
    lists, definitions = _Numbers[FilesJson](), _Numbers[DefinitionJson]()
    too_long = _too_long(run.tasks.values())
    tasks: list[TaskInputsJson] = []
    for task in run.tasks.values():
        files, (env, inferred) = _cut(task.files), _variables_of(task.variables)
        if task.id in too_long:
            files = {ANY_FILE: digest_of(*(f"{name} {files[name]}" for name in sorted(files)))}
        tasks.append(
            {
                "files": lists.number(
                    (task.directory, frozenset(files.items())),
                    {"directory": task.directory, "files": files},
                ),
                "definition": _definition(task, definitions),
                "external": task.external,
                "env": env,
                "inferred": inferred,
                "dependencies": list(task.dependencies),
                "script": digest_of(task.command),
                "arguments": digest_of(*task.arguments),
                "envMode": task.env_mode,
            }
        )
    return {
        "version": VERSION,
        "global": _global_of(run),
        "files": lists.listed,
        "definitions": definitions.listed,
        "tasks": tasks,
    }


def report_of(
    run: Summary,
    *,
    ancestors: Sequence[str] = (),
    dirty: bool | None = None,
    hints: Hints | None = None,
) -> dict[str, Any]:
    """The body of `POST /v1/causes` for a summary. `ancestors` are the commits before, the nearest first.

    `dirty` is whether tracked files differ from the commit, None if it is not known.
    """
    known = hints or Hints()
    files = {path: file.hint for path, file in known.files.items() if file.hint in _FILE_HINTS}
    return {
        "id": run.id,
        "turboVersion": run.turbo or None,
        "scm": {"sha": run.sha, "branch": run.branch},
        "ancestors": list(ancestors[:MAX_ANCESTORS]),
        "dirty": dirty,
        "tasks": [_task_of(task) for task in run.tasks.values()],
        "inputs": document_of(run),
        "hints": {
            "files": dict(list(files.items())[:MAX_HINTS]),
            "packages": {
                folder: list(names[:MAX_HINTS])
                for folder, names in list(known.packages.items())[:MAX_HINTS]
            },
        },
    }


def summary_of(report: Mapping[str, Any]) -> Summary:
    """The run that a report is of. The report has the fields of its shape. Raises InvalidSummary.

    Its commands, arguments and engines are digests, so a comparison says only that they changed.
    """
    inputs, listed = report["inputs"], report["tasks"]
    if len(inputs["tasks"]) != len(listed):
        raise InvalidSummary("inputs.tasks must have an entry for each of tasks")
    definitions = [_definition_of(definition) for definition in inputs["definitions"]]
    tasks: dict[str, Task] = {}
    for number, (record, own) in enumerate(zip(listed, inputs["tasks"], strict=True)):
        task = _task(record, own, inputs["files"], definitions, f"inputs.tasks.{number}")
        if task.id in tasks:
            raise InvalidSummary(f"tasks.{number} has the package and the task of another one")
        tasks[task.id] = task
    scm, ran, shared = report.get("scm") or {}, report.get("execution") or {}, inputs["global"]
    names = shared["specified"]
    passed = names["passThroughEnv"]
    return Summary(
        id=report.get("id") or "",
        turbo=report.get("turboVersion") or "",
        sha=scm.get("sha") or None,
        branch=scm.get("branch") or None,
        started_at=ran.get("startTime"),
        env_mode=shared["envMode"],
        infers_frameworks=shared["frameworkInference"],
        shared=Globals(
            root_key=shared["rootKey"],
            files=shared["files"],
            external=shared["external"],
            internal=shared["internal"],
            variables=_variables(
                shared, tuple(names["env"]), None if passed is None else tuple(passed)
            ),
            engines=shared["engines"],
            dotenv=tuple(shared.get("dotEnv") or ()),
        ),
        tasks=tasks,
        has_digests=True,
    )


def hints_of(report: Mapping[str, Any]) -> Hints:
    """What a report says about its files and packages, without the files that differ between two commits."""
    hints = report.get("hints") or {}
    return Hints(
        files={path: FileHint(hint=Hint(hint)) for path, hint in hints.get("files", {}).items()},
        packages={folder: tuple(names) for folder, names in hints.get("packages", {}).items()},
    )


def digest_of(*texts: str) -> str:
    """The first characters of the SHA-256 of texts with NUL between them. Empty for no or only empty texts."""
    joined = "\0".join(texts)
    return (
        hashlib.sha256(joined.encode(errors="surrogateescape")).hexdigest()[:DIGEST]
        if joined
        else ""
    )


class _Numbers(Generic[T]):
    """Different entries, each once, by their number."""

    def __init__(self) -> None:
        self.listed: list[T] = []
        self._known: dict[object, int] = {}

    def number(self, key: object, entry: T) -> int:
        number = self._known.setdefault(key, len(self.listed))
        if number == len(self.listed):
            self.listed.append(entry)
        return number


def _too_long(tasks: Iterable[Task]) -> set[str]:
    """The tasks whose lists of files have to be digests, those with the longest lists first."""
    by_length = sorted(tasks, key=lambda task: len(task.files))
    seen, count, found = set[object](), 0, set[str]()
    for task in by_length:
        list_of_task = (task.directory, frozenset(task.files))
        if list_of_task not in seen:
            seen.add(list_of_task)
            count += len(task.files)
        if count > MAX_FILES:
            found.add(task.id)
    return found


def _cut(files: Mapping[str, str]) -> dict[str, str]:
    return {name: digest[:DIGEST] for name, digest in files.items()}


def _definition(task: Task, definitions: _Numbers[DefinitionJson]) -> int:
    settings = task.settings
    entry: DefinitionJson = {
        "outputs": list(settings["outputs"]),
        "env": list(settings["env"]),
        "passThroughEnv": list(settings["passThroughEnv"]),
        "dependsOn": list(settings["dependsOn"]),
        "cache": task.is_cached,
    }
    if settings["dotEnv"]:
        entry["dotEnv"] = list(settings["dotEnv"])
    return definitions.number((*settings.items(), task.is_cached), entry)


def _variables_of(variables: Variables) -> tuple[dict[str, str], list[str]]:
    """All of them, and the names of those that are only inferred."""
    return (
        {**variables.inferred, **variables.configured},
        [name for name in variables.inferred if name not in variables.configured],
    )


def _global_of(run: Summary) -> GlobalInputsJson:
    shared = run.shared
    passed, (env, inferred) = shared.variables.passed_names, _variables_of(shared.variables)
    entry: GlobalInputsJson = {
        "rootKey": digest_of(shared.root_key),
        "files": _cut(shared.files),
        "external": shared.external,
        "internal": shared.internal,
        "env": env,
        "inferred": inferred,
        "specified": {
            "env": list(shared.variables.names),
            "passThroughEnv": None if passed is None else list(passed),
        },
        "engines": digest_of(shared.engines),
        "envMode": run.env_mode,
        "frameworkInference": run.infers_frameworks,
    }
    if shared.dotenv:
        entry["dotEnv"] = list(shared.dotenv)
    return entry


def _task_of(task: Task) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "package": task.package,
        "task": task.task,
        "hash": task.hash,
        "cache": {"status": "HIT" if task.was_restored else "MISS"},
    }
    if task.was_restored:
        entry["cache"]["timeSaved"] = task.build_ms or 0
    if task.was_run:
        entry["execution"] = {"startTime": 0, "endTime": task.build_ms or 0}
    return entry


class _Definition(NamedTuple):
    """The settings of a definition. All its tasks share them, so that they are read and compared once."""

    settings: Mapping[str, tuple[str, ...]]
    unhashed: Mapping[str, object]


def _definition_of(sent: Mapping[str, Any]) -> _Definition:
    listed = (*HASHED_SETTINGS, "dependsOn")
    return _Definition(
        settings={name: tuple(sent.get(name) or ()) for name in listed},
        unhashed={name: sent["cache"] if name == "cache" else None for name in UNHASHED_SETTINGS},
    )


def _task(
    record: Mapping[str, Any],
    own: Mapping[str, Any],
    lists: Sequence[Mapping[str, Any]],
    definitions: Sequence[_Definition],
    place: str,
) -> Task:
    files = _at(lists, own["files"], f"{place}.files")
    settings, unhashed = _at(definitions, own["definition"], f"{place}.definition")
    package, name, cache = record.get("package") or "", record["task"], record["cache"]
    ran, was_restored = record.get("execution"), cache["status"] == "HIT"
    build_ms = None
    if was_restored:
        build_ms = cache.get("timeSaved", 0)
    elif ran:
        build_ms = max(ran["endTime"] - ran["startTime"], 0)
    return Task(
        id=f"{package}#{name}" if package else name,
        package=package,
        task=name,
        hash=record["hash"],
        directory=files["directory"],
        files=files["files"],
        external=own["external"],
        variables=_variables(own, settings["env"], settings["passThroughEnv"]),
        settings=settings,
        unhashed=unhashed,
        dependencies=tuple(own["dependencies"]),
        command=own["script"],
        arguments=(own["arguments"],) if own["arguments"] else (),
        env_mode=own["envMode"],
        was_restored=was_restored,
        was_run=bool(ran),
        build_ms=build_ms,
    )


def _at(listed: Sequence[Any], number: int, place: str) -> Any:
    if not 0 <= number < len(listed):
        raise InvalidSummary(f"{place} must be a place in the list")
    return listed[number]


def _variables(
    own: Mapping[str, Any], names: tuple[str, ...], passed_names: tuple[str, ...] | None
) -> Variables:
    inferred = set(own["inferred"])
    return Variables(
        configured={name: digest for name, digest in own["env"].items() if name not in inferred},
        inferred={name: digest for name, digest in own["env"].items() if name in inferred},
        passed={},
        names=names,
        passed_names=passed_names,
    )
