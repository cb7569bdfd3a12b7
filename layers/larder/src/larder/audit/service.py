"""Read what was removed, by whom and when."""

from datetime import datetime

from larder.audit import repository
from larder.audit.models import Action, Actor, Entry, Page
from larder.hashing import time_ordered_id


def make_entry(
    owner: str,
    action: Action,
    subject: str,
    actor: Actor,
    *,
    artifacts: int = 0,
    size_bytes: int = 0,
    now: datetime,
) -> Entry:
    """An entry that whoever does the act stores with it."""
    return Entry(
        id=time_ordered_id(now),
        owner=owner,
        at=now,
        action=action,
        subject=subject,
        actor=actor,
        artifacts=artifacts,
        size_bytes=size_bytes,
    )


def read_entries(owner: str, *, before: str | None = None, limit: int, now: datetime) -> Page:
    """Entries of a team or user, newest first, at most `limit`; `before` is `next_before` of the page before."""
    return repository.read_page(owner, before=before, limit=limit, now=now)
