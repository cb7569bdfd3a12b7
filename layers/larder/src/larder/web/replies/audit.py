"""The audit of a team or user in replies."""

from typing import TypedDict

from larder.accounts.activity import Activity
from larder.accounts.models import User
from larder.actor import Actor
from larder.audit.models import ABOUT_USERS, Action, Entry
from larder.clock import Milliseconds
from larder.records import shaped


class AuditActorJson(TypedDict):
    """Who did it. `id` is the id of their key or session, or what they used instead, such as `link`.

    `name` is that of the user, null if they have no account any more.
    """

    id: str
    userId: str | None
    name: str | None


class AuditEntryJson(TypedDict):
    """One action. `actor` is null for an operator. `subject` is the id of what was changed.

    `subjectName` is the name of the subject: that of a key or rule at that time, the address of an invitation, and the
    name of a user who has an account. `successor` is the id of the new key of a rotation. `artifacts` and `sizeBytes`
    count what was deleted. `role` is the role that a member got or lost.
    """

    id: str
    at: Milliseconds
    action: Action
    subject: str
    subjectName: str | None
    successor: str | None
    actor: AuditActorJson | None
    role: str | None
    artifacts: int
    sizeBytes: int


class AuditPageJson(TypedDict):
    """Send `next` as `before` to get the next page. It is null on the last page."""

    count: int
    next: str | None


class AuditJson(TypedDict):
    entries: list[AuditEntryJson]
    pagination: AuditPageJson


def audit_json(activity: Activity) -> AuditJson:
    return {
        "entries": [_entry_json(entry, activity) for entry in activity.entries],
        "pagination": {"count": len(activity.entries), "next": activity.next_before},
    }


def _entry_json(entry: Entry, activity: Activity) -> AuditEntryJson:
    subject = activity.users.get(entry.subject) if entry.action in ABOUT_USERS else None
    return shaped(
        AuditEntryJson,
        entry,
        subjectName=entry.name or _name(subject),
        successor=entry.details.get("successor"),
        actor=None if entry.actor is None else _actor_json(entry.actor, activity),
    )


def _actor_json(actor: Actor, activity: Activity) -> AuditActorJson:
    user = None if actor.user_id is None else activity.users.get(actor.user_id)
    return {"id": actor.credential_id, "userId": actor.holder_id, "name": _name(user)}


def _name(user: User | None) -> str | None:
    return None if user is None else user.name
