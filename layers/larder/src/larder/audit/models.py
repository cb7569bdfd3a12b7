"""Types of the audit log, which records actions that cannot be undone."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from larder.actor import Actor


class Action(StrEnum):
    """The recorded action. The text of each also says what the entry's `subject` is."""

    ARTIFACT_DELETED = "artifact_deleted"
    """One artifact was deleted. `subject` is its hash."""
    REMOVAL_ASKED = "removal_asked"
    """The removal of all that a key, session or user wrote was requested. `subject` is the id of that writer."""
    REMOVAL_DONE = "removal_done"
    """One run of such a removal, of possibly several, has ended. `subject` is the same id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One action. `id` sorts by time. `artifacts` and `size_bytes` count what it removed.

    `actor` is None for an operator at the command line. AWS authenticates them, so Larder does not know the user.
    """

    id: str
    owner: str
    at: datetime
    action: Action
    subject: str
    actor: Actor | None
    artifacts: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Entries, newest first. Pass `next_before` as `before` for the next page; None on the last page."""

    entries: tuple[Entry, ...]
    next_before: str | None
