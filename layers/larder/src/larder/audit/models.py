"""What is kept of an act that cannot be taken back."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Action(StrEnum):
    """What was done, and what the entry's `subject` is."""

    ARTIFACT_DELETED = "artifact_deleted"
    """One artifact; its hash."""
    REMOVAL_ASKED = "removal_asked"
    """All that a key, session or user wrote is to go; whose id."""
    REMOVAL_DONE = "removal_done"
    """What came of that, in one run of maybe several; the same id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who did it: the user, and the id of the key or session that they presented."""

    user_id: str | None
    credential_id: str | None


OPERATOR = Actor(user_id=None, credential_id=None)
"""Somebody at the command line, whom AWS knows and Larder does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One act. `id` sorts by time; `artifacts` and `size_bytes` are what it removed."""

    id: str
    owner: str
    at: datetime
    action: Action
    subject: str
    actor: Actor
    artifacts: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Entries, newest first, and the id before which the next page begins; None after the last one."""

    entries: tuple[Entry, ...]
    next_before: str | None
