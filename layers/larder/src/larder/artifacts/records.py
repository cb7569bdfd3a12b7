"""Types of what builds do not need: removals, evictions, own scopes, and what the daily check of the totals finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from larder.actor import Actor
from larder.artifacts.models import ArtifactHash, Refusal, Upload
from larder.usage.uploads import Stored

MOST_PARTS = 50
"""The most writers, CI vendors and other parts of each kind, and the most of the largest artifacts."""

AGES = (1, 7, 30)
"""The limits between ages, in days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """An artifact as read from the index of last uses, which can lag behind the table."""

    upload: Upload
    size_bytes: int
    last_used_ms: int


class Eviction(NamedTuple):
    """When artifacts were evicted, and the last use of the one that was used last: none used before it is left."""

    at: datetime
    before: datetime


class Refused(NamedTuple):
    """When an upload of a credential was refused, and why."""

    credential_id: str
    refusal: Refusal
    at: datetime


class Discarded(NamedTuple):
    """An object to delete. `version` is None if only the bucket knows. `held` is whether its body is to delete, too."""

    upload: Upload
    version: str | None = None
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A request to delete all of a target (`selection`) that someone began to upload before `asked_at`.

    `by` is who requested it, None for the operator at the command line. `artifacts` and `size_bytes` count what it has
    deleted so far. `passed_at` is when its first pass was complete; the second one finds uploads that were in progress.
    """

    owner: str
    target: str
    asked_at: datetime
    by: Actor | None = None
    artifacts: int = 0
    size_bytes: int = 0
    passed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPage:
    """Some open removals of an owner. Pass `following` as `after` for the next page; None on the last page."""

    removals: tuple[Removal, ...]
    following: str | None


class ScopeKind(StrEnum):
    """Who writes an own scope. The id of the scope begins with the same letter."""

    CI_JOB = "ci"
    KEY = "key"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScope:
    """What is recorded of an own scope.

    `name` is that of its key or job, None for the scope of a user. `user_id` is the user, or the rule of a job. Until
    the first count after the first upload, `size_bytes`, `artifacts` and `counted_at` are None.
    """

    id: str
    name: str | None = None
    user_id: str | None = None
    last_upload_at: datetime | None = None
    size_bytes: int | None = None
    artifacts: int | None = None
    counted_at: datetime | None = None

    @property
    def kind(self) -> ScopeKind:
        return next(kind for kind in ScopeKind if kind.value[0] == self.id[0])

    @property
    def user_of(self) -> str | None:
        """The id of the user whose scope it is. None for the scope of a key or a job."""
        return self.id[1:] if self.kind is ScopeKind.USER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a breakdown needs of an artifact. `is_read` is None if the deployment does not record uses."""

    hash: ArtifactHash
    scope: str | None
    size_bytes: int
    created_at: datetime
    writer: Actor | None
    ci: str | None
    is_read: bool | None


class Origin(NamedTuple):
    """What an artifact is the output of, as far as id tokens and reported runs say it. None where they do not."""

    repository: str | None = None
    branch: str | None = None
    package: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of what is stored, by the name of a writer, a CI vendor or an origin. None for artifacts without one.

    The writer of artifacts that tokens of a rule uploaded is the rule.
    """

    name: str | None
    stored: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """What is stored at `at`. `ages` has a part for each of AGES, and one for older artifacts.

    `writers` and `vendors` are the largest ones, at most MOST_PARTS, and so is each field of `origins`. `never_read` is
    None if uses are not recorded.
    """

    at: datetime
    stored: Stored
    ages: Sequence[Stored]
    writers: Sequence[Part]
    vendors: Sequence[Part]
    origins: Mapping[str, Sequence[Part]]
    never_read: Stored | None
    largest: Sequence[Seen]
