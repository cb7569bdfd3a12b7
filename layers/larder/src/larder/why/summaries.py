"""The run summary of turbo: the file of `turbo run --summarize`, or what `turbo run --dry=json` prints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = "1"
"""The `version` of the format. turbo 1.13 to 2.11 write it."""

MAX_TASKS = 20_000

ANY_FILE = ""
"""In place of the names of a list that is too long for a report. It has one digest of the whole list."""

SET = "set"
"""In place of the digest of a value if only names are kept: the variable has a value."""

HASHED_SETTINGS = ("outputs", "env", "passThroughEnv", "dotEnv")
"""Lists in the definition of a task that enter its hash."""

UNHASHED_SETTINGS = ("cache", "outputLogs", "outputMode", "persistent", "interactive")


class InvalidSummary(ValueError):
    """The document is no run summary. The message says what is wrong, and may quote the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Environment variables. `configured`, `inferred` and `passed` have turbo's SHA-256 of each value.

    `names` and `passed_names` are the patterns of turbo.json. `passed` variables do not enter a hash.
    """

    configured: Mapping[str, str]
    inferred: Mapping[str, str]
    passed: Mapping[str, str]
    names: tuple[str, ...]
    passed_names: tuple[str, ...] | None

    @property
    def without_values(self) -> tuple[str, ...]:
        """The hashed variables of which only the name is known."""
        listed = {**self.configured, **self.inferred}
        return tuple(name for name, value in listed.items() if value == SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. `files` has git's SHA-1 of each input, by its path in `directory`.

    `settings` and `unhashed` are those of its definition in turbo.json that turbo hashes, and does not hash.
    `build_ms` is how long its build took: in this run, or in an earlier run if it was restored. None if no build is
    known, as in a dry run.
    """

    id: str
    package: str
    task: str
    hash: str
    directory: str
    files: Mapping[str, str]
    external: str
    variables: Variables
    settings: Mapping[str, tuple[str, ...]]
    unhashed: Mapping[str, object]
    dependencies: tuple[str, ...]
    command: str
    arguments: tuple[str, ...]
    env_mode: str
    was_restored: bool
    was_run: bool
    build_ms: int | None

    @property
    def is_cached(self) -> bool:
        return self.unhashed.get("cache") is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """What enters the hash of every task."""

    root_key: str
    files: Mapping[str, str]
    external: str
    internal: str
    variables: Variables
    engines: str
    dotenv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A run. `sha` and `branch` are None without git, `started_at` (milliseconds) in a dry run.

    `has_digests` if commands, arguments and engines are digests, as in a report.
    """

    id: str
    turbo: str
    sha: str | None
    branch: str | None
    started_at: int | None
    env_mode: str
    infers_frameworks: bool
    shared: Globals
    tasks: Mapping[str, Task]
    has_digests: bool = False


def parse_summary(document: object) -> Summary:
    """The summary in a parsed JSON document. Raises InvalidSummary."""
    record = _object(document, "the summary")
    version = record.get("version")
    if version is None or "tasks" not in record or "globalCacheInputs" not in record:
        raise InvalidSummary("it is no run summary of turbo")
    if version != FORMAT:
        raise InvalidSummary(
            f"its format is version {str(version)[:20]!r}, and Larder reads version {FORMAT!r}"
        )
    listed = record["tasks"]
    if not isinstance(listed, list):
        raise InvalidSummary("tasks must be a list")
    if len(listed) > MAX_TASKS:
        raise InvalidSummary(f"it has {len(listed)} tasks, and Larder reads {MAX_TASKS} at most")
    tasks: dict[str, Task] = {}
    for number, item in enumerate(listed):
        task = _task(item, f"tasks.{number}")
        if task.id in tasks:
            raise InvalidSummary(f"tasks.{number} has the id of another task")
        tasks[task.id] = task
    scm = _object(record.get("scm") or {}, "scm")
    ran = _object(record.get("execution") or {}, "execution")
    return Summary(
        id=_text(record, "id", ""),
        turbo=_text(record, "turboVersion", ""),
        sha=_text(scm, "sha", "scm.") or None,
        branch=_text(scm, "branch", "scm.") or None,
        started_at=_number(ran, "startTime", "execution."),
        env_mode=_text(record, "envMode", ""),
        infers_frameworks=record.get("frameworkInference") is not False,
        shared=_globals(record["globalCacheInputs"]),
        tasks=tasks,
    )


def _globals(value: object) -> Globals:
    where = "globalCacheInputs."
    record = _object(value, "globalCacheInputs")
    return Globals(
        root_key=_text(record, "rootKey", where),
        files=_digests(record, "files", where),
        external=_text(record, "hashOfExternalDependencies", where),
        internal=_text(record, "hashOfInternalDependencies", where),
        variables=_variables(record, where),
        engines=_named(record.get("engines"), f"{where}engines"),
        dotenv=_texts(record, "globalDotEnv", where) or (),
    )


def _task(value: object, place: str) -> Task:
    record, where = _object(value, place), f"{place}."
    id, hash = _text(record, "taskId", where), _text(record, "hash", where)
    if not id or not hash:
        raise InvalidSummary(f"{place} must have an id and a hash")
    cache = _object(record.get("cache") or {}, f"{where}cache")
    ran = _object(record.get("execution") or {}, f"{where}execution")
    definition = _object(
        record.get("resolvedTaskDefinition") or {}, f"{where}resolvedTaskDefinition"
    )
    was_restored = cache.get("status") == "HIT"
    return Task(
        id=id,
        package=_text(record, "package", where),
        task=_text(record, "task", where),
        hash=hash,
        directory=_text(record, "directory", where),
        files=_digests(record, "inputs", where),
        external=_text(record, "hashOfExternalDependencies", where),
        variables=_variables(record, where),
        settings={
            name: _texts(definition, name, f"{where}resolvedTaskDefinition.") or ()
            for name in (*HASHED_SETTINGS, "dependsOn")
        },
        unhashed={name: definition.get(name) for name in UNHASHED_SETTINGS},
        dependencies=_texts(record, "dependencies", where) or (),
        command=_text(record, "command", where),
        arguments=_texts(record, "cliArguments", where) or (),
        env_mode=_text(record, "envMode", where),
        was_restored=was_restored,
        was_run=bool(ran),
        build_ms=_build_ms(ran, cache, where, was_restored=was_restored),
    )


def _build_ms(
    ran: Mapping[str, Any], cache: Mapping[str, Any], where: str, *, was_restored: bool
) -> int | None:
    if was_restored:
        return _number(cache, "timeSaved", f"{where}cache.")
    started = _number(ran, "startTime", f"{where}execution.")
    ended = _number(ran, "endTime", f"{where}execution.")
    return None if started is None or ended is None else max(ended - started, 0)


def _variables(record: Mapping[str, Any], where: str) -> Variables:
    where = f"{where}environmentVariables."
    listed = _object(record.get("environmentVariables") or {}, where[:-1])
    specified = _object(listed.get("specified") or {}, f"{where}specified")
    return Variables(
        configured=_pairs(listed, "configured", where),
        inferred=_pairs(listed, "inferred", where),
        passed=_pairs(listed, "passthrough", where),
        names=_texts(specified, "env", f"{where}specified.") or (),
        passed_names=_texts(specified, "passThroughEnv", f"{where}specified."),
    )


def _pairs(record: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    """turbo writes NAME=digest. An empty value has no digest."""
    pairs = (text.partition("=") for text in _texts(record, name, where) or ())
    return {variable: digest for variable, _, digest in pairs}


def _named(value: object, place: str) -> str:
    """An object of texts as one text."""
    return ", ".join(
        f"{key} {_is_text(value, place)}" for key, value in _object(value or {}, place).items()
    )


def _object(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidSummary(f"{place} must be an object")
    return value


def _text(record: Mapping[str, Any], name: str, where: str) -> str:
    value = record.get(name)
    return "" if value is None else _is_text(value, f"{where}{name}")


def _is_text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidSummary(f"{place} must be a text")
    return value


def _texts(record: Mapping[str, Any], name: str, where: str) -> tuple[str, ...] | None:
    """A list of texts, or None for null."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidSummary(f"{where}{name} must be a list of texts")
    return tuple(value)


def _digests(record: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    value = _object(record.get(name) or {}, f"{where}{name}")
    # One step for the list, because a large repository has hundreds of thousands of inputs.
    if not set(map(type, value.values())) <= {str}:
        raise InvalidSummary(f"{where}{name} must have a text for each path")
    return value


def _number(record: Mapping[str, Any], name: str, where: str) -> int | None:
    value = record.get(name)
    if value is None:
        return None
    # Far more than any time in milliseconds, so that sums of times stay readable.
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 10**15:
        raise InvalidSummary(f"{where}{name} must be a whole number")
    return value
