"""The kinds of causes for another hash, and the advice for each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from larder.why.hints import Hint


class Kind(StrEnum):
    """What differs. In the order of the list of causes: the first nine reach every task."""

    TURBO_VERSION = "turbo-version"
    TURBO_JSON = "turbo-json"
    ENV_MODE = "env-mode"
    FRAMEWORK = "framework"
    ENGINES = "engines"
    GLOBAL_FILE = "global-file"
    GLOBAL_ENV = "global-env"
    GLOBAL_EXTERNAL = "global-external"
    GLOBAL_INTERNAL = "global-internal"
    FILE = "file"
    EXTERNAL = "external"
    ENV = "env"
    DEFINITION = "definition"
    ARGUMENTS = "arguments"
    TASK_ENV_MODE = "task-env-mode"
    MOVED = "moved"
    EDGE = "edge"
    VALUE = "value"
    """Perhaps: the value of a variable of which only the name is kept."""
    UNKNOWN = "unknown"


class Class(StrEnum):
    """Whether a commit made the difference."""

    CODE = "code"
    """A tracked file differs between the two commits."""
    SETUP = "setup"
    """Everything else: variables, files that are not in git, options of turbo, versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason for other hashes.

    `subject` is a path, a variable, a package or a setting, and `more` has those that changed in the same way. `task`
    is the task of a definition. `how` is `changed`, `added`, `removed` or `renamed`. `values` says what changed, such
    as `+dist/**`. `hints` has what is known about it, each with its values.

    `own` are the tasks whose own record differs, and `reached` those and the ones that depend on them: the bits of
    places in `changed`, because a cause of each of 5,000 tasks in a chain reaches 2,500. `alone` counts the reached
    tasks with no other cause, and `build_ms` is the time of their builds. `class_` is None if it is not known.
    """

    kind: Kind
    subject: str
    how: str
    more: tuple[str, ...] = ()
    task: str = ""
    values: tuple[str, ...] = ()
    hints: tuple[tuple[Hint, tuple[str, ...]], ...] = ()
    commit: str | None = None
    class_: Class | None = None
    changed: Sequence[str]
    own: int
    reached: int
    alone: int = 0
    build_ms: int = 0

    @property
    def tasks(self) -> int:
        return self.reached.bit_count()

    @property
    def direct(self) -> tuple[str, ...]:
        """The ids of the tasks whose own record differs."""
        return tuple(self.changed[number] for number in bits(self.own))

    @property
    def below(self) -> tuple[str, ...]:
        """The ids of the tasks that depend on them."""
        return tuple(self.changed[number] for number in bits(self.reached & ~self.own))

    @property
    def advice(self) -> str:
        """The key in ADVICE. docs/why.md has a heading for each."""
        return advice_of(self.kind, [hint for hint, _ in self.hints])


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def advice_of(kind: Kind, hints: Iterable[Hint]) -> str:
    """The advice of a cause of this kind with these hints."""
    for hint in hints:
        if hint in _ADVICE_OF_HINTS:
            return _ADVICE_OF_HINTS[hint]
    return _ADVICE_OF_KINDS[kind]


_ADVICE_OF_HINTS: Mapping[Hint, str] = MappingProxyType(
    {
        Hint.LINE_ENDINGS: "line-endings",
        Hint.LETTER_CASE: "letter-case",
        Hint.IGNORED: "ignored-file",
        Hint.UNTRACKED: "file-outside-git",
        Hint.DEPENDENCIES: "workspace-dependency",
        Hint.SCRIPT: "script",
        Hint.NO_LOCKFILE: "missing-lockfile",
        Hint.EVERY_PACKAGE: "lockfile",
        Hint.INFERRED: "inferred-variable",
        Hint.VOLATILE_NAME: "volatile-variable",
    }
)
"""Advice that is better than that of the kind. A cause takes that of its first hint with one."""

_ADVICE_OF_KINDS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.TURBO_VERSION: "version-of-turbo",
        Kind.TURBO_JSON: "global-settings",
        Kind.ENV_MODE: "environment-mode",
        Kind.TASK_ENV_MODE: "environment-mode",
        Kind.FRAMEWORK: "framework-inference",
        Kind.ENGINES: "engines",
        Kind.GLOBAL_FILE: "global-file",
        Kind.GLOBAL_ENV: "global-variable",
        Kind.GLOBAL_EXTERNAL: "root-dependencies",
        Kind.GLOBAL_INTERNAL: "root-dependencies",
        Kind.FILE: "source-file",
        Kind.EXTERNAL: "external-packages",
        Kind.ENV: "variable",
        Kind.DEFINITION: "task-settings",
        Kind.ARGUMENTS: "arguments",
        Kind.MOVED: "moved-package",
        Kind.EDGE: "task-graph",
        Kind.VALUE: "unknown-value",
        Kind.UNKNOWN: "unknown-cause",
    }
)

ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "source-file": "Expected if you changed it. To leave files out, narrow `inputs` in turbo.json.",
        "file-outside-git": "Commit it, or add it to .gitignore: turbo hashes untracked files, and skips ignored ones.",
        "ignored-file": "Take it out of `inputs` or `globalDependencies`, or make every computer write the same file.",
        "line-endings": "Add `* text=auto eol=lf` to .gitattributes, so that every checkout has the same bytes.",
        "letter-case": "Give the file the same name everywhere: some file systems ignore the case of letters.",
        "workspace-dependency": "Expected if you changed dependencies. The tasks of the package now depend on others.",
        "script": "Expected if you changed it. package.json is an input of every task of its package.",
        "external-packages": "Expected after an update. Only packages that use the dependency miss.",
        "lockfile": "Use the same package manager and lockfile on every computer.",
        "missing-lockfile": "Commit the lockfile. Without one, turbo hashes no external packages.",
        "root-dependencies": "Move the dependency into the packages that use it. Those of the root reach every task.",
        "variable": "Give it the same value everywhere. If the output does not depend on it, use `passThroughEnv`.",
        "volatile-variable": "Take it out of `env` in turbo.json, or read it when the app starts.",
        "inferred-variable": "Exclude it with `!NAME` in `env`, or give it the same value everywhere.",
        "global-variable": "Move it from `globalEnv` to `env` of the tasks that use it.",
        "global-file": "Move it from `globalDependencies` to `inputs` of the tasks that use it.",
        "global-settings": "Expected if you changed turbo.json. Prefer the settings of single tasks to global ones.",
        "task-settings": "Expected if you changed turbo.json.",
        "environment-mode": "Set `envMode` in turbo.json, and no other --env-mode on some computers.",
        "framework-inference": "Use the same --framework-inference everywhere.",
        "engines": "Expected if you changed `engines` in package.json of the root.",
        "arguments": "Pass the same arguments after `--` everywhere, or put them into the script.",
        "moved-package": "Expected once: the folder of a package is part of the hash.",
        "task-graph": "Compare runs of the same tasks and packages.",
        "version-of-turbo": "Use one version of turbo everywhere. This step of versions hashes in another way.",
        "unknown-value": "Perhaps: only names are kept. Keep a code of each value, and Larder names the variable.",
        "unknown-cause": "Nothing in the summaries explains it. Compare with a run of the same commit and turbo.",
    }
)
"""One line for each advice."""
