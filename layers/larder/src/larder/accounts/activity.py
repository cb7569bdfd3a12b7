"""The audit of a team or user with the people in it, for owners, admins and operators."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from larder.accounts.models import User
from larder.accounts.service import find_users
from larder.audit.models import ABOUT_USERS, Action, Entry
from larder.audit.service import read_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Entries, newest first, and the users that they name and that still exist, by id.

    Pass `next_before` as `before` for the next page. It is None on the last page.
    """

    entries: tuple[Entry, ...]
    users: Mapping[str, User]
    next_before: str | None


def read_activity(
    owner: str,
    *,
    before: str | None,
    limit: int,
    actions: Collection[Action] = (),
    now: datetime,
) -> Activity:
    """At most `limit` entries. With `actions`, a page can have fewer, even none, without being the last."""
    page = read_entries(owner, before=before, limit=limit, actions=actions, now=now)
    ids = {entry.actor.user_id for entry in page.entries if entry.actor}
    ids |= {entry.subject for entry in page.entries if entry.action in ABOUT_USERS}
    return Activity(
        entries=page.entries,
        users=find_users(sorted(id for id in ids if id is not None)),
        next_before=page.next_before,
    )
