"""Types of what runs in the background: removals, evictions, and checks of the totals."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from larder.actor import Actor
from larder.artifacts.models import Totals, Upload


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """An artifact as read from the index of last uses, which can lag behind the table."""

    upload: Upload
    size_bytes: int
    last_used_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSum:
    """The sum of an owner's artifacts.

    `unlisted` is how many of them are not in the index of last uses, `undated` how many are not in that of uploads.
    `scopes` has the bytes and the number of artifacts in each own scope.
    """

    totals: Totals
    unlisted: int
    undated: int
    scopes: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A request to delete all of a target (`removal_targets`) that someone began to upload before `asked_at`.

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
