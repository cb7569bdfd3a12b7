"""What only the repository knows about a difference. Nothing here is guessed: what is not known is absent."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum


class Hint(StrEnum):
    """Why a cause is there, or what it is about. The values are in the JSON of `larder why`."""

    LINE_ENDINGS = "line_endings"
    LETTER_CASE = "letter_case"
    IGNORED = "ignored"
    UNTRACKED = "untracked"
    UNCOMMITTED = "uncommitted"
    DEPENDENCIES = "dependencies"
    SCRIPT = "script"
    PACKAGES = "packages"
    NO_LOCKFILE = "no_lockfile"
    EVERY_PACKAGE = "every_package"
    EXAMPLE = "example"
    INFERRED = "inferred"
    VOLATILE_NAME = "volatile_name"
    MISSING_DEPENDENCY = "missing_dependency"
    OTHER_VERSION = "other_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHint:
    """About one input. `hint` is that of line endings, or that it is ignored, untracked or not committed.

    `commit` is the abbreviated id of the last commit between the two runs that changed the file.
    """

    hint: Hint | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """About the differences of two runs. Paths start at the root of the repository of turbo.

    `committed` has the tracked files that differ between the two commits, None if a commit is not known. `packages`
    has the changed external packages of a workspace by its folder, such as `lodash 4.17.20 -> 4.17.21`. The root's
    folder is empty.
    """

    files: Mapping[str, FileHint] = field(default_factory=dict)
    committed: Set[str] | None = None
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
