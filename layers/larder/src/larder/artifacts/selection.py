"""Which artifacts a request lists or removes.

The target of a removal is a text: the id of a writer or of an own scope, a range of time, or everything. Their forms
differ, so no text is two of them.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from larder.artifacts.models import Artifact, PendingUpload, parse_scope
from larder.clock import from_ms, to_ms
from larder.errors import InvalidValue
from larder.hashing import is_random_id
from larder.teams.models import RULE_ID, SHARED_SCOPE

ALL_SCOPES = "all"
"""In place of the name of one scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPage:
    """Some of an owner's artifacts. Pass `following` as `after` for the next page; None on the last page.

    A page can have fewer artifacts than the limit, even none, without being the last. `read` is how many artifacts were
    looked at to find these.
    """

    artifacts: tuple[Artifact, ...]
    following: str | None
    read: int = 0


class Order(StrEnum):
    """The order of a list of artifacts."""

    HASH = "hash"
    UPLOADED = "uploaded"
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The artifacts to list. None and an empty prefix select all.

    `scope` is SHARED_SCOPE, ALL_SCOPES or the id of an own scope. `writer` is the id of a key, session, user or rule,
    and `ci` the name of a CI vendor. `since` is included, `until` is not. With `hidden`, also those that the team hides
    from readers, such as what was stored before it was protected.
    """

    order: Order = Order.HASH
    scope: str = SHARED_SCOPE
    prefix: str = ""
    writer: str | None = None
    ci: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    hidden: bool = False


EVERYTHING = "all"

TARGET_PATTERN = r"[A-Za-z0-9_-]{1,70}"

_RANGE = re.compile(r"([0-9]{14})-([0-9]{14})")

Removable = Artifact | PendingUpload


class Range(NamedTuple):
    """A time. `since` is included, `until` is not."""

    since: datetime
    until: datetime

    @property
    def target(self) -> str:
        return f"{to_ms(self.since):014}-{to_ms(self.until):014}"

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, datetime) and self.since <= moment < self.until


def range_of(target: str) -> Range | None:
    """The range of time that the target is, None if it is something else."""
    match = _RANGE.fullmatch(target)
    return match and Range(from_ms(int(match[1])), from_ms(int(match[2])))


def is_scope(target: str) -> bool:
    """Whether the target is the id of an own scope."""
    if target == EVERYTHING or is_random_id(target) or RULE_ID.fullmatch(target):
        return False
    try:
        return parse_scope(target) is not None
    except InvalidValue:
        return False


def is_in_target(item: Removable, target: str) -> bool:
    """Whether the removal of the target deletes the item. Of a range, it deletes what was begun or stored in it."""
    if target in (EVERYTHING, item.upload.scope):
        return True
    if (period := range_of(target)) is not None:
        return item.upload.begun_at in period or item.created_at in period
    return item.writer is not None and item.writer.has_id(target)
