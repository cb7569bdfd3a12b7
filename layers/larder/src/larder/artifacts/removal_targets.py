"""What a removal deletes, as a text: the id of a writer or of an own scope, a range of time, or everything.

Their forms differ, so no text is two of them.
"""

import re
from datetime import datetime
from typing import NamedTuple

from larder.artifacts.models import Artifact, PendingUpload, parse_scope
from larder.clock import from_ms, to_ms
from larder.errors import InvalidValue
from larder.hashing import is_random_id
from larder.teams.models import RULE_ID

EVERYTHING = "all"

TARGET_PATTERN = r"[A-Za-z0-9_-]{1,70}"

_RANGE = re.compile(r"([0-9]{14})-([0-9]{14})")

Stored = Artifact | PendingUpload


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


def is_in_target(item: Stored, target: str) -> bool:
    """Whether the removal of the target deletes the item. Of a range, it deletes what was begun or stored in it."""
    if target in (EVERYTHING, item.upload.scope):
        return True
    if (period := range_of(target)) is not None:
        return item.upload.begun_at in period or item.created_at in period
    return item.writer is not None and item.writer.has_id(target)
